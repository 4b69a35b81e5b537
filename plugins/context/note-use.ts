import { LRUCache } from 'lru-cache'
import type { Identity, Owner } from '../../schemas/caller.js'
import type { People } from '../../schemas/state.js'

/** Minimum interval in milliseconds between two writes about one person. */
const REST_MS = 5 * 60_000
/** Maximum number of people whose last write a process remembers; of others it asks the store. */
const MOST_KNOWN = 10_000

/**
 * Creates the function that notes that a person has used this server. It returns at once: the store is written later,
 * beside the call, and at most once in five minutes for each person, whichever process they use. What cannot be written is
 * only logged, since nobody's call depends on it.
 *
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
  // The same identity object comes with every request of one token, so that most requests need no key.
  const checked = new WeakMap<Identity, number>()
  const known = new LRUCache<string, number>({ max: MOST_KNOWN })

  async function store(identity: Identity, at: number): Promise<void> {
    const { iss, sub, name } = identity
    const owner: Owner = { iss, sub }
    try {
      const earlier = await people.lastUse(owner)
      if (earlier !== null && isRecent(earlier.at, at)) {
        // Another process wrote it, and the rest counts from then.
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

/** Returns true if a time lies within the rest. A clock that was set back makes no time recent for ever. */
const isRecent = (earlier: number | undefined, at: number): boolean =>
  earlier !== undefined && Math.abs(at - earlier) < REST_MS

const keyOf = ({ iss, sub }: Owner) => JSON.stringify([iss, sub])
