import { isJudged, isStopped, JUDGED_DECISIONS, POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'

/**
 * All decisions, from the one that deserves attention first to the one that deserves it last: what is stopped, the
 * strictest first, then what is open, then what is allowed.
 */
export const DECISIONS_BY_CONCERN: readonly PolicyDecision[] = [
  ...JUDGED_DECISIONS.filter(isStopped).reverse(),
  ...POLICY_DECISIONS.filter((word) => !isJudged(word)),
  ...JUDGED_DECISIONS.filter((word) => !isStopped(word)),
]
