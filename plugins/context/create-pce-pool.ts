import { LRUCache } from 'lru-cache'
import type { PceClient } from '../../pce-client/index.js'
import type { Owner } from '../../schemas/caller.js'

/** The PCE clients of the callers: one each, made for one version of their credentials, never handed to anybody else. */
export interface PcePool {
  /**
   * The owner's client for these credentials. One of another version is let go, since it holds a key that was replaced; calls under
   * way keep it and finish. What `create` throws passes, and leaves the owner without a client.
   */
  clientOf(owner: Owner, version: string, create: () => PceClient): PceClient
  /** Lets the owner's client go. */
  drop(owner: Owner): void
  /** Lets all go. */
  close(): void
  readonly size: number
}

interface Held {
  version: string
  client: PceClient
}

const MOST_CLIENTS = 1000
/** A client that nobody has used for so long goes, and the key it holds with it: milliseconds. */
const UNUSED_MS = 15 * 60_000

/** @param now milliseconds. Clients that were let go lose their idle connections at once, the others when they become idle. */
export function createPcePool(now: () => number, max = MOST_CLIENTS): PcePool {
  const held = new LRUCache<string, Held>({
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

/** Two different owners never have the same key: a plain join of issuer and subject could read as another pair. */
const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])
