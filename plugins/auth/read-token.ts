/** Accepted algorithms (D14): neither `none` nor a symmetric one. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** How a token says it was signed. */
export interface Head {
  alg: Algorithm
  /** Null where the token names no key. */
  kid: string | null
}

/** Bytes. An Entra ID token with 200 groups has about 9 KiB. */
const LARGEST_TOKEN = 12 * 1024
const LONGEST_KID = 512
/** Headers remembered: a provider has one for each of its keys. */
const MOST_HEADERS = 200
/**
 * RFC 9068, 4, and the `JWT` of the providers that came before it; ID tokens and logout tokens are also recognized by
 * their claims.
 */
const TYPES = new Set(['at+jwt', 'application/at+jwt', 'jwt'])
/** Extensions that must be understood, and payloads that are not encoded (RFC 7515, 4.1.11; RFC 7797): we know none. */
const REFUSED_MEMBERS = ['crit', 'b64'] as const

/**
 * Makes the reader of tokens: how one says it was signed, and its payload, still encoded, before anything is
 * verified. Keys it brings along or points to (`jwk`, `jku`, `x5c`, `x5u`) are not even read. The reader throws
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
 * The JSON object in the header or payload of a token: base64url without padding, proper UTF-8, no member twice (RFC
 * 7515, 2 and 5.2; RFC 7519, 7.2). Throws InvalidTokenError.
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
 * Whether the outermost object of a JSON text names a member twice (RFC 7519, 4: claim names are unique). JSON.parse
 * takes the last one, another reader may take the first. The text must be JSON that JSON.parse accepts.
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

/** Where the string that opens at `start` closes. */
function endOfString(json: string, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at
}

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

const AUTHORIZATION = 'authorization'

/** The values of all Authorization headers in a list of names and values as they came (`rawHeaders`). */
export function authorizationsOf(rawHeaders: readonly string[]): string[] {
  const values: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION) values.push(rawHeaders[at + 1]!)
  }
  return values
}

/**
 * Why a request is not let in: the short reasons that the log and the challenge show. They are ours alone, so that
 * nothing a client sent can get into either.
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

/** RFC 6750, 3.1. */
export type BearerError = 'invalid_token' | 'insufficient_scope'

/** A token that is missing or bad (S10, S12): always a 401. */
export class InvalidTokenError extends Error {
  override readonly name = 'InvalidTokenError'
  /** The provider did sign the token: it is expired or for something else, but not made up. */
  isGenuine = false
  /** `error` is null for a request that brought no token at all: its challenge names no error. */
  constructor(
    readonly reason: Reason,
    readonly error: BearerError | null = 'invalid_token',
  ) {
    super(reason)
  }
}
