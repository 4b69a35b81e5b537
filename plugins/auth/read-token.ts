/** The accepted signature algorithms (D14). `none` and symmetric algorithms are not among them. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** The parts of a token's header that say how it was signed. */
export interface Head {
  alg: Algorithm
  /** The id of the key with which the token was signed; null if the token does not name it. */
  kid: string | null
}

/** Maximum size of an accepted token, in bytes. An Entra ID token with 200 groups has about 9 KiB. */
const LARGEST_TOKEN = 12 * 1024
const LONGEST_KID = 512
/**
 * Maximum number of token headers that are remembered. The tokens of a provider have one distinct header for each of
 * its keys.
 */
const MOST_HEADERS = 200
/**
 * The accepted token types: those of RFC 9068, 4, and `JWT`, which older providers use. ID tokens and logout tokens may
 * have the type `JWT` too, so the claims show which tokens are not access tokens.
 */
const TYPES = new Set(['at+jwt', 'application/at+jwt', 'jwt'])
/**
 * The header members by which a token declares an unencoded payload, or extensions that the reader must understand (RFC
 * 7515, 4.1.11; RFC 7797). This server supports neither.
 */
const REFUSED_MEMBERS = ['crit', 'b64'] as const

/**
 * Creates the function that splits a token into how it was signed and its encoded payload, without verifying the
 * signature. Keys that a token contains or refers to (`jwk`, `jku`, `x5c`, `x5u`) are never read. The function throws
 * InvalidTokenError.
 */
export function createHeadReader(): (token: string) => { head: Head; payload: string } {
  const heads = new Map<string, Head>()
  return (token) => {
    if (token.length > LARGEST_TOKEN) throw new InvalidTokenError('token too large')
    const parts = token.split('.', 6)
    if (parts.length === 5) throw new InvalidTokenError('encrypted token')
    if (parts.length !== 3) throw new InvalidTokenError('malformed token')
    const [header, payload] = parts as [string, string, string]
    let head = heads.get(header)
    if (head === undefined) {
      head = readHead(header)
      if (heads.size >= MOST_HEADERS) heads.clear()
      heads.set(header, head)
    }
    return { head, payload }
  }
}

function readHead(header: string): Head {
  const { alg, kid, typ, ...rest } = decodePart(header)
  const allowed = ALGORITHMS.find((name) => name === alg)
  if (allowed === undefined) throw new InvalidTokenError('alg not allowed')
  if (typ !== undefined && !(typeof typ === 'string' && TYPES.has(typ.toLowerCase()))) {
    throw new InvalidTokenError('typ not allowed')
  }
  if (REFUSED_MEMBERS.some((name) => Object.hasOwn(rest, name))) throw new InvalidTokenError('crit not supported')
  if (kid !== undefined && (typeof kid !== 'string' || kid === '' || kid.length > LONGEST_KID)) {
    throw new InvalidTokenError('malformed token')
  }
  return { alg: allowed, kid: kid ?? null }
}

const BASE64URL = /^[A-Za-z0-9_-]+$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Decodes the JSON object in the header or payload of a token. Header and payload must be base64url without padding and
 * valid UTF-8, without duplicate members (RFC 7515, 2 and 5.2; RFC 7519, 7.2). Throws InvalidTokenError.
 */
export function decodePart(part: string): Record<string, unknown> {
  try {
    if (!BASE64URL.test(part)) throw new InvalidTokenError('malformed token')
    const json = utf8.decode(Buffer.from(part, 'base64url'))
    const value = JSON.parse(json) as unknown
    if (value === null || typeof value !== 'object' || Array.isArray(value) || repeatsAMember(json)) {
      throw new InvalidTokenError('malformed token')
    }
    return value as Record<string, unknown>
  } catch {
    throw new InvalidTokenError('malformed token')
  }
}

/**
 * Returns true if the outermost object of a JSON text has duplicate members, which a token must not have (RFC 7519, 4:
 * claim names are unique). JSON.parse uses the last duplicate, but another reader may use the first. The text must be
 * JSON that JSON.parse accepts.
 */
function repeatsAMember(json: string): boolean {
  const names = new Set<string>()
  let depth = 0
  let isName = false
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (char === '"') {
      const end = endOfString(json, at)
      if (isName) {
        const name = JSON.parse(json.slice(at, end + 1)) as string
        if (names.has(name)) return true
        names.add(name)
        isName = false
      }
      at = end
    } else if (char === '{' || char === '[') {
      depth++
      isName = depth === 1
    } else if (char === '}' || char === ']') depth--
    else if (char === ',' && depth === 1) isName = true
  }
  return false
}

/** Returns the index of the quote that closes the string opened at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at
}

/** Matches the scheme of an Authorization header, which is the part before the first blank (RFC 9110, 11.6.2). */
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+/
/** Matches the Bearer syntax of RFC 6750, 2.1, with exactly one blank. */
const BEARER = /^bearer ([A-Za-z0-9\-._~+/]+=*)$/i

/**
 * Returns the token of a Bearer header. Returns null if there is no Authorization header or its scheme is not Bearer.
 * `authorization` contains the values of all Authorization headers of the request, because Node.js itself would
 * silently use only the first one.
 *
 * Throws InvalidTokenError if there is more than one header, or if a Bearer header is not exactly one token after one
 * blank.
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

const AUTHORIZATION = 'authorization'

/** Returns the values of all Authorization headers in a raw list of names and values (`rawHeaders`). */
export function authorizationsOf(rawHeaders: readonly string[]): string[] {
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION) values.push(rawHeaders[at + 1]!)
  }
  return values
}

/**
 * The reasons for refusing a token. They appear in the log and in the challenge (WWW-Authenticate). These strings are
 * fixed, so that neither place contains anything that a client sent.
 */
type Reason =
  | 'no token'
  | 'malformed authorization header'
  | 'token too large'
  | 'malformed token'
  | 'encrypted token'
  | 'alg not allowed'
  | 'typ not allowed'
  | 'crit not supported'
  | 'no key for this kid and alg'
  | 'signature mismatch'
  | 'iss mismatch'
  | 'aud mismatch'
  | 'not an access token'
  | 'exp missing'
  | 'exp passed'
  | 'nbf not reached'
  | 'iat in the future'
  | 'lifetime too long'
  | 'sub missing or malformed'
  | 'missing required scope'
  | 'access revoked'

/** Error codes of the WWW-Authenticate header (RFC 6750, 3.1). */
export type BearerError = 'invalid_token' | 'insufficient_scope'

/** The error for a missing or invalid token (S10, S12), always answered with 401. */
export class InvalidTokenError extends Error {
  override readonly name = 'InvalidTokenError'
  /**
   * True if the provider has signed the refused token: it has expired, for example, or is meant for another service.
   */
  isGenuine = false
  /** `error` is null for a request without a token, because the challenge then has no error code. */
  constructor(
    readonly reason: Reason,
    readonly error: BearerError | null = 'invalid_token',
  ) {
    super(reason)
  }
}
