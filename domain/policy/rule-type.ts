import type { SearchRuleType } from '../../schemas/pce/policy.js'
import type { DenyRule } from '../../schemas/pce/rule-set.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'

export type RuleType = (typeof RULE_TYPES)[number]

/**
 * For each type of rule, its rank in the order in which types decide about a connection (P50), and its name in the
 * PCE's rule searches and policy checks.
 */
const TYPES = {
  override_deny: { place: 1, pceName: 'override_deny_rules' },
  allow: { place: 2, pceName: 'sec_rules' },
  deny: { place: 3, pceName: 'deny_rules' },
} as const satisfies Record<RuleType, { place: number; pceName: SearchRuleType }>

/** The order in which rule types decide about a connection (P50): the first type that has a matching rule decides. */
export const DECIDING_ORDER: readonly RuleType[] = RULE_TYPES.toSorted((a, b) => TYPES[a].place - TYPES[b].place)

/** Returns the name of a rule type in the PCE's rule searches and policy checks. */
export const pceNameOf = (type: RuleType) => TYPES[type].pceName

/** Returns the type of a deny rule, depending on its override flag. */
export function denyType(rule: Pick<DenyRule, 'override'>): RuleType {
  return rule.override === true ? 'override_deny' : 'deny'
}
