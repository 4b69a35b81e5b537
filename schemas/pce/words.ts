/**
 * The PCE's own words and bounds that code needs when it runs. The shapes beside this file are types to what is shipped: no program
 * loads them, which its start would pay for.
 */

/** What a VEN does with traffic. */
export const ENFORCEMENT_MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
export type EnforcementMode = (typeof ENFORCEMENT_MODES)[number]

/** The built-in list that covers every address; its name is the same on every PCE. */
export const ANY_IP_LIST_NAME = 'Any (0.0.0.0/0 and ::/0)'

/** On releases before IPv6 lists, the built-in list has the second name (T15). */
export const ANY_IP_LIST_NAMES: readonly string[] = [ANY_IP_LIST_NAME, 'Any (0.0.0.0/0)']

/** The built-in service that covers every port and protocol. Its href differs per PCE, its name does not. */
export const ALL_SERVICES_NAME = 'All Services'

/** The lists of which a service has exactly one (P18). */
export const SERVICE_LISTS = ['service_ports', 'windows_services', 'windows_egress_services'] as const
export type ServiceList = (typeof SERVICE_LISTS)[number]

export const POLICY_DECISIONS = ['allowed', 'potentially_blocked', 'blocked', 'unknown'] as const
export type PolicyDecision = (typeof POLICY_DECISIONS)[number]

/** No traffic query returns more rows than this (P48). */
export const MAX_TRAFFIC_ROWS = 200_000

/** The most rows that the synchronous query may be asked for (P25). */
export const MAX_SYNCHRONOUS_TRAFFIC_ROWS = 100_000

/** The object types of a change subset: what can be provisioned, spelled as the path segment of their hrefs. */
export const CHANGE_SUBSET_TYPES = [
  'label_groups',
  'services',
  'rule_sets',
  'ip_lists',
  'virtual_services',
  'firewall_settings',
  'secure_connect_gateways',
  'virtual_servers',
  'enforcement_boundaries',
] as const
export type ChangeSubsetType = (typeof CHANGE_SUBSET_TYPES)[number]

/** What VENs can be counted by (P49). */
export const VEN_PROPERTIES = [
  'status',
  'version',
  'health',
  'condition',
  'os_id',
  'enforcement_mode',
  'ven_type',
] as const
