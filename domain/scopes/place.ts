import type { RuleSet } from '../../schemas/pce/rule-set.js'

/**
 * Whether an object is inside a caller's scopes. If it is not, `rule` names the condition that it does not meet, and
 * `why` says so in a sentence that does not contain the object's name.
 */
export type Place =
  { readonly is: 'inside' } | { readonly is: 'outside' | 'no_scope'; readonly rule: ScopeRule; readonly why: string }

/** The conditions of `Place`, as refusals name them. */
export type ScopeRule =
  | 'workload_labels'
  | 'rule_set_scope'
  | 'rule_ends'
  | 'extra_scope'
  | 'virtual_service'
  | 'profile_labels'
  | 'address_taken'
  | 'no_scope'
  | 'not_readable'
  | 'protected_label'
  | 'protected_workload'
  | 'not_judged'

/** An allow or deny rule with the fields that determine which objects it reaches. */
export type ReachingRule = Partial<NonNullable<RuleSet['rules']>[number]>
