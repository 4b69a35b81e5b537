import type { PolicyVersionSelector } from '../../schemas/common.js'
import type { ActionError } from '../../schemas/pce/ven.js'
import type { ImportResult } from '../../schemas/pce/workload.js'
import { tooManyBytes } from '../bound-answers.js'
import { ANSWER_UNREADABLE, PceError } from '../errors.js'
import type { Kind } from '../kinds.js'
import { checkHref } from '../endpoint.js'
import type { ClientSettings } from '../settings.js'
import { bodyOf, isRecord, listOf, type TracedResponse, type Http, type SendOptions } from '../transport.js'
import type { ReferenceLike, RequestOptions } from '../types.js'

/**
 * The functions with which the named operations send requests. The paths passed to them must already include the
 * organisation, if there is one. In a body, the fields of the caller's `json` replace the defaults.
 */
export interface Calls {
  readonly http: Http
  readonly settings: ClientSettings
  /** The path of the organisation: `/orgs/<id>`. */
  readonly org: string
  /**
   * Returns the href of a reference. @throws {PceError} `invalid_href` unless `reference` is an object of `kind` in
   * this organisation.
   */
  readonly href: (kind: Kind, reference: ReferenceLike) => string
  /**
   * Returns the hrefs of several references. @throws {PceError} also `invalid_argument` if `references` is not a list.
   */
  readonly hrefs: (kind: Kind, references: readonly ReferenceLike[]) => string[]
  /** Fetches the single object at a path. */
  readonly get: <T>(path: string, options: RequestOptions | undefined) => Promise<T>
  /** Fetches the list at a path. The list is as the PCE sends it, and so may be truncated. */
  readonly list: <T>(path: string, options: RequestOptions | undefined) => Promise<T[]>
  readonly post: (path: string, body: object, options: SendOptions | undefined) => Promise<TracedResponse>
  readonly put: (path: string, body: object, options: SendOptions | undefined) => Promise<TracedResponse>
  readonly delete: (path: string, options: RequestOptions | undefined) => Promise<void>
}

export function createCalls(http: Http, settings: ClientSettings): Calls {
  const get = (path: string, options: RequestOptions | undefined) => http.send('GET', path, below(options))
  const href = (kind: Kind, reference: ReferenceLike) => checkHref(kind, settings.address.orgId, reference)
  const write = (method: string, path: string, body: object, options: SendOptions = {}) =>
    http.send(method, path, { ...below(options), json: withOwn(body, options) })
  return {
    http,
    settings,
    org: `/orgs/${settings.address.orgId}`,
    href,
    hrefs(kind, references) {
      if (Array.isArray(references)) return references.map((reference: ReferenceLike) => href(kind, reference))
      throw new PceError('invalid_argument', `expected a list of hrefs of ${kind.specName}`)
    },
    get: async <T>(path: string, options: RequestOptions | undefined) => bodyOf<T>(await get(path, options), path),
    list: async <T>(path: string, options: RequestOptions | undefined) => listOf<T>(await get(path, options), path),
    post: (path, body, options) => write('POST', path, body, options),
    put: (path, body, options) => write('PUT', path, body, options),
    async delete(path, options) {
      await http.send('DELETE', path, below(options))
    },
  }
}

/** Returns the options with `includeOrg: false`, because paths and hrefs are already complete. */
export function below<T extends RequestOptions>(options: T = {} as T): T {
  return { ...options, includeOrg: false }
}

/**
 * Merges the caller's `json` into a body; if both have a field, the caller's value is used. In this way, callers can set
 * documented fields for which the operation has no argument.
 */
function withOwn(body: object, { json }: SendOptions): object {
  if (Array.isArray(body) || Array.isArray(json) || typeof json !== 'object') return body
  return { ...body, ...json }
}

/**
 * Returns the object that a call has created, as it is in the PCE's answer.
 *
 * @param name the name of a string property that every object of this type has (P13); an answer without it counts as unreadable.
 * @throws {PceError} `outcome_unknown` if the answer is unreadable, since the object exists nevertheless.
 */
export function madeBy<T extends object>(answer: TracedResponse, what: string, name: keyof T & string): T {
  const body = bodyOr(answer, what, undefined) as T | null | undefined
  if (typeof body?.[name] === 'string') return body
  throw unreadable(answer, what)
}

/** Returns the body of a successful answer, or `{}` if the body is empty, as it is in some releases. */
export function saidBy(answer: TracedResponse, what: string): Record<string, unknown> {
  const body = bodyOr(answer, what, {})
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
}

/**
 * Returns the errors of an action, each with the hrefs of the objects for which the action failed. The PCE answers with
 * `{errors}`, with the list of errors alone, or with an empty body (P13, P32).
 */
export function errorsOf(answer: TracedResponse, what: string): ActionError[] {
  const body = bodyOr(answer, what, {})
  const errors: unknown = Array.isArray(body) ? body : ((body as { errors?: unknown } | null)?.errors ?? [])
  if (!Array.isArray(errors) || !errors.every(isRecord)) throw unreadable(answer, what)
  return (errors as RawError[]).map(({ token, message, hrefs }) => ({
    token: token ?? '',
    message: message ?? '',
    hrefs: hrefsOf(hrefs),
  }))
}

/**
 * Returns the results of an import. No source says whether the PCE sends a list of results or a single result, so both
 * are accepted (P13).
 */
export function importedBy(answer: TracedResponse, what: string): ImportResult[] {
  const body = bodyOr(answer, what, [])
  return (Array.isArray(body) ? body : [body]) as ImportResult[]
}

interface RawError {
  token?: string
  message?: string
  hrefs?: unknown
}

/**
 * Returns the hrefs in an error item; the PCE gives them as strings or as `{href}`. Anything else is ignored, because
 * the action has already been carried out and must not be reported as failed.
 */
function hrefsOf(given: unknown): string[] {
  if (!Array.isArray(given)) return []
  const hrefs = (given as unknown[]).map((href) =>
    typeof href === 'object' && href !== null ? (href as { href?: unknown }).href : href,
  )
  return hrefs.filter((href) => typeof href === 'string')
}

function bodyOr(answer: TracedResponse, what: string, empty: unknown): unknown {
  try {
    return answer.json<unknown>() ?? empty
  } catch (cause) {
    throw unreadable(answer, what, cause)
  }
}

function unreadable({ status }: TracedResponse, what: string, cause?: unknown): PceError {
  const text = `${what} was accepted (status ${status}), but its answer cannot be read. Check before repeating it.`
  return new PceError('outcome_unknown', text, { cause, reason: ANSWER_UNREADABLE })
}

/** Receives a download piece by piece, so that the whole file is never held in memory. */
export interface DownloadSink {
  /**
   * Called before the first piece, and again if a broken download starts over: all pieces received before must then be
   * discarded.
   */
  begin(): void
  /** Receives a piece. Its promise is awaited, so that a slow consumer slows the download. */
  take(chunk: Uint8Array): void | Promise<void>
}

export interface DownloadOptions extends RequestOptions {
  sink: DownloadSink
}

/** The signature of every file download. It returns the file's bytes or, if there is a sink, only their number. */
export interface Download<Of> {
  (of: Of, options: DownloadOptions): Promise<{ bytes: number }>
  (of: Of, options?: RequestOptions): Promise<Uint8Array>
}

/**
 * Creates an operation that downloads a file as a stream. With a sink, the size is not limited; without one, the limit
 * for collected data applies. There is no deadline unless the caller sets one, since a transfer that makes progress has
 * not failed. The retry policy restarts a transfer that breaks off.
 *
 * @param accept the media type to request.
 */
export function createDownload<Of>(
  { http, settings }: Calls,
  pathOf: (of: Of) => string,
  accept = '*/*',
): Download<Of> {
  const most = settings.bounds.collected.bytes
  async function download(of: Of, { sink, ...options }: Partial<DownloadOptions> = {}) {
    const pieces: Uint8Array[] = []
    let bytes = 0
    const headers = { accept, ...options.headers }
    await http.stream(
      pathOf(of),
      { ...below(options), headers, withoutDeadline: true },
      {
        begin: () => {
          pieces.length = 0
          bytes = 0
          sink?.begin()
        },
        take: (chunk) => {
          bytes += chunk.length
          if (sink !== undefined) return sink.take(chunk)
          if (bytes > most) throw tooManyBytes(most)
          pieces.push(chunk)
        },
      },
    )
    return sink === undefined ? Buffer.concat(pieces) : { bytes }
  }
  return download as Download<Of>
}

/**
 * Encodes an id from the caller as one path segment. Ids are not always numbers or UUIDs (P45), and a slash in an id
 * must not lead to another object.
 *
 * @param name the specification's name for the id, for the error message.
 * @throws {PceError} `invalid_argument` if the id cannot be a path segment.
 */
export function segment(name: string, id: string): string {
  // `.` and `..` would lead to another path even between encoded slashes, and unpaired surrogates cannot be encoded.
  const isUsable = typeof id === 'string' && id !== '' && !/(?:^|[/\\])\.{1,2}(?:[/\\]|$)|\p{Surrogate}/u.test(id)
  if (!isUsable) throw new PceError('invalid_argument', `${name} must be a string that can be part of a path`)
  return encodeURIComponent(id)
}

/**
 * Returns the path segment of a policy version: `draft`, `active`, or the number of a version, which may also be given
 * as text.
 *
 * @throws {PceError} `invalid_argument` otherwise.
 */
export function versionSegment(policyVersion: PolicyVersionSelector): string {
  const version = String(policyVersion)
  if (/^(?:draft|active|[1-9]\d{0,15})$/.test(version)) return version
  throw new PceError('invalid_argument', 'policyVersion must be draft, active or the number of a version')
}
