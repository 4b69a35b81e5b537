import { PceError } from './errors.js'
import type { PceAddress } from './settings.js'
import type { RequestOptions } from './types.js'

/** A request's address, and its path as messages and logs show it. */
export interface ResolvedEndpoint {
  url: string
  /** Below `/api/<version>`, without the query. */
  path: string
}

/**
 * Turns an endpoint into an address of this PCE (P1, P3): leading slashes go, `//` becomes `/`, and the organisation is put in
 * front unless the endpoint brings its own or does not want one.
 *
 * @throws {PceError} `invalid_href` for an endpoint that would leave the API: another origin, dot segments in any spelling,
 *   backslashes, control characters, half a surrogate pair (which a URL replaces by another character). Hrefs come from callers, and a path that climbs would act on something else.
 */
export function resolveEndpoint(
  address: PceAddress,
  endpoint: string,
  includeOrg: boolean,
  params: RequestOptions['params'] = {},
): ResolvedEndpoint {
  const queryAt = endpoint.indexOf('?')
  const rawPath = queryAt === -1 ? endpoint : endpoint.slice(0, queryAt)
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(rawPath) || isUnsafePath(rawPath) || /\p{Surrogate}/u.test(endpoint)) {
    throw new PceError('invalid_href', `not an endpoint of the PCE: ${JSON.stringify(endpoint.slice(0, 200))}`)
  }
  let path = rawPath.replace(/\/{2,}/g, '/').replace(/^\//, '')
  if (includeOrg && !/^orgs\//.test(path)) path = `orgs/${address.orgId}/${path}`

  const query = [queryAt === -1 ? '' : endpoint.slice(queryAt + 1), encodeParams(params)].filter(Boolean).join('&')
  const url = `${address.origin}/api/${address.version}/${path}${query === '' ? '' : `?${query}`}`
  return { url: encodeStrays(url), path: `/${path}` }
}

/**
 * The endpoint that a `Location`, `result` or href of an answer names (P41), when it lies on the same origin.
 *
 * @throws {PceError} `invalid_response` when it does not: credentials must not follow an answer to another host.
 */
export function endpointOfLocation(address: PceAddress, location: string): string {
  const base = `/api/${address.version}`
  const url = URL.canParse(location, address.origin) ? new URL(location, address.origin) : undefined
  if (url === undefined || url.origin !== new URL(address.origin).origin) {
    throw new PceError('invalid_response', 'the PCE pointed to another server; its address was not followed')
  }
  const path = url.pathname.startsWith(`${base}/`) ? url.pathname.slice(base.length) : url.pathname
  return path + url.search
}

/**
 * List values travel as JSON (P8), undefined ones not at all. Brackets and blanks are percent-encoded.
 */
function encodeParams(params: NonNullable<RequestOptions['params']>): string {
  return Object.entries(params)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => {
      const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
      try {
        return `${encodeURIComponent(name)}=${encodeURIComponent(text)}`
      } catch (cause) {
        // Half a surrogate pair has no encoding.
        throw new PceError('invalid_argument', `the parameter ${JSON.stringify(name)} is no valid Unicode text`, {
          cause,
        })
      }
    })
    .join('&')
}

/** Ids may be names (P45): what would end the path or break its encoding is encoded, blanks are by the URL itself. */
function encodeStrays(url: string): string {
  return url.replaceAll('#', '%23').replace(/%(?![0-9a-f]{2})/gi, '%25')
}

/**
 * True for what URL parsers rewrite: they drop tabs and newlines, read `\` as `/`, and resolve `..` even when encoded. Proxies
 * in front of a PCE may decode a slash before they resolve, so an encoded one ends a segment too.
 */
function isUnsafePath(path: string): boolean {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return true
  return path.split(/\/|%2f|%5c/i).some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
}
