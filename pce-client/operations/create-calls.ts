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

/** How the named operations send: with whole paths, and with the caller's own fields over the ones made here. */
export interface Calls {
  readonly http: Http
  readonly settings: ClientSettings
  /** `/orgs/<id>` */
  readonly org: string
  /** @throws {PceError} `invalid_href` unless it is an href of this kind here. */
  readonly href: (kind: Kind, reference: ReferenceLike) => string
  /** The same for a list. @throws {PceError} `invalid_argument` for what is none. */
  readonly hrefs: (kind: Kind, references: readonly ReferenceLike[]) => string[]
  /** The object at a path. */
  readonly get: <T>(path: string, options: RequestOptions | undefined) => Promise<T>
  /** The list at a path, as the PCE cuts it. */
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

/** Paths and hrefs are complete here, so nothing is put in front of them. */
export function below<T extends RequestOptions>(options: T = {} as T): T {
  return { ...options, includeOrg: false }
}

/** Fields of the documented body that are no arguments have a default, which the caller's own body overrides. */
function withOwn(body: object, { json }: SendOptions): object {
  if (Array.isArray(body) || Array.isArray(json) || typeof json !== 'object') return body
  return { ...body, ...json }
}

/**
 * The object that a call has made.
 *
 * @param name the text by which it is known, which no such answer is without (P13).
 * @throws {PceError} `outcome_unknown`: it exists, but the answer does not show it.
 */
export function madeBy<T extends object>(answer: TracedResponse, what: string, name: keyof T & string): T {
  const body = bodyOr(answer, what, undefined) as T | null | undefined
  if (typeof body?.[name] === 'string') return body
  throw unreadable(answer, what)
}

/** What a call that was carried out has to say; `{}` where it answers without a body, as some releases do. */
export function saidBy(answer: TracedResponse, what: string): Record<string, unknown> {
  const body = bodyOr(answer, what, {})
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
}

/** The objects that an action was not done to: `{errors}`, a bare list, or no body at all (P13, P32). */
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

/** The rows of an import; no source says whether they come as a list or as an object, so either is taken (P13). */
export function importedBy(answer: TracedResponse, what: string): ImportResult[] {
  const body = bodyOr(answer, what, [])
  return (Array.isArray(body) ? body : [body]) as ImportResult[]
}

interface RawError {
  token?: string
  message?: string
  hrefs?: unknown
}

/** Texts or references. An action was carried out before its errors are read, so that what is neither is passed by. */
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

/** Takes a download piece by piece, so that it is never held as a whole. */
export interface DownloadSink {
  /** Before the first piece, and again when a download that broke off starts from its beginning: forget what was taken. */
  begin(): void
  /** Awaited, so that a slow taker slows the download. */
  take(chunk: Uint8Array): void | Promise<void>
}

export interface DownloadOptions extends RequestOptions {
  sink: DownloadSink
}

/** What every download of a file offers: its bytes, or their number once a sink has taken them. */
export interface Download<Of> {
  (of: Of, options: DownloadOptions): Promise<{ bytes: number }>
  (of: Of, options?: RequestOptions): Promise<Uint8Array>
}

/**
 * A file as a stream: however large into a sink, otherwise within the bounds of what is collected; and without a deadline of its own
 * unless the caller sets one, since a transfer that goes on is not a failure. A transfer that breaks off is begun again by the retry
 * policy. `accept`: the type of file to ask for, whatever it is
 * by default.
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
 * An id of the caller's as one segment of a path: ids are not always numbers or UUIDs (P45), and a slash inside one must not lead
 * to another object.
 *
 * @param name what the specification calls it.
 * @throws {PceError} `invalid_argument` for what cannot be a segment.
 */
export function segment(name: string, id: string): string {
  // Dots are a way up, even between encoded slashes; unpaired surrogates cannot be encoded.
  const isUsable = typeof id === 'string' && id !== '' && !/(?:^|[/\\])\.{1,2}(?:[/\\]|$)|\p{Surrogate}/u.test(id)
  if (!isUsable) throw new PceError('invalid_argument', `${name} must be a string that can be part of a path`)
  return encodeURIComponent(id)
}

/** `draft`, `active`, or the number of a version, which may also be a text. @throws {PceError} `invalid_argument` otherwise. */
export function versionSegment(policyVersion: PolicyVersionSelector): string {
  const version = String(policyVersion)
  if (/^(?:draft|active|[1-9]\d{0,15})$/.test(version)) return version
  throw new PceError('invalid_argument', 'policyVersion must be draft, active or the number of a version')
}
