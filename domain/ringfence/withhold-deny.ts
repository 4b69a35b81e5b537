import type { Discovery } from './discover-flows.js'
import type { RingfencePlan } from './plan-ringfence.js'

/** Why a ringfence is left without its deny rule for now. */
export const DENY_WITHHELD =
  'the inbound traffic was not read in full, so sources that have no allow rule yet would be cut unseen. Call again with a shorter lookback_days to complete it.'

/**
 * A plan without its new deny rule where the inbound query reached its row limit: a source that was not read has no rule and is
 * not listed. What would be cut is still said of the whole ringfence. A deny rule that stands already is not concerned.
 */
export function withholdDeny(
  plan: RingfencePlan,
  { reads }: Pick<Discovery, 'reads'>,
): { plan: RingfencePlan; denyWithheld: boolean } {
  const newRules = plan.newRules.filter(({ need }) => need !== undefined)
  const denyWithheld = reads.inbound.truncated && newRules.length < plan.newRules.length
  return { plan: denyWithheld ? { ...plan, newRules } : plan, denyWithheld }
}
