import { isJudged, isStopped, JUDGED_DECISIONS, POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'

/**
 * All decisions in the order in which they deserve attention: first those that stop traffic now or once it is enforced,
 * the strictest first; then `unknown`; then `allowed`.
 */
export const DECISIONS_BY_CONCERN: readonly PolicyDecision[] = [
  ...JUDGED_DECISIONS.filter(isStopped).reverse(),
  ...POLICY_DECISIONS.filter((word) => !isJudged(word)),
  ...JUDGED_DECISIONS.filter((word) => !isStopped(word)),
]
