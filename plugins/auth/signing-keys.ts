import buildGetJwks from 'get-jwks'
import { ToolError } from '../../schemas/errors.js'
import { downloadKeys, selectKeys, type SigningKey } from './fetch-keys.js'
import type { Algorithm } from './read-token.js'

/** Runs `fn` after `ms` milliseconds; returns a function that cancels it. */
export type Schedule = (fn: () => void, ms: number) => () => void

interface SigningKeysOptions {
  url: string
  fetch: typeof globalThis.fetch
  /** Returns milliseconds since the epoch. */
  now: () => number
  schedule: Schedule
  /** Called with the number of keys when keys that differ from the previous ones come into use. */
  changed: (count: number) => void
  /** Called when a download has ended. `isLoaded` is true if the download contained usable keys. */
  fetched?: (isLoaded: boolean) => void
  /**
   * Called when a download has failed, with the error and the age in seconds of the keys in use (null if there are
   * none).
   */
  failed: (error: unknown, ageSeconds: number | null) => void
}

/** The keys of the identity provider. */
export interface SigningKeys {
  /**
   * Returns the key that a token names, or null if there is no such key. The result is a promise only if no usable keys
   * are loaded or the keys are due for a refresh. Rejects with ToolError `keys_unavailable {retry_after}` if no keys
   * were ever loaded, or if the last loaded keys are at least an hour old.
   */
  find(alg: Algorithm, kid: string | null): SigningKey | null | Promise<SigningKey | null>
  /** Returns an object that identifies the current set of keys, or null if `find` may have to wait for keys. */
  edition(): object | null
  /** Downloads the keys again because a key is unknown, unless this was tried less than 30 s ago. Never rejects. */
  refetch(): Promise<void>
  /**
   * Downloads the keys for the first time and then refreshes them regularly. Never rejects; if the provider is down,
   * the download is repeated.
   */
  load(): Promise<void>
  /** Returns true if tokens can be verified now. */
  isLoaded(): boolean
  close(): void
}

const SECOND = 1000
/** Minimum interval between unplanned downloads, in milliseconds (D13). */
const RETRY_AFTER = 30 * SECOND
const REFRESH_EVERY = 9 * 60 * SECOND
/**
 * The age, in milliseconds, up to which keys are used without a refresh. Older keys are refreshed before they are used,
 * so that keys that the provider has withdrawn are no longer accepted.
 */
const FRESH_FOR = 10 * 60 * SECOND
/** The age, in milliseconds, up to which keys are used while the provider is down. */
const STALE_FOR = 3600 * SECOND

/**
 * Manages the provider's keys, with one download at a time. A failed download is reported to `failed` and never throws.
 */
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

  /**
   * Puts downloaded keys into use. Keys that have not changed remain the same objects, so that everything cached for
   * them stays valid.
   */
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
      // While the provider is down, the old keys are used at once, without waiting for the new download.
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

/** The usable keys of one download. */
interface KeyRing {
  /**
   * Returns the key for this algorithm with this id. For a token without a key id, returns the only key for this
   * algorithm. Returns null if there is no such key.
   */
  find(alg: Algorithm, kid: string | null): SigningKey | null
}

/** An invented address without a server, so that a cache miss cannot reach the network. */
const NOWHERE = 'urn:no-network/'

/**
 * Creates a ring that looks up keys in the cache of get-jwks, which is filled here with the whole set. get-jwks itself
 * must not download keys: its fetch has no effective time-out and no size limit, follows redirects, and sends a request
 * for every unknown id. It would also know only the requested keys and could not tell whether a key is the only one for
 * its algorithm.
 *
 * If two keys have the same id and algorithm, the first one is used.
 */
function createKeyRing(keys: readonly SigningKey[]): KeyRing {
  const ring = buildGetJwks({ max: Math.max(1, keys.length), ttl: Number.MAX_SAFE_INTEGER })
  // The cache is an LRUCache, although the library's own types do not say so.
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
      // The library returns a cached value as it was stored, not as a promise.
      return ring.getJwk({ domain: NOWHERE, alg, kid: name }) as unknown as SigningKey
    },
  }
}

/**
 * Returns the name of a key in the cache. The name of a key without an id is never the same as the name of a key with
 * an id.
 */
const nameOf = (alg: Algorithm, kid: string | null) => (kid === null ? alg : `${alg} ${kid}`)

/**
 * Creates a clock that counts milliseconds since its creation and ignores backward steps of the system clock. A
 * correction of the system time therefore neither makes old keys look younger nor stops the periodic downloads.
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
