import buildGetJwks from 'get-jwks'
import { ToolError } from '../../schemas/errors.js'
import { downloadKeys, selectKeys, type SigningKey } from './fetch-keys.js'
import type { Algorithm } from './read-token.js'

/** Runs `fn` after `ms` milliseconds. Returns a function that cancels this. */
export type Schedule = (fn: () => void, ms: number) => () => void

interface SigningKeysOptions {
  url: string
  fetch: typeof globalThis.fetch
  /** Returns milliseconds since the epoch. */
  now: () => number
  schedule: Schedule
  /** Called when new keys replace different ones. `count` is the number of new keys. */
  changed: (count: number) => void
  /** Called when a download has ended. `isLoaded` is true if the download contained usable keys. */
  fetched?: (isLoaded: boolean) => void
  /** Called when a download has failed. `ageSeconds` is the age of the keys in use; null if there are none. */
  failed: (error: unknown, ageSeconds: number | null) => void
}

/** The public keys with which tokens of the identity provider are verified. */
export interface SigningKeys {
  /**
   * Returns the key that a token names, or null if there is no such key. The result is a promise only if no keys are
   * loaded or the loaded ones must be refreshed. The promise rejects with ToolError `keys_unavailable {retry_after}` if
   * no keys were ever loaded, or if the last loaded ones are at least an hour old.
   */
  find(alg: Algorithm, kid: string | null): SigningKey | null | Promise<SigningKey | null>
  /**
   * Returns an object that identifies the current set of keys. Returns null if no usable keys are loaded, or if they
   * must be refreshed.
   */
  edition(): object | null
  /**
   * Downloads the keys again, because a token names an unknown key. Does nothing if the previous attempt was less than
   * 30 s ago. Never rejects.
   */
  refetch(): Promise<void>
  /**
   * Downloads the keys for the first time, and then again at regular intervals. If the provider is down, the download
   * is repeated. Never rejects.
   */
  load(): Promise<void>
  /** Returns true if there are keys with which tokens can be verified. */
  isLoaded(): boolean
  close(): void
}

const SECOND = 1000
/** Minimum interval, in milliseconds, between downloads other than the regular ones (D13). */
const RETRY_AFTER = 30 * SECOND
const REFRESH_EVERY = 9 * 60 * SECOND
/**
 * The age, in milliseconds, up to which keys are used without a refresh. Older keys are refreshed before they are used,
 * so that withdrawn keys are no longer accepted.
 */
const FRESH_FOR = 10 * 60 * SECOND
/** The age, in milliseconds, up to which keys are used while the provider is down. */
const STALE_FOR = 3600 * SECOND

/**
 * Creates the store of the provider's keys. There is only one download at a time. A failed download is reported to
 * `failed` and never throws.
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
   * Puts downloaded keys into use. If they equal the current keys, the current objects are kept, so that everything
   * cached for those objects stays valid.
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
      // While the provider is down, the old keys are used without waiting for the new download, unless they are too
      // old.
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

/** The usable keys of one download of the key set. */
interface KeyRing {
  /**
   * Returns the key with this algorithm and id. For a token without a key id, returns the only key with this algorithm.
   * Returns null if there is no such key.
   */
  find(alg: Algorithm, kid: string | null): SigningKey | null
}

/** An address that leads nowhere. It keeps get-jwks off the network if a key is not in its cache. */
const NOWHERE = 'urn:no-network/'

/**
 * Creates a key ring, which looks keys up in the cache of get-jwks. The cache is filled here with the whole set.
 * get-jwks itself must not download keys: its fetch has no effective time-out and no size limit, follows redirects, and
 * sends a request for every unknown id. It would also know only the requested keys, and could not tell whether a key is
 * the only one for its algorithm.
 *
 * If two keys have the same id and algorithm, the first one is used.
 */
function createKeyRing(keys: readonly SigningKey[]): KeyRing {
  const ring = buildGetJwks({ max: Math.max(1, keys.length), ttl: Number.MAX_SAFE_INTEGER })
  // The cache is an LRUCache, although the library's own types do not declare that.
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
      // For a key in its cache, the library returns the key itself and not a promise.
      return ring.getJwk({ domain: NOWHERE, alg, kid: name }) as unknown as SigningKey
    },
  }
}

/** Returns the name of a key in the cache. A key without an id never has the same name as a key with an id. */
const nameOf = (alg: Algorithm, kid: string | null) => (kid === null ? alg : `${alg} ${kid}`)

/**
 * Creates a clock that counts milliseconds since its creation and never goes back, even if the system clock does. A
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
