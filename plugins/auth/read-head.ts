import { decodePart } from './decode-part.js'
import { InvalidTokenError } from './invalid-token.js'

/** D14. Neither `none` nor a symmetric algorithm is among them. */
export const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
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
 * RFC 9068, 4, and the `JWT` of the providers that came before it; ID tokens and logout tokens are told apart by
 * their claims too.
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
