import { Type } from '@sinclair/typebox'
import { Maybe, MaybeFlag, MaybeText, OneOf, VERSIONED_FIELDS, type Read, type Reference } from './reference.js'
import { DenyRule, Rule, Scopes } from './rule-set.js'

/** The rule set of a rule that is answered by itself. */
const RuleSetSummary = Type.Object({
  href: Type.String(),
  name: Type.Optional(Type.String()),
  enabled: MaybeFlag,
  scopes: Maybe(Scopes),
})

/** An allow rule with its rule set. */
export const CheckedRule = Type.Object({ ...Rule.properties, rule_set: Maybe(RuleSetSummary) })
export type CheckedRule = Read<typeof CheckedRule>

/** A deny rule with its rule set. */
export const CheckedDenyRule = Type.Object({ ...DenyRule.properties, rule_set: Maybe(RuleSetSummary) })
export type CheckedDenyRule = Read<typeof CheckedDenyRule>

/** The rules that decide about traffic between two ends (P27). */
export const PolicyCheck = Type.Object({
  sec_rules: Type.Array(CheckedRule),
  deny_rules: Type.Array(CheckedDenyRule),
  override_deny_rules: Type.Array(CheckedDenyRule),
})
export type PolicyCheck = Read<typeof PolicyCheck>

export const RULE_TYPES = ['sec_rules', 'deny_rules', 'override_deny_rules', 'ip_tables_rules'] as const
export type RuleType = (typeof RULE_TYPES)[number]

/** A rule that a search found: of any type, so that only what all rules have is described. */
export const FoundRule = Type.Object({
  ...VERSIONED_FIELDS,
  rule_type: OneOf(...RULE_TYPES),
  enabled: Type.Boolean(),
  description: MaybeText,
  rule_set: Maybe(RuleSetSummary),
})
export type FoundRule = Read<typeof FoundRule>

/** Criteria of a rule search; a rule must meet all that are given (P27). */
export interface RuleSearchQuery {
  enabled?: boolean
  description?: string
  ingress_services?: object[]
  providers?: object[]
  consumers?: object[]
  consuming_security_principals?: Reference[]
  unscoped_consumers?: boolean
  sec_connect?: boolean
  machine_auth?: boolean
  stateless?: boolean
  update_type?: 'create' | 'update' | 'delete'
  /** Also find rules that reach an actor through a label, a group or a network. */
  resolve_actors?: boolean
  rule_types?: readonly RuleType[]
  [field: string]: unknown
}
