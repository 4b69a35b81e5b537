import type { DenyRule } from '../../schemas/pce/rule-set.js'
import type { RULE_TYPES } from '../../schemas/rule-shapes.js'

export type RuleType = (typeof RULE_TYPES)[number]

/** Returns the type of a deny rule, depending on its override flag. */
export function denyType(rule: Pick<DenyRule, 'override'>): RuleType {
  return rule.override === true ? 'override_deny' : 'deny'
}
