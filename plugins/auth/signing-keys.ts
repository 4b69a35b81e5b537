import buildGetJwks from 'get-jwks'
import { ToolError } from '../../schemas/errors.js'
import { downloadKeys, selectKeys, type SigningKey } from './fetch-keys.js'
import type { Algorithm } from './read-token.js'

/** Runs `fn` after so many milliseconds, unless it is called off by what this returns. */
export type Schedule = (fn: () => void, ms: number) => () => void

interface SigningKeysOptions {
  url: string
  fetch: typeof globalThis.fetch
  /** Milliseconds since the epoch. */
  now: () => number
  schedule: Schedule
  /** Other keys than before are in use, so many. */
  changed: (count: number) => void
  /** A download has ended, with usable keys or without. */
  fetched?: (isLoaded: boolean) => void
  /** A download failed; the keys in use, if any, are so many seconds old. */
  failed: (error: unknown, ageSeconds: number | null) => void
}

/** The keys of the identity provider. */
export interface SigningKeys {
  /**
   * The key that a token names, or null. A promise only where nothing usable is there or the keys are due: it rejects
   * with ToolError `keys_unavailable {retry_after}` when no keys were ever loaded, or the last ones are an hour old.
   */
  find(alg: Algorithm, kid: string | null): SigningKey | null | Promise<SigningKey | null>
  /** Another object for other keys; null while `find` may have to wait. */
  edition(): object | null
  /** Downloads again because of an unknown key, unless that was tried less than 30 s ago. Never rejects. */
  refetch(): Promise<void>
  /** Downloads, and keeps the keys fresh from then on. Never rejects: a provider that is down is tried again. */
  load(): Promise<void>
  /** Whether tokens can be checked now. */
  isLoaded(): boolean
  close(): void
}

const SECOND = 1000
/** At most one download in this time that was not planned (D13). */
const RETRY_AFTER = 30 * SECOND
const REFRESH_EVERY = 9 * 60 * SECOND
/** Older keys are refreshed before a token is checked, so that a withdrawn key is refused. */
const FRESH_FOR = 10 * 60 * SECOND
/** How long the last good keys are used while the provider is down. */
const STALE_FOR = 3600 * SECOND

/** One download at a time; failures are reported to `failed` and are never the caller's. */
export function createSigningKeys(options: SigningKeysOptions): SigningKeys {
  const elapsed = steadyClock(options.now)
  const closing = new AbortController()
  let ring: KeyRing | null = null
  let fingerprint = ''
  let loadedAt = -Infinity
  let triedAt = -Infinity
  let isDown = false
  let attempt: Promise<void> | null = null
  let callOff = () => {}

  const age = () => elapsed() - loadedAt

  async function download(): Promise<void> {
    callOff()
    triedAt = elapsed()
    try {
      take(selectKeys(await downloadKeys(options.url, { fetch: options.fetch, signal: closing.signal })))
      loadedAt = triedAt
      isDown = false
      options.fetched?.(true)
    } catch (error) {
      if (closing.signal.aborted) return
      isDown = true
      options.fetched?.(false)
      options.failed(error, ring === null ? null : Math.round(age() / SECOND))
    }
    if (closing.signal.aborted) return
    const wait = isDown ? RETRY_AFTER - (elapsed() - triedAt) : REFRESH_EVERY
    callOff = options.schedule(() => void start(), Math.max(0, wait))
  }

  /** Unchanged keys stay the same objects, so that what is cached for them stays too. */
  function take(keys: SigningKey[]): void {
    if (keys.length === 0) throw new Error('the answer has no usable key')
    const print = JSON.stringify(keys)
    if (ring !== null && print === fingerprint) return
    fingerprint = print
    ring = createKeyRing(keys)
    options.changed(keys.length)
  }

  function start(): Promise<void> {
    attempt ??= download().finally(() => (attempt = null))
    return attempt
  }

  const retry = () => attempt ?? (elapsed() - triedAt >= RETRY_AFTER ? start() : Promise.resolve())

  async function usable(): Promise<KeyRing> {
    if (age() >= FRESH_FOR) {
      const trying = retry()
      // While the provider is down, tokens that the old keys can check do not wait for it.
      if (!isDown || age() >= STALE_FOR) await trying
    }
    if (ring === null || age() >= STALE_FOR) throw unavailable(RETRY_AFTER - (elapsed() - triedAt))
    return ring
  }

  return {
    find: (alg, kid) =>
      ring !== null && age() < FRESH_FOR ? ring.find(alg, kid) : usable().then((keys) => keys.find(alg, kid)),
    edition: () => (age() < FRESH_FOR ? ring : null),
    refetch: retry,
    load: start,
    isLoaded: () => ring !== null && age() < STALE_FOR,
    close() {
      callOff()
      closing.abort()
    },
  }
}

const unavailable = (waitMs: number) =>
  new ToolError(
    'keys_unavailable',
    'The keys of the identity provider are not available, so no token can be checked.',
    {
      retry_after: Math.max(1, Math.ceil(waitMs / SECOND)),
    },
  )

/** The keys of one download. */
interface KeyRing {
  /**
   * The key of this name for this algorithm; for a token without a name the only key of that algorithm, if it is the
   * only one.
   */
  find(alg: Algorithm, kid: string | null): SigningKey | null
}

/** Nothing listens here: a look-up that misses the cache cannot reach the network. */
const NOWHERE = 'urn:no-network/'

/**
 * Looks keys up in the cache of get-jwks, which is filled here with the whole set. get-jwks cannot be left to
 * download them: its fetch has no effective timeout, no limit of size, follows redirects, asks once for every unknown
 * name and knows no other keys than those that were asked for, so that it cannot tell whether a key is the only one.
 *
 * Of two keys with the same name and algorithm the first counts.
 */
function createKeyRing(keys: readonly SigningKey[]): KeyRing {
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

/** A key without a name never collides with one that a token can name. */
const nameOf = (alg: Algorithm, kid: string | null) => (kid === null ? alg : `${alg} ${kid}`)

/**
 * Milliseconds since this clock was made, on top of a system clock that may be set back: steps back do not count, so that a
 * time correction neither makes anything younger nor stops periodic work.
 */
function steadyClock(now: () => number): () => number {
  let last = now()
  let elapsed = 0
  return () => {
    const at = now()
    elapsed += Math.max(0, at - last)
    last = at
    return elapsed
  }
}
