import { PceError, type PceClient } from '../../pce-client/index.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { fetchEvery } from './fetch-every.js'
import { mapBounded } from '../text/map-bounded.js'
import { parseHref } from './parse-href.js'

/** Requests for deny rules in flight at once. */
const IN_FLIGHT = 4

export interface WithDenyRules {
  ruleSet: RuleSet
  /** Why its deny rules could not be read. A rule set shown without them would look more permissive than it is. */
  error?: string
}

/** Rule sets with their deny rules: embedded ones as they are, else fetched, a few at a time. A cancelled call rejects. */
export function loadDenyRules(
  pce: PceClient,
  ruleSets: readonly RuleSet[],
  signal: AbortSignal,
): Promise<WithDenyRules[]> {
  return mapBounded(ruleSets, IN_FLIGHT, async (ruleSet) => {
    if (ruleSet.deny_rules !== undefined) return { ruleSet }
    try {
      const policyVersion = parseHref(ruleSet.href)?.version === 'active' ? 'active' : 'draft'
      const { items } = await fetchEvery({
        api: pce.denyRules,
        policyVersion,
        parent: ruleSet.href,
        params: {},
        signal,
      })
      return { ruleSet: { ...ruleSet, deny_rules: items } }
    } catch (error) {
      if (!(error instanceof PceError) || signal.aborted) throw error
      return { ruleSet, error: error.message }
    }
  })
}
