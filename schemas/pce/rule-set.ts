import { Type, type Static } from '@sinclair/typebox'
import { LabelGroupRef, LabelRef } from './label.js'
import {
  EXTERNAL_FIELDS,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OneOf,
  Reference,
  VERSIONED_FIELDS,
  type Read,
} from './reference.js'

export const ScopeEntry = Type.Object({
  label: Type.Optional(LabelRef),
  label_group: Type.Optional(LabelGroupRef),
  exclusion: MaybeFlag,
})
export type ScopeEntry = Static<typeof ScopeEntry>

/** The scopes of a rule set. Entries of an inner list are ANDed, the inner lists are ORed; `[[]]` means everything. */
export const Scopes = Type.Array(Type.Array(ScopeEntry))

/**
 * A provider or consumer of a rule, with exactly one field. Which fields are possible depends on the type of the rule
 * and differs between providers and consumers (P20, P21).
 */
export const Actor = Type.Object({
  actors: Type.Optional(OneOf('ams', 'container_host')),
  label: Type.Optional(LabelRef),
  label_group: Type.Optional(LabelGroupRef),
  /** A label dimension (key), which stands for all its labels; newer releases only. */
  label_dimension: Type.Optional(Type.String()),
  ip_list: Type.Optional(Type.Object({ href: Type.String(), name: Type.Optional(Type.String()) })),
  workload: Type.Optional(Type.Object({ href: Type.String(), name: MaybeText, hostname: MaybeText })),
  virtual_service: Type.Optional(Type.Object({ href: Type.String(), name: MaybeText })),
  virtual_server: Type.Optional(Reference),
  exclusion: MaybeFlag,
})
export type Actor = Static<typeof Actor>

/** A service of a rule: a service object by its href, a TCP or UDP port (range), or an ICMP type and code. */
export const IngressService = Type.Union([
  Reference,
  Type.Object({
    port: Type.Integer(),
    to_port: Type.Optional(Type.Integer()),
    proto: Type.Integer(),
    icmp_type: MaybeNumber,
    icmp_code: MaybeNumber,
  }),
])
export type IngressService = Static<typeof IngressService>

/** The fields that both rules and enforcement boundaries have. */
export const RULE_SIDES = {
  providers: Type.Array(Actor),
  consumers: Type.Array(Actor),
  ingress_services: Type.Array(IngressService),
}

export const NetworkType = OneOf('brn', 'non_brn', 'all')

const RULE_FIELDS = {
  ...VERSIONED_FIELDS,
  ...RULE_SIDES,
  enabled: Type.Boolean(),
  description: MaybeText,
  egress_services: MaybeList(Reference),
  unscoped_consumers: MaybeFlag,
  network_type: Type.Optional(NetworkType),
  /** True if the VEN logs the connections that the rule matches; this does not change what the rule matches. */
  log_flow: MaybeFlag,
  /** The fields `all_ips_except_for_in_…` exist only in release 26 and later. */
  all_ips_except_for_in_consumers: MaybeFlag,
  all_ips_except_for_in_providers: MaybeFlag,
}

/** An allow rule; its path segment is `sec_rules` (P20). */
export const Rule = Type.Object({
  ...RULE_FIELDS,
  ...EXTERNAL_FIELDS,
  resolve_labels_as: Type.Object({ providers: Type.Array(Type.String()), consumers: Type.Array(Type.String()) }),
  sec_connect: MaybeFlag,
  stateless: MaybeFlag,
  machine_auth: MaybeFlag,
  consuming_security_principals: MaybeList(Reference),
  use_workload_subnets: MaybeList(OneOf('providers', 'consumers')),
})
export type Rule = Read<typeof Rule>

/** A deny rule (P21). With `override: true` it is an override deny, which takes precedence over every allow rule. */
export const DenyRule = Type.Object({ ...RULE_FIELDS, override: MaybeFlag })
export type DenyRule = Read<typeof DenyRule>

/** A rule in the syntax of iptables. */
export const IpTablesRule = Type.Object({
  ...VERSIONED_FIELDS,
  enabled: Type.Boolean(),
  description: MaybeText,
  statements: Type.Array(
    Type.Object({
      table_name: OneOf('nat', 'mangle', 'filter'),
      chain_name: OneOf('PREROUTING', 'INPUT', 'OUTPUT', 'FORWARD', 'POSTROUTING'),
      parameters: Type.String(),
    }),
  ),
  actors: Type.Array(
    Type.Object({
      actors: Type.Optional(Type.String()),
      label: Type.Optional(LabelRef),
      label_group: Type.Optional(LabelGroupRef),
      workload: Type.Optional(Reference),
    }),
  ),
  ip_version: OneOf('4', '6'),
})
export type IpTablesRule = Read<typeof IpTablesRule>

/** A set of rules and the scopes to which they apply (P19). */
export const RuleSet = Type.Object({
  ...VERSIONED_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.String(),
  description: MaybeText,
  enabled: Type.Boolean(),
  scopes: Scopes,
  rules: MaybeList(Rule),
  /** Deny and override-deny rules. Absent on releases that do not support them. */
  deny_rules: MaybeList(DenyRule),
  ip_tables_rules: MaybeList(IpTablesRule),
})
export type RuleSet = Read<typeof RuleSet>

/** An enforcement boundary, which blocks traffic unless a rule allows it. Deny rules supersede boundaries (P22). */
export const EnforcementBoundary = Type.Object({
  ...VERSIONED_FIELDS,
  ...RULE_SIDES,
  name: Type.String(),
  enabled: MaybeFlag,
  network_type: Type.Optional(NetworkType),
})
export type EnforcementBoundary = Read<typeof EnforcementBoundary>
