import { parseListInTurns } from './split-json-array.js'
import { inLargePlace, LARGE_BODY } from './take-turns.js'
import { ANSWER_UNREADABLE, PceError } from './errors.js'
import type { PceResponse, RequestOptions } from './types.js'

/** Request options, including those that only this client's own operations may set. */
export interface SendOptions extends RequestOptions {
  retryCount?: number
  /**
   * If true, the call has no deadline unless `totalTimeoutMs` is given, and only its signal can end it. Used for the
   * rows of a traffic query, whose signal carries the query's deadline, and for file downloads.
   */
  withoutDeadline?: boolean
  /** A body that is not JSON, sent as it is instead of `json`. */
  text?: string
  /**
   * If true, the answer is for another thread, which reads and parses it: the body of a GET comes as `bytes`, and no
   * answer is parsed in advance.
   */
  asBytes?: boolean
}

export interface TracedResponse extends PceResponse {
  /** True if an earlier attempt at the same call may already have taken effect on the PCE. */
  repeated: boolean
  /** The uncompressed body in pieces, each in a buffer of its own, if `asBytes` was set; `text` is empty then. */
  bytes?: readonly Uint8Array<ArrayBuffer>[]
}

/** The status and headers of an answer; they arrive before the streamed body. */
export type StreamHead = Pick<PceResponse, 'status' | 'headers'>

/** Receives the body of an answer piece by piece, while it arrives. */
export interface BodySink {
  /** Called before the first piece, and again when a broken download starts over. */
  begin(head: StreamHead): void
  /** Receives a piece. Its promise is awaited, so that a slow consumer slows the download. */
  take(chunk: Buffer): void | Promise<void>
}

/** The transport that every operation uses: one request with its retries, buffered or streamed. */
export interface Http {
  /** Sends a request and returns the PCE's answer. @throws {PceError} */
  send(method: string, endpoint: string, options?: SendOptions): Promise<TracedResponse>
  /** Makes a GET and passes the body on in pieces. @throws {PceError}, or the error that the sink throws. */
  stream(endpoint: string, options: SendOptions, sink: BodySink): Promise<void>
  closeIdle(): void
}

/** Returns true for a plain JSON object, as opposed to a list or null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Builds the answer that the caller sees. `parsed` holds the JSON if it has been parsed in advance, or null if the text
 * is not JSON.
 */
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
        // The error is ignored here; the statement after this block throws a clearer one.
      }
      throw new PceError('invalid_response', `${method} ${path}: the answer is not valid JSON (status ${status})`)
    },
  }
}

/**
 * Returns the objects of a list answer (P62). An empty body or `null` is not an empty list: it does not say that there
 * are no objects (D70).
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
 * Returns the object that an answer contains.
 *
 * @param identified true if the object is one of many, so that it must have its own `href`.
 * @throws {PceError} `invalid_response` for anything else: a list, an empty body, an error in place of the object.
 */
export function bodyOf<T>(answer: TracedResponse, endpoint: string, identified = false): T {
  const body = answer.json<unknown>()
  const isError = isRecord(body) && body.href === undefined && ('error' in body || 'errors' in body)
  if (isRecord(body) && !isError && (!identified || hasHref(body))) return body as T
  throw new PceError('invalid_response', `${endpoint}: the PCE answered without the object`)
}

/** The form of the body of a POST that creates objects: one object, one object wrapped in a list, or a list. */
export type Creation = 'one' | 'wrapped' | 'list'

/**
 * Returns the created object or objects with their hrefs, as the PCE returns them (P7). When the PCE has accepted the
 * request, the object exists, so an unreadable answer does not mean that the creation failed.
 *
 * @throws {PceError} `outcome_unknown` for an unreadable answer.
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
