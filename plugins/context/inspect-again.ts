import { LRUCache } from 'lru-cache'
import type { HostPolicy } from './ports.js'

const MOST_PLACES = 1000
/** What was seen so lately is not looked at again: milliseconds. */
const FRESH_MS = 60_000
/** A call waits for this: milliseconds. */
const PATIENCE_MS = 1000

/**
 * `inspect` for every call, where no lookup of ours stands before the connections: once a minute for each place, and a second at most.
 * Rejects as `inspect` does when the time is up, and the next call looks again.
 *
 * @param now milliseconds.
 */
export function inspectAgain(
  hosts: HostPolicy,
  now: () => number,
): (host: string, port: number) => Promise<string | null> {
  const seen = new LRUCache<string, { problem: string | null }>({
    max: MOST_PLACES,
    ttl: FRESH_MS,
    ttlResolution: 0,
    perf: { now },
  })
  return async (host, port) => {
    const place = JSON.stringify([host, port])
    const known = seen.get(place)
    if (known !== undefined) return known.problem
    const problem = await hosts.inspect(host, port, PATIENCE_MS)
    seen.set(place, { problem })
    return problem
  }
}
