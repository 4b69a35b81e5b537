import { InvalidTokenError } from './invalid-token.js'

/** RFC 9110, 11.6.2: what comes before the first blank names the scheme. */
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+/
/** RFC 6750, 2.1, with one blank. */
const BEARER = /^bearer ([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * The token of a Bearer header; null where there is no header or one of another scheme. `authorization` holds the
 * value of every Authorization header of the request: Node.js itself would silently go by the first.
 *
 * Throws InvalidTokenError for two headers and for anything but one token after one blank.
 */
export function readBearer(authorization: readonly string[]): string | null {
  const [value] = authorization
  if (value === undefined) return null
  if (authorization.length > 1) throw new InvalidTokenError('malformed authorization header')
  if (SCHEME.exec(value)?.[0].toLowerCase() !== 'bearer') return null
  const token = BEARER.exec(value)?.[1]
  if (token === undefined) throw new InvalidTokenError('malformed authorization header')
  return token
}

/** The values of all Authorization headers in a list of names and values as they came (`rawHeaders`). */
export function authorizationsOf(rawHeaders: readonly string[]): string[] {
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() === 'authorization') values.push(rawHeaders[at + 1]!)
  }
  return values
}
