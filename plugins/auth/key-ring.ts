import buildGetJwks from 'get-jwks'
import type { Algorithm } from './read-head.js'
import type { SigningKey } from './select-keys.js'

/** The keys of one download. */
export interface KeyRing {
  /**
   * The key of this name for this algorithm; for a token without a name the only key of that algorithm, if it is the
   * only one.
   */
  find(alg: Algorithm, kid: string | null): SigningKey | null
}

/** Nothing listens here: a look-up that missed the cache could reach no network. */
const NOWHERE = 'urn:no-network/'

/**
 * Looks keys up in the cache of get-jwks, which is filled here with the whole set. get-jwks cannot be left to
 * download them: its fetch has no effective timeout, no limit of size, follows redirects, asks once for every unknown
 * name and knows no other keys than those that were asked for, so that it cannot tell whether a key is the only one.
 *
 * Of two keys with the same name and algorithm the first counts.
 */
export function createKeyRing(keys: readonly SigningKey[]): KeyRing {
  const ring = buildGetJwks({ max: Math.max(1, keys.length), ttl: Number.MAX_SAFE_INTEGER })
  // An LRUCache, of which the library's own types know nothing.
  const cache = ring.cache as unknown as { set(key: string, value: SigningKey): void }
  const known = new Set<string>()
  const only = new Map<Algorithm, SigningKey | null>()

  for (const key of keys) {
    only.set(key.alg, only.has(key.alg) ? null : key)
    const name = nameOf(key.alg, key.kid)
    if (known.has(name)) continue
    known.add(name)
    cache.set(ring.generateCacheKey(key.alg, name, NOWHERE), key)
  }

  return {
    find(alg, kid) {
      const name = nameOf(alg, kid === null ? (only.get(alg)?.kid ?? null) : kid)
      if (!known.has(name) || (kid === null && !only.get(alg))) return null
      // What is in the cache comes back as it was put there, not as a promise.
      return ring.getJwk({ domain: NOWHERE, alg, kid: name }) as unknown as SigningKey
    },
  }
}

/** No name that a token can say is that of a key without one. */
const nameOf = (alg: Algorithm, kid: string | null) => (kid === null ? alg : `${alg} ${kid}`)
