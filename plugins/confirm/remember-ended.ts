import { LRUCache } from 'lru-cache'
import type { ApprovalEnding } from '../../schemas/state.js'

const MOST_REMEMBERED = 30_000

/**
 * Remembers, by id, how approvals, confirm tokens and states of questions ended in this process. The store records this
 * too. Its records are not sealed, however, so anyone who can write to the store could remove them, and a failover can
 * lose them (D240).
 */
export type Ended = Pick<LRUCache<string, ApprovalEnding>, 'get' | 'has' | 'set'>

/**
 * Creates an empty memory of what ended in this process. Beyond its limit, it forgets the entries that were not used
 * for the longest time.
 */
export const rememberEnded = (): Ended => new LRUCache<string, ApprovalEnding>({ max: MOST_REMEMBERED })

/**
 * Ends the approval, token or state with this id. `record` writes the end to the store, and resolves with true if the
 * store had not recorded it before. Of any number of overlapping calls, exactly one resolves with true, even if the
 * store's answers arrive in another order than it recorded them, or if somebody resets the record in between.
 */
export async function endOnce(
  endedHere: Ended,
  id: string,
  ending: ApprovalEnding,
  record: () => Promise<boolean>,
): Promise<boolean> {
  if (endedHere.has(id)) return false
  // A call that the store refused must leave no trace, because the answer of the call that won may still be on its way.
  const isFirst = (await record()) && !endedHere.has(id)
  if (isFirst) endedHere.set(id, ending)
  return isFirst
}
