import { LRUCache } from 'lru-cache'
import type { ApprovalEnding } from '../../schemas/state.js'

const MOST_REMEMBERED = 30_000

/**
 * How approvals, confirm tokens and states of questions ended in this process, by their ids. The records of it in the
 * store are not sealed, so whoever writes to the store can take them back, and a failover can lose them (D240).
 */
export type Ended = Pick<LRUCache<string, ApprovalEnding>, 'get' | 'has' | 'set'>

/** Creates the memory of what ended in this process, which is bounded. */
export const rememberEnded = (): Ended => new LRUCache<string, ApprovalEnding>({ max: MOST_REMEMBERED })

/**
 * Ends `id` with `record`, which resolves with whether the store recorded it first. Resolves with true for one of any
 * number of calls that overlap, also if their answers arrive in another order than the store recorded them, or if
 * somebody resets the record between them.
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
