import { LRUCache } from 'lru-cache'
import type { PceClient } from '../../pce-client/index.js'
import type { Owner, Role } from '../../schemas/caller.js'
import type { Keystore, PceCredentials } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import type { SealedCredentials } from '../../schemas/state.js'

export interface ConnectOptions {
  /** If true, the client never repeats a request after a failure. */
  once?: boolean
  /** If true, errors do not say why a connection failed. */
  isTerse?: boolean
}

/**
 * Creates a client for the credentials, without connecting. Throws ToolError if the host is not permitted or the
 * server's own settings are invalid.
 */
export type Connect = (credentials: PceCredentials, options?: ConnectOptions) => PceClient

export interface ContextLog {
  info(facts: object, message: string): void
  error(facts: object, message: string): void
}

/**
 * The client for the caller's PCE. If it is null, `pceProblem` gives the reason; if both are missing, the caller has no
 * credentials.
 */
export interface FoundPce {
  pce: PceClient | null
  pceProblem?: ToolError
  /** The version of the registered credentials for which `pce` was created. */
  version?: string
}

/**
 * Creates the function that returns a caller's PCE client. It looks up the keystore record for every request, so that a
 * removal or a new registration in any process takes effect at once. It decrypts the record and creates a client only
 * if the pool has no client for this record. The function never rejects: even with a damaged record or an unavailable
 * keystore, a client must be able to list the tools.
 */
export function createPceFinder(ports: {
  keystore: Pick<Keystore, 'find'>
  pool: PcePool
  connect: Connect
  log: ContextLog
}): (owner: Owner, role: Role, fetched?: SealedCredentials | null) => Promise<FoundPce> {
  const { keystore, pool, connect, log } = ports
  return async (owner, role, fetched) => {
    try {
      const record = await keystore.find(owner, fetched)
      if (record === null) {
        pool.drop(owner)
        return { pce: null }
      }
      // A caller with the role `reader` is not told why a connection failed. Like everyone, such a caller may register
      // any address, but does not operate the PCE at that address (D48).
      const isTerse = role === 'reader'
      const variant = `${isTerse ? 'terse' : 'full'} ${record.version}`
      const pce = pool.clientOf(owner, variant, () => connect(record.open(), { isTerse }))
      return { pce, version: record.version }
    } catch (error) {
      if (error instanceof ToolError) return { pce: null, pceProblem: error }
      log.error({ err: error }, 'looking up the PCE credentials of a caller failed')
      const problem = new ToolError('keystore_unavailable', 'Your PCE credentials cannot be looked up now.')
      return { pce: null, pceProblem: problem }
    }
  }
}

/**
 * The PCE clients of all callers. Each caller has at most one client, which was created for one version of the caller's
 * credentials and is never used for anyone else.
 */
export interface PcePool {
  /**
   * Returns the owner's client for this version of the credentials. If the owner has a client for another version, that
   * client is dropped, because its key has been replaced; calls that already use it can finish. If `create` throws, the
   * error is passed on, and the owner has no client.
   */
  clientOf(owner: Owner, version: string, create: () => PceClient): PceClient
  /** Drops the owner's client from the pool. */
  drop(owner: Owner): void
  /** Drops all clients from the pool. */
  close(): void
  readonly size: number
}

const MOST_CLIENTS = 1000
/** The time, in milliseconds, after which an unused client is dropped together with its key. */
const UNUSED_MS = 15 * 60_000

/**
 * Creates the pool. When a client is dropped, it closes its idle connections at once, and every other connection as
 * soon as that becomes idle.
 *
 * @param now returns milliseconds.
 */
export function createPcePool(now: () => number, max = MOST_CLIENTS): PcePool {
  const held = new LRUCache<string, { version: string; client: PceClient }>({
    max,
    ttl: UNUSED_MS,
    updateAgeOnGet: true,
    // With a resolution of 0, the cache always reads the given clock; by default, it would reuse a reading for a
    // millisecond of real time.
    ttlResolution: 0,
    perf: { now },
    dispose: ({ client }) => client.close(),
  })
  return {
    clientOf(owner, version, create) {
      const key = keyOf(owner)
      const current = held.get(key)
      if (current?.version === version) return current.client
      held.delete(key)
      held.purgeStale()
      const client = create()
      held.set(key, { version, client })
      return client
    },
    drop: (owner) => void held.delete(keyOf(owner)),
    close: () => held.clear(),
    get size() {
      return held.size
    },
  }
}

/**
 * Returns a key that is unique for each owner. Issuer and subject are not simply joined, because two different pairs
 * could then give the same text.
 */
const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])

/** The address of a PCE, with the host in the canonical form that the host guard returns. */
export interface PceEndpoint {
  host: string
  port: number
}

const MOST_PLACES = 1000
/** The time, in milliseconds, for which the result of inspecting a PCE's address is reused. */
const FRESH_MS = 60_000
/** Maximum time, in milliseconds, for which a call waits while a PCE's address is inspected. */
const INSPECTION_MS = 1000

/**
 * Returns a version of `inspect`, which checks the addresses of a PCE's host, that is fast enough to run before every
 * call. It is for servers that cannot guard their connections because a proxy looks names up. A result is reused for a
 * minute, and a call waits at most a second for an inspection. After this second, the function rejects with the error
 * of `inspect`, and the next call inspects the location again.
 *
 * @param now returns milliseconds.
 */
export function inspectAgain(
  inspect: (host: string, port: number, patienceMs: number) => Promise<string | null>,
  now: () => number,
): (place: PceEndpoint) => Promise<string | null> {
  const seen = new LRUCache<string, { problem: string | null }>({
    max: MOST_PLACES,
    ttl: FRESH_MS,
    ttlResolution: 0,
    perf: { now },
  })
  return async ({ host, port }) => {
    const place = JSON.stringify([host, port])
    const known = seen.get(place)
    if (known !== undefined) return known.problem
    const problem = await inspect(host, port, INSPECTION_MS)
    seen.set(place, { problem })
    return problem
  }
}
