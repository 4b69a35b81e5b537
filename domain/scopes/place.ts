import type { RuleSet } from '../../schemas/pce/rule-set.js'

/**
 * Where an object stands in relation to a caller's scopes. `rule` names the condition that an object outside does not
 * meet, and `why` says it in a sentence about the object, without its name.
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

/** A rule, an allow rule or a deny rule, with the fields on which its reach depends. */
export type ReachingRule = Partial<NonNullable<RuleSet['rules']>[number]>
