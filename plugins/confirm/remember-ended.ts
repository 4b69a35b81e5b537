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
