/**
 * The names and limits of the PCE that the program needs at run time. They are separate from the schemas in this
 * folder, because the shipped program uses the schemas only for their types, and loading them would slow its start.
 */

/** Name of the built-in IP list that covers every address; it is the same on every PCE. */
export const ANY_IP_LIST_NAME = 'Any (0.0.0.0/0 and ::/0)'

/**
 * The possible names of the IP list that covers every address. Releases without IPv6 lists use the second name (T15).
 */
export const ANY_IP_LIST_NAMES: readonly string[] = [ANY_IP_LIST_NAME, 'Any (0.0.0.0/0)']

/**
 * Name of the built-in service that covers every port and protocol. Its href differs between PCEs, its name does not.
 */
export const ALL_SERVICES_NAME = 'All Services'

/** Name of the network to which endpoints belong while they are outside the corporate network (P107). */
export const EXTERNAL_NETWORK = 'External'

/** The names of the three lists of ports or processes that a service has. Exactly one of the lists is in use (P18). */
export const SERVICE_LISTS = ['service_ports', 'windows_services', 'windows_egress_services'] as const
export type ServiceList = (typeof SERVICE_LISTS)[number]

/** Maximum number of rows that the PCE returns for a single traffic query (P48). */
export const MAX_TRAFFIC_ROWS = 200_000

/** Maximum value of `max_results` that the PCE accepts in a synchronous traffic query (P25). */
export const MAX_SYNCHRONOUS_TRAFFIC_ROWS = 100_000

/**
 * The object types that can be provisioned, and so the possible fields of a change subset. The name of each type is the
 * path segment that stands for it in the hrefs of its objects.
 */
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

/** The properties by which VENs can be counted (P49). */
export const VEN_PROPERTIES = [
  'status',
  'version',
  'health',
  'condition',
  'os_id',
  'enforcement_mode',
  'ven_type',
] as const
