import { decide } from '../policy/judge-end.js'
import type { Member } from './find-members.js'
import type { PairJudge, PairVerdict } from './judge-pair.js'

/**
 * Evaluates a connection for the time while one of its ends is offline. Returns null if neither end is known to be
 * offline. The PCE removes the addresses of an offline workload from the policy of other workloads, which then treat it
 * as an address without a workload. The offline workload itself keeps enforcing the policy that it received last (P78).
 */
export function judgeWhileOffline(
  judge: PairJudge,
  source: Member,
  destination: Member,
): Pick<PairVerdict, 'decision' | 'possible'> | null {
  if (source.isOffline !== true && destination.isOffline !== true) return null
  return decide(
    judge(source, destination.isOffline === true ? asAddress(destination) : destination).source,
    judge(source.isOffline === true ? asAddress(source) : source, destination).destination,
  )
}

const asAddress = (member: Member): Member => ({ ...member, workload: null, labels: {} })
