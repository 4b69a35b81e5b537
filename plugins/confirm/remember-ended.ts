import { LRUCache } from 'lru-cache'
import type { ApprovalEnding } from '../../schemas/state.js'

const MOST_REMEMBERED = 30_000

/**
 * A memory of how approvals, confirm tokens and question states ended in this process, by id. The store records this
 * too. Its records are not sealed, however, so anyone who can write to the store could remove them, and a failover can
 * lose them (D240).
 */
export interface Ended {
  get(id: string): ApprovalEnding | undefined
  has(id: string): boolean
  set(id: string, ending: ApprovalEnding): void
}

/**
 * Creates an empty memory of what ended in this process. If it is full, it forgets the entries that were not used for
 * the longest time.
 */
export function rememberEnded(): Ended {
  // The library's cache takes the memory for all of its entries at once, so it is created with the first entry.
  let ended: LRUCache<string, ApprovalEnding> | undefined
  return {
    get: (id) => ended?.get(id),
    has: (id) => ended?.has(id) === true,
    set: (id, ending) => void (ended ??= new LRUCache({ max: MOST_REMEMBERED })).set(id, ending),
  }
}

/**
 * Ends the approval, confirm token or question state with this id. `record` writes the end to the store, and resolves
 * with true if the store had not recorded it before. Of any number of overlapping calls of this function, exactly one
 * resolves with true, even if the store's answers arrive in another order than it recorded the ends, or if somebody
 * resets the record in between.
 */
export async function endOnce(
  endedHere: Ended,
  id: string,
  ending: ApprovalEnding,
  record: () => Promise<boolean>,
): Promise<boolean> {
  if (endedHere.has(id)) return false
  // Of several calls, the store answers true only to the first, but this answer may arrive last. A call that gets false
  // must therefore not remember the end, because the first call would then also resolve with false.
  const isFirst = (await record()) && !endedHere.has(id)
  if (isFirst) endedHere.set(id, ending)
  return isFirst
}
