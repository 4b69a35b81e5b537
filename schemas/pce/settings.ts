import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import {
  AUDIT_FIELDS,
  List,
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OneOf,
  Reference,
  VERSIONED_FIELDS,
  type Read,
} from './reference.js'
import { Scopes } from './rule-set.js'

/**
 * The fields of a kind that consists of a single object. Since the path of such an object is always the same, some
 * releases leave out its href.
 */
const SINGLE_FIELDS = { href: Type.Optional(Type.String()), ...AUDIT_FIELDS, caps: MaybeList(Type.String()) }

const Weekday = OneOf('sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday')

/** Settings of the organisation as a whole. */
export const OrgSettings = Type.Object({
  ...SINGLE_FIELDS,
  num_assets_requiring_ransomware_protection: Maybe(Type.Integer()),
  total_lateral_address_space: Maybe(Type.Integer()),
  total_internet_address_space: Maybe(Type.Integer()),
  automatic_label_application_on_ven_activation: MaybeFlag,
  rule_based_label_maker_schedule_enabled: MaybeFlag,
  rule_based_label_maker_schedule: Maybe(
    Type.Object({
      schedule_time: MaybeText,
      frequency: Type.Optional(OneOf('daily', 'weekly', 'monthly')),
      day_of_week: MaybeList(Weekday),
      day_of_month: MaybeNumber,
    }),
  ),
  max_explorer_query_timespan_days: MaybeNumber,
  /** Maximum lifetime of API keys; -1 means that they never expire. */
  max_api_key_expiration_in_seconds: MaybeNumber,
  expired_api_keys_retention_in_seconds: MaybeNumber,
  advanced_ruleset_display: MaybeFlag,
  ven_maintenance_token_required: MaybeFlag,
  cloud_secure_tenant_id: MaybeText,
  use_census_permissions: MaybeFlag,
  max_rule_search_provider_consumer_entities: MaybeNumber,
})
export type OrgSettings = Read<typeof OrgSettings>

/** The settings for events: which are kept, for how long, and in which format they are exported. */
export const EventSettings = Type.Object({
  ...SINGLE_FIELDS,
  audit_event_retention_seconds: Type.Integer(),
  audit_event_min_severity: OneOf('error', 'warning', 'informational'),
  format: Type.String(),
})
export type EventSettings = Read<typeof EventSettings>

export const ReportSettings = Type.Object({
  ...SINGLE_FIELDS,
  max_queued_reports: MaybeNumber,
  report_retention_days: MaybeNumber,
})
export type ReportSettings = Read<typeof ReportSettings>

const SCOPED = { scope: List(Reference), ven_type: Maybe(OneOf('server', 'endpoint')) }
const TimeoutByScope = Type.Object({ ...SCOPED, value: Type.Integer() })

/**
 * Periods of time for VENs, each with the scope to which it applies: for example, how long a VEN that no longer reports
 * counts as online. -1 means for ever.
 */
export const WorkloadSettings = Type.Object({
  ...SINGLE_FIELDS,
  workload_disconnected_timeout_seconds: List(TimeoutByScope),
  workload_goodbye_timeout_seconds: List(TimeoutByScope),
  workload_disconnected_notification_seconds: List(Type.Object({ ...SCOPED, warning: Type.Integer() })),
  ven_uninstall_timeout_hours: List(TimeoutByScope),
})
export type WorkloadSettings = Read<typeof WorkloadSettings>

/** The addresses of the proxies that the PCE trusts when they state the address of the caller. */
export const TrustedProxyIps = Type.Object({
  ...SINGLE_FIELDS,
  max_trusted_proxy_ips_per_region: Type.Integer(),
  trusted_proxy_ips: List(Type.Object({ pce_fqdn: Nullable(Type.String()), ip: Type.String() })),
})
export type TrustedProxyIps = Read<typeof TrustedProxyIps>

/** An optional feature, as an element of the list of features. Features have names but no paths of their own. */
export const OptionalFeature = Type.Object({ name: Type.String(), enabled: Type.Boolean(), preview: MaybeFlag })
export type OptionalFeature = Read<typeof OptionalFeature>

const MaybeScopes = Maybe(Scopes)
/** The policy settings, which are a single object (P27). In old releases, its href ends in /1 and its fields differ. */
export const FirewallSettings = Type.Object({
  ...VERSIONED_FIELDS,
  ike_authentication_type: MaybeText,
  firewall_coexistence: MaybeList(
    Type.Object({ scope: List(Reference), workload_mode: MaybeText, illumio_primary: Type.Boolean() }),
  ),
  allow_captive_portal_outbound: MaybeFlag,
  static_policy_scopes: MaybeScopes,
  containers_inherit_host_policy_scopes: MaybeScopes,
  blocked_connection_reject_scopes: MaybeScopes,
  loopback_interfaces_in_policy_scopes: MaybeScopes,
  ip_forwarding_enabled_scopes: MaybeScopes,
  rule_hit_count_enabled_scopes: MaybeScopes,
})
export type FirewallSettings = Read<typeof FirewallSettings>
