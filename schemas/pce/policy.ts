import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import {
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  Reference,
  UpdateType,
  VERSIONED_FIELDS,
  type Read,
} from './reference.js'
import { CHANGE_SUBSET_TYPES, type ChangeSubsetType } from './words.js'
import { Scopes, Rule, DenyRule } from './rule-set.js'

/** Creates an object with one field for each object type that can be provisioned. */
const byType = <T>(value: T) =>
  Object.fromEntries(CHANGE_SUBSET_TYPES.map((type) => [type, value])) as Record<ChangeSubsetType, T>

/** The draft hrefs of a set of changes, by object type. The PCE refuses any other field. */
export const ChangeSubset = Type.Object(byType(Type.Optional(Type.Array(Reference))))
export type ChangeSubset = Static<typeof ChangeSubset>

export const PendingChange = Type.Object({
  href: Type.String(),
  name: Type.Optional(Type.String()),
  update_type: Type.Optional(UpdateType),
  updated_at: Type.Optional(Type.String()),
  updated_by: Type.Optional(Reference),
  caps: Type.Optional(Type.Array(Type.String())),
})
export type PendingChange = Static<typeof PendingChange>

/**
 * Answer of `GET /sec_policy/pending`: the changes grouped by type. firewall_settings may be a single object instead of
 * a list.
 */
export type PendingChanges = Partial<Record<ChangeSubsetType, PendingChange[] | PendingChange>>

/** A pending draft change, together with its type. */
export const TypedPendingChange = Type.Object({
  ...PendingChange.properties,
  type: Type.Unsafe<ChangeSubsetType>(Type.String()),
})
export type TypedPendingChange = Static<typeof TypedPendingChange>

/** The policy version that a provisioning has created. */
export const PolicyVersion = Type.Object({
  ...OBJECT_FIELDS,
  version: Type.Integer(),
  /** Number of affected workloads. It may be null or 0 at first, because the PCE computes it only after answering. */
  workloads_affected: Maybe(Type.Integer()),
  commit_message: MaybeText,
  /** Number of active objects of each type after the provisioning. */
  object_counts: Type.Optional(Type.Record(Type.String(), Type.Integer())),
})
export type PolicyVersion = Read<typeof PolicyVersion>

/** An object that must be part of a set of changes, and the objects that require it. */
export const PolicyDependency = Type.Object({
  dependency: Type.Object(byType(Type.Optional(Reference))),
  required_by: Type.Object(byType(Type.Optional(Type.Array(Reference)))),
})
export type PolicyDependency = Static<typeof PolicyDependency>

/** The numbers of objects that a set of changes would affect, by type of object. */
export const PolicyImpact = Type.Object({
  num_sets: Type.Integer(),
  num_virtual_servers: MaybeNumber,
  num_managed_workloads: Type.Integer(),
  num_container_workloads: MaybeNumber,
  num_unmanaged_workloads: Type.Integer(),
  /** True if the counts are approximate because there are very many changes. */
  all_workloads_optimization: MaybeFlag,
})
export type PolicyImpact = Static<typeof PolicyImpact>

/** An object that a policy version changed, or that the draft would change. */
export const ModifiedPolicyObject = Type.Object({
  href: Type.String(),
  object_type: Type.String(),
  update_type: Nullable(UpdateType),
  name: MaybeText,
  updated_at: Type.String(),
  updated_by: Maybe(Reference),
  caps: MaybeList(Type.String()),
})
export type ModifiedPolicyObject = Read<typeof ModifiedPolicyObject>

/** A summary of the rule set to which a rule belongs, for rules that are returned on their own. */
const RuleSetSummary = Type.Object({
  href: Type.String(),
  name: Type.Optional(Type.String()),
  enabled: MaybeFlag,
  scopes: Maybe(Scopes),
})

/** An allow rule, with a summary of the rule set to which it belongs. */
export const CheckedRule = Type.Object({ ...Rule.properties, rule_set: Maybe(RuleSetSummary) })
export type CheckedRule = Read<typeof CheckedRule>

/** A deny rule, with a summary of the rule set to which it belongs. */
export const CheckedDenyRule = Type.Object({ ...DenyRule.properties, rule_set: Maybe(RuleSetSummary) })
export type CheckedDenyRule = Read<typeof CheckedDenyRule>

/** The rules that apply to traffic between two endpoints (P27). */
export const PolicyCheck = Type.Object({
  sec_rules: Type.Array(CheckedRule),
  deny_rules: Type.Array(CheckedDenyRule),
  override_deny_rules: Type.Array(CheckedDenyRule),
})
export type PolicyCheck = Read<typeof PolicyCheck>

export const SEARCH_RULE_TYPES = ['sec_rules', 'deny_rules', 'override_deny_rules', 'ip_tables_rules'] as const
export type SearchRuleType = (typeof SEARCH_RULE_TYPES)[number]

/** A rule found by a search. It may be of any type, so only the fields that all rules have are described. */
export const FoundRule = Type.Object({
  ...VERSIONED_FIELDS,
  rule_type: OneOf(...SEARCH_RULE_TYPES),
  enabled: Type.Boolean(),
  description: MaybeText,
  rule_set: Maybe(RuleSetSummary),
})
export type FoundRule = Read<typeof FoundRule>

/** Criteria of a rule search. A rule is found if it meets all of them (P27). */
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
  /**
   * If true, a rule is also found if it includes a given provider or consumer only indirectly: through a label, a group
   * or a network.
   */
  resolve_actors?: boolean
  rule_types?: readonly SearchRuleType[]
  [field: string]: unknown
}
