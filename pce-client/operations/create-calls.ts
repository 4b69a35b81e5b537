import { PceError } from '../errors.js'
import type { Kind } from '../kinds.js'
import { bodyOf, listOf } from '../read-answer.js'
import { checkHref } from '../reference.js'
import type { ClientSettings } from '../settings.js'
import type { Answer, Http, SendOptions } from '../transport.js'
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
  readonly post: (path: string, body: object, options: SendOptions | undefined) => Promise<Answer>
  readonly put: (path: string, body: object, options: SendOptions | undefined) => Promise<Answer>
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
    get: async <T>(path: string, options: RequestOptions | undefined) => bodyOf<T>(await get(path, options)),
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
