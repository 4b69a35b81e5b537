import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { PolicyContents } from './load-contents.js'
import type { RuleType } from './rule-type.js'

export type AnyRule = Rule | DenyRule

/** A rule that is in force, with the scopes of its rule set and the objects that it refers to. */
export interface RuleInForce {
  type: RuleType
  rule: AnyRule
  scopes: RuleSet['scopes']
  contents: PolicyContents
}
