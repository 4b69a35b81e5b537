import type { Member } from './find-members.js'
import { decide, type PairJudge, type PairVerdict } from './judge-pair.js'

/**
 * What becomes of a connection for as long as an end of it is offline: the PCE takes its addresses out of the policy of others, so to the
 * other end it is an address that no workload has, while it goes on enforcing what it received last (P78). Null where both are online.
 */
export function judgeWhileOffline(
  judge: PairJudge,
  source: Member,
  destination: Member,
): Pick<PairVerdict, 'decision' | 'possible'> | null {
  if (!source.isOffline && !destination.isOffline) return null
  return decide(
    judge(source, destination.isOffline ? asAddress(destination) : destination).source,
    judge(source.isOffline ? asAddress(source) : source, destination).destination,
  )
}

const asAddress = (member: Member): Member => ({ ...member, workload: null, labels: {} })
