import { parseListInTurns } from './split-json-array.js'
import { inLargePlace, LARGE_BODY } from './take-turns.js'
import { ANSWER_UNREADABLE, PceError } from './errors.js'
import type { PceResponse, RequestOptions } from './types.js'

/** Request options, and what only this client's own operations may set. */
export interface SendOptions extends RequestOptions {
  retryCount?: number
  /**
   * The call ends by its signal alone unless `totalTimeoutMs` is given: rows of a traffic query, whose deadline that signal is, and
   * files that the caller of this client downloads.
   */
  withoutDeadline?: boolean
  /** A body that is no JSON; sent as it is, instead of `json`. */
  text?: string
  /** Nobody in this thread asks for the JSON of the answer, so it is not parsed beforehand, however large it is. */
  unparsed?: boolean
}

export interface TracedResponse extends PceResponse {
  /** An earlier attempt of the same call may have been carried out before this answer was given. */
  repeated: boolean
}

/** What comes before a streamed body. */
export type StreamHead = Pick<PceResponse, 'status' | 'headers'>

/** Takes a streamed body piece by piece. */
export interface BodySink {
  /** Before the first piece, and again when a broken download starts from its beginning. */
  begin(head: StreamHead): void
  /** Awaited, so that a slow taker slows the download. */
  take(chunk: Buffer): void | Promise<void>
}

/** What every operation is built on: one request with its retries, buffered or streamed. */
export interface Http {
  /** @throws {PceError} */
  send(method: string, endpoint: string, options?: SendOptions): Promise<TracedResponse>
  /** GET, the body handed over in pieces. @throws {PceError}, or what the sink throws. */
  stream(endpoint: string, options: SendOptions, sink: BodySink): Promise<void>
  closeIdle(): void
}

/** An object as JSON has it: no list, not null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The answer to a request, as its caller sees it. `parsed`: what it says, where somebody has looked already; null for no JSON. */
export function createResponse(
  answer: Omit<TracedResponse, 'json'>,
  { method, path }: { method: string; path: string },
  parsed?: { value: unknown } | null,
): TracedResponse {
  const { status, text } = answer
  return {
    ...answer,
    json<T>(): T {
      if (parsed) return parsed.value as T
      if (text.trim() === '') return undefined as T
      try {
        if (parsed === undefined) return JSON.parse(text) as T
      } catch {
        // As what was found to be none.
      }
      throw new PceError('invalid_response', `${method} ${path}: the answer is not valid JSON (status ${status})`)
    },
  }
}

/**
 * The objects of an answer (P62): an empty body, `null` or a status without one does not say that there are none (D70).
 *
 * @throws {PceError} `invalid_response` for anything but a list of objects.
 */
export async function listOf<T>(answer: TracedResponse, endpoint: string): Promise<T[]> {
  const isLarge = answer.text.length > LARGE_BODY
  const body = isLarge ? await inLargePlace(() => parseListInTurns(answer.text)) : answer.json<unknown>()
  if (Array.isArray(body) && body.every(isRecord)) return body as T[]
  throw notObjects(endpoint)
}

export const notObjects = (endpoint: string) =>
  new PceError('invalid_response', `${endpoint}: the PCE answered something other than a list of objects`)

/**
 * The object of an answer.
 *
 * @param identified the object is one of many, so it has its own `href`.
 * @throws {PceError} `invalid_response` for anything else: a list, nothing, an error in the object's place.
 */
export function bodyOf<T>(answer: TracedResponse, endpoint: string, identified = false): T {
  const body = answer.json<unknown>()
  const isError = isRecord(body) && body.href === undefined && ('error' in body || 'errors' in body)
  if (isRecord(body) && !isError && (!identified || hasHref(body))) return body as T
  throw new PceError('invalid_response', `${endpoint}: the PCE answered without the object`)
}

/** How the body of a creating POST was sent: one object, one as a list of one, or a list. */
export type Creation = 'one' | 'wrapped' | 'list'

/**
 * What was created, as the PCE answers it: an object, or objects, with their hrefs (P7). It exists once the PCE has answered, so
 * an answer that does not name it is not a failure to create.
 *
 * @throws {PceError} `outcome_unknown` for such an answer.
 */
export function createdOf<T>(answer: TracedResponse, endpoint: string, creation: Creation): T {
  let cause: unknown
  try {
    const body = answer.json<unknown>()
    const made = creation === 'wrapped' && Array.isArray(body) ? (body as unknown[])[0] : body
    const isNamed = creation === 'list' ? Array.isArray(made) && made.length > 0 && made.every(hasHref) : hasHref(made)
    if (isNamed) return made as T
  } catch (error) {
    cause = error
  }
  const text = `POST ${endpoint}: the PCE accepted the object (status ${answer.status}), but its answer cannot be read. Check before repeating it.`
  throw new PceError('outcome_unknown', text, { cause, reason: ANSWER_UNREADABLE })
}

function hasHref(made: unknown): boolean {
  return typeof (made as { href?: unknown } | null | undefined)?.href === 'string'
}
