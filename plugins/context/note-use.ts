import { LRUCache } from 'lru-cache'
import type { Identity, Owner } from '../../schemas/caller.js'
import type { People } from '../../schemas/state.js'

/** Minimum interval in milliseconds between two writes about one person. */
const REST_MS = 5 * 60_000
/**
 * Maximum number of people whose last write a process remembers. For all others, it reads the time of the last write
 * from the store.
 */
const MOST_KNOWN = 10_000

/**
 * Creates the function that notes that a person has used this server. It returns at once, because no call should wait
 * for this: the note is written to the store later. Across all processes, it is written at most once in five minutes
 * for each person. If it cannot be written, this is only logged.
 * @param now returns milliseconds since the epoch.
 */
export function createUseNotes({
  people,
  now,
  log,
}: {
  people: Pick<People, 'lastUse' | 'used'>
  now: () => number
  log: { info: (facts: object, message: string) => void }
}): (identity: Identity) => void {
  // All requests with the same token have the same identity object, so most requests need not compute the person's key.
  const checked = new WeakMap<Identity, number>()
  const known = new LRUCache<string, number>({ max: MOST_KNOWN })

  async function store(identity: Identity, at: number): Promise<void> {
    const { iss, sub, name } = identity
    const owner: Owner = { iss, sub }
    try {
      const earlier = await people.lastUse(owner)
      if (earlier !== null && isRecent(earlier.at, at)) {
        // Another process has written the note. The interval until the next write counts from that time.
        checked.set(identity, earlier.at)
        known.set(keyOf(owner), earlier.at)
        return
      }
      await people.used(owner, { at, ...(name !== undefined && { name }) })
    } catch (err) {
      log.info({ err }, 'when a person used this server last could not be stored')
    }
  }

  return (identity) => {
    const at = now()
    if (isRecent(checked.get(identity), at)) return
    checked.set(identity, at)
    const key = keyOf(identity)
    if (isRecent(known.get(key), at)) return
    known.set(key, at)
    setImmediate(() => void store(identity, at))
  }
}

/**
 * Returns true if the last write was less than the minimum interval ago. A time far in the future, which is possible if
 * the clock was set back, does not count as recent.
 */
const isRecent = (earlier: number | undefined, at: number): boolean =>
  earlier !== undefined && Math.abs(at - earlier) < REST_MS

const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])
