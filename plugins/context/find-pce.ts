import { LRUCache } from 'lru-cache'
import type { PceClient } from '../../pce-client/index.js'
import type { Owner, Role } from '../../schemas/caller.js'
import type { Keystore, PceCredentials } from '../../schemas/credentials.js'
import { ToolError } from '../../schemas/errors.js'
import type { SealedCredentials } from '../../schemas/state.js'

export interface ConnectOptions {
  /** A single try: no request is repeated. */
  once?: boolean
  /** Its errors do not say why a connection failed. */
  isTerse?: boolean
}

/**
 * A client for the credentials; connects nothing yet. Throws ToolError where the host is not admitted or the server's own settings
 * fail.
 */
export type Connect = (credentials: PceCredentials, options?: ConnectOptions) => PceClient

export interface ContextLog {
  info(facts: object, message: string): void
  error(facts: object, message: string): void
}

/** The caller's PCE client; null without credentials, with `pceProblem` where the reason is not a missing registration. */
export interface FoundPce {
  pce: PceClient | null
  pceProblem?: ToolError
  /** Names the registration that `pce` was made from. */
  version?: string
}

/**
 * Looks the caller's record up for every request, so that a removal or a new registration in any process counts at once; only what
 * the pool does not have is decrypted and connected. Never rejects: a bad record, or a keystore that is down, must not keep a
 * client from listing the tools.
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
      // A reader may register any address, as everyone may, but operates nothing there (D48).
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

/** The PCE clients of the callers: one each, made for one version of their credentials, never handed to another caller. */
export interface PcePool {
  /**
   * The owner's client for these credentials. A client of another version is let go, since it holds a key that was replaced;
   * running calls keep it and finish. What `create` throws passes, and leaves the owner without a client.
   */
  clientOf(owner: Owner, version: string, create: () => PceClient): PceClient
  /** Lets the owner's client go. */
  drop(owner: Owner): void
  /** Lets all go. */
  close(): void
  readonly size: number
}

const MOST_CLIENTS = 1000
/** An unused client goes after this time, and the key it holds with it: milliseconds. */
const UNUSED_MS = 15 * 60_000

/** @param now milliseconds. Clients that were let go lose their idle connections at once, the others when they become idle. */
export function createPcePool(now: () => number, max = MOST_CLIENTS): PcePool {
  const held = new LRUCache<string, { version: string; client: PceClient }>({
    max,
    ttl: UNUSED_MS,
    updateAgeOnGet: true,
    // The clock is asked every time, not once a millisecond of the real one.
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

/** Different owners never share a key: a plain join of issuer and subject could read as another pair. */
const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])

/** Where a PCE is, in the spelling of the host guard. */
export interface PceEndpoint {
  host: string
  port: number
}

const MOST_PLACES = 1000
/** A place that was inspected this recently is not inspected again: milliseconds. */
const FRESH_MS = 60_000
/** How long a call waits for an inspection: milliseconds. */
const INSPECTION_MS = 1000

/**
 * `inspect` for every call, where no lookup of ours guards the connections: once a minute for each place, and a second at most.
 * Rejects as `inspect` does when the time is up, and the next call inspects again.
 *
 * @param now milliseconds.
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
