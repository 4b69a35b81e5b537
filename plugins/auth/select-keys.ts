import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { Algorithm } from './read-head.js'

/** A public key for one algorithm, with nothing of its JWK but what makes the key. */
export type SigningKey = JsonWebKey & {
  alg: Algorithm
  /** Null where the provider gives it no name. */
  kid: string | null
}

const LEAST_RSA_BITS = 2048
/** A signature with a larger key takes so long that a few would stop the service. */
const MOST_RSA_BITS = 8192
/** A provider publishes a handful. */
const MOST_KEYS = 100

/** Which members make a key, and which algorithms it may be used with. */
const KINDS: Record<string, { members: readonly string[]; algorithms: readonly Algorithm[]; curve?: string }> = {
  RSA: { members: ['n', 'e'], algorithms: ['RS256', 'PS256'] },
  EC: { members: ['crv', 'x', 'y'], algorithms: ['ES256'], curve: 'P-256' },
  OKP: { members: ['crv', 'x'], algorithms: ['EdDSA'], curve: 'Ed25519' },
}

/**
 * The keys of a set that may verify signatures here, in the order of the set, one entry for each algorithm a key is
 * good for. Keys for encryption, for other operations or algorithms, weak ones and those that are no keys at all are
 * left out (RFC 7517, 5: unknown keys are ignored).
 */
export function selectKeys(set: readonly unknown[]): SigningKey[] {
  return set.flatMap(usesOf).slice(0, MOST_KEYS)
}

function usesOf(entry: unknown): SigningKey[] {
  if (typeof entry !== 'object' || entry === null) return []
  const { kty, kid, alg, use, key_ops: operations, ...rest } = entry as Record<string, unknown>
  const kind = typeof kty === 'string' && Object.hasOwn(KINDS, kty) ? KINDS[kty]! : undefined
  if (kind === undefined || (kid !== undefined && typeof kid !== 'string')) return []
  if (use !== undefined && use !== 'sig') return []
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return []
  if (kind.curve !== undefined && rest.crv !== kind.curve) return []
  const jwk = { kty, ...Object.fromEntries(kind.members.map((name) => [name, rest[name]])) } as JsonWebKey
  if (!isStrong(jwk)) return []
  return kind.algorithms
    .filter((algorithm) => alg === undefined || alg === algorithm)
    .map((algorithm) => ({ ...jwk, alg: algorithm, kid: kid ?? null }))
}

function isStrong(jwk: JsonWebKey): boolean {
  let key: KeyObject
  try {
    key = createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return false
  }
  const { modulusLength: bits, publicExponent: exponent } = key.asymmetricKeyDetails ?? {}
  if (bits === undefined) return true
  return (
    bits >= LEAST_RSA_BITS && bits <= MOST_RSA_BITS && exponent !== undefined && exponent > 2n && exponent % 2n === 1n
  )
}
