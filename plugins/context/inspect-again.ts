import { setTimeout as wait } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { HostPolicy } from './ports.js'

const MOST_PLACES = 1000
/** What was seen so lately is not looked at again: milliseconds. */
const FRESH_MS = 60_000
/** Calls wait for this: where no name service answers, they must go on. */
const PATIENCE_MS = 1000

/**
 * `inspect` for every call, where no lookup of ours stands before the connections: once a minute for each place, and a second at most.
 * Never rejects.
 *
 * @param now milliseconds.
 */
export function inspectAgain(hosts: HostPolicy, now: () => number): HostPolicy['inspect'] {
  const seen = new LRUCache<string, Promise<string | null>>({
    max: MOST_PLACES,
    ttl: FRESH_MS,
    ttlResolution: 0,
    perf: { now },
  })
  return (host, port) => {
    const place = JSON.stringify([host, port])
    let seeing = seen.get(place)
    if (seeing === undefined) {
      const given = new AbortController()
      const timeUp = wait(PATIENCE_MS, null, { signal: given.signal }).catch(() => null)
      seeing = Promise.race([hosts.inspect(host, port), timeUp]).finally(() => given.abort())
      seen.set(place, seeing)
    }
    return seeing
  }
}
