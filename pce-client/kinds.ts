import type { KIND_SCHEMAS } from '../schemas/pce/kinds.js'
import type { Read } from '../schemas/pce/reference.js'

export type Verb = 'GET' | 'POST' | 'PUT' | 'DELETE'
export type BulkVerb = 'create' | 'update' | 'delete'

interface KindTraits {
  /** True if the kind consists of a single object, whose path has no id. */
  single?: boolean
  /**
   * The form of the id with which an object's href ends. `chosen` means that the caller chooses the id when creating
   * the object.
   */
  id?: 'int' | 'uuid' | 'string' | 'name' | 'sid' | 'chosen'
  /**
   * The way to find objects by name: `filter` if the PCE can filter a list by (part of) the name, `field` if objects
   * have a name but the PCE cannot filter by it. Absent for kinds whose objects have no name: a label consists of a key
   * and a value, and a rule is known only by its href.
   */
  name?: 'filter' | 'field'
  /** Attribute name of the parent object's kind. Absent if objects of this kind have no parent object. */
  parent?: string
  bulk?: readonly BulkVerb[]
  /** True if the body and the answer of a creating POST are arrays. */
  arrayCreate?: boolean
  /** Maximum number of objects in one synchronous answer, regardless of max_results. */
  pageLimit?: number
}

/** One object kind of the specification, and the operations that the API allows for it. */
export interface Kind extends KindTraits {
  /** The name of the client's attribute for this kind, as in the specification. */
  specName: string
  /** Path below `/api/<version>`. `{parent}` stands for the last segment of the parent's href. */
  path: string
  underOrg: boolean
  /** True if the kind has draft and active versions; writes go to the draft. */
  versioned: boolean
  collectionVerbs: readonly Verb[]
  itemVerbs: readonly Verb[]
}

type Verbs = readonly [collection: readonly Verb[], item: readonly Verb[]]

const CRUD: Verbs = [
  ['GET', 'POST'],
  ['GET', 'PUT', 'DELETE'],
]
const GET_ONE: Verbs = [['GET'], []]
const GET_PUT: Verbs = [['GET', 'PUT'], []]
const READ_UPDATE: Verbs = [['GET'], ['GET', 'PUT']]
const READ: Verbs = [['GET'], ['GET']]
const READ_DELETE: Verbs = [['GET'], ['GET', 'DELETE']]
const READ_UPDATE_DELETE: Verbs = [['GET'], ['GET', 'PUT', 'DELETE']]
const CREATE_READ_UPDATE: Verbs = [
  ['GET', 'POST'],
  ['GET', 'PUT'],
]
const CREATE_READ_DELETE: Verbs = [
  ['GET', 'POST'],
  ['GET', 'DELETE'],
]

function kind<T extends KindTraits>(
  specName: string,
  path: string,
  [collectionVerbs, itemVerbs]: Verbs,
  traits: T,
): Kind & T {
  return {
    specName,
    path,
    underOrg: path.startsWith('/orgs/'),
    versioned: path.includes('{pversion}'),
    collectionVerbs,
    itemVerbs,
    ...traits,
  }
}

/**
 * Returns the definition of a kind whose objects belong to the whole PCE. `endpoint` defaults to the kind's name in the
 * specification.
 */
const pce = <T extends KindTraits>(specName: string, verbs: Verbs, traits: T = {} as T, endpoint = specName) =>
  kind(specName, `/${endpoint}`, verbs, traits)

/** Returns the definition of a kind whose objects belong to one organisation. */
const org = <T extends KindTraits>(specName: string, verbs: Verbs, traits: T = {} as T, endpoint = specName) =>
  kind(specName, `/orgs/{org_id}/${endpoint}`, verbs, traits)

/** Returns the definition of a policy kind, whose objects have draft and active versions. */
const policy = <T extends KindTraits>(specName: string, verbs: Verbs, traits: T = {} as T, endpoint = specName) =>
  kind(specName, `/orgs/{org_id}/sec_policy/{pversion}/${endpoint}`, verbs, traits)

/**
 * All object kinds of the specification (S9), by attribute name. The object API, the href checks and the names of
 * requests in metrics are all derived from this table. Facts: P12.
 */
export const KINDS = {
  accessRestrictions: org('access_restrictions', CRUD, { id: 'int', name: 'field' }),
  appGroupSummary: org('app_group_summary', GET_ONE, { single: true }),
  authSecurityPrincipals: org('auth_security_principals', CRUD, { id: 'uuid', name: 'filter' }),
  authenticationSettings: pce('authentication_settings', GET_PUT, { single: true }),
  containerClusters: org('container_clusters', CRUD, { id: 'uuid', name: 'filter' }),
  containerWorkloadProfiles: org(
    'container_workload_profiles',
    CRUD,
    { id: 'uuid', name: 'filter', parent: 'containerClusters' },
    'container_clusters/{parent}/container_workload_profiles',
  ),
  coreServiceTypes: org('core_service_types', READ_UPDATE, { id: 'uuid', name: 'field' }),
  denyRules: policy('deny_rules', CRUD, { id: 'int', parent: 'ruleSets' }, 'rule_sets/{parent}/deny_rules'),
  detectedCoreServices: org('detected_core_services', READ_UPDATE, { id: 'uuid' }),
  discoveredVirtualServers: org('discovered_virtual_servers', READ, { id: 'uuid', name: 'filter' }),
  enforcementBoundaries: policy('enforcement_boundaries', CRUD, { id: 'int', name: 'filter' }),
  eventSettings: org('event_settings', GET_PUT, { single: true }, 'settings/events'),
  events: org('events', READ, { id: 'uuid', pageLimit: 10_000 }),
  firewallSettings: policy('firewall_settings', GET_PUT, { single: true }),
  ipLists: policy('ip_lists', CRUD, { id: 'int', name: 'filter' }),
  jobs: org('jobs', READ_DELETE, { id: 'uuid' }),
  kubernetesWorkloads: org('kubernetes_workloads', READ, { id: 'uuid', name: 'filter' }),
  labelDimensions: org('label_dimensions', CRUD, { id: 'uuid' }),
  labelGroups: policy('label_groups', CRUD, { id: 'uuid', name: 'filter' }),
  labelMappingRules: org('label_mapping_rules', CRUD, { id: 'uuid' }),
  labels: org('labels', CRUD, { id: 'int' }),
  ldapConfigs: pce('ldap_configs', CRUD, { id: 'uuid', name: 'field' }, 'authentication_settings/ldap_configs'),
  networkDevices: org('network_devices', READ_UPDATE_DELETE, { id: 'uuid', name: 'filter' }),
  networkEndpoints: org(
    'network_endpoints',
    CRUD,
    { id: 'uuid', parent: 'networkDevices' },
    'network_devices/{parent}/network_endpoints',
  ),
  networkEnforcementNodes: org('network_enforcement_nodes', READ_UPDATE, { id: 'uuid', name: 'field' }),
  optionalFeatures: org('optional_features', GET_PUT, { name: 'field' }),
  orgSettings: org('org_settings', GET_PUT, { single: true }, 'settings'),
  pairingProfiles: org('pairing_profiles', CRUD, { id: 'int', name: 'filter' }),
  passwordPolicy: pce('password_policy', GET_PUT, { single: true }, 'authentication_settings/password_policy'),
  permissions: org('permissions', CRUD, { id: 'uuid' }),
  reportSchedules: org('report_schedules', CRUD, { id: 'uuid', name: 'field' }),
  reportSettings: org('report_settings', GET_PUT, { single: true }, 'settings/reports'),
  reportTemplates: org('report_templates', READ_UPDATE, { id: 'string', name: 'field' }),
  reports: org('reports', CREATE_READ_UPDATE, { id: 'uuid' }),
  roles: org('roles', READ, { id: 'name' }),
  ruleSets: policy('rule_sets', CRUD, { id: 'int', name: 'filter' }),
  rules: policy('rules', CRUD, { id: 'int', parent: 'ruleSets' }, 'rule_sets/{parent}/sec_rules'),
  samlConfigs: pce('saml_configs', READ_UPDATE, { id: 'uuid' }, 'authentication_settings/saml_configs'),
  securityPrincipals: org('security_principals', CRUD, { id: 'sid', name: 'filter', bulk: ['create'], pageLimit: 500 }),
  serviceAccounts: org('service_accounts', CRUD, { id: 'uuid', name: 'filter' }),
  serviceBindings: org('service_bindings', CREATE_READ_DELETE, { id: 'uuid', arrayCreate: true }),
  services: policy('services', CRUD, { id: 'int', name: 'filter' }),
  slbs: org('slbs', CRUD, { id: 'uuid', name: 'filter' }),
  supportBundleRequests: org('support_bundle_requests', CREATE_READ_DELETE, { id: 'uuid', name: 'field' }),
  syslogDestinations: org('syslog_destinations', CRUD, { id: 'uuid' }, 'settings/syslog/destinations'),
  systemEvents: pce('system_events', READ, { id: 'uuid', pageLimit: 10_000 }),
  trafficCollectorSettings: org('traffic_collector_settings', CRUD, { id: 'uuid' }, 'settings/traffic_collector'),
  trustedProxyIps: org('trusted_proxy_ips', GET_PUT, { single: true }, 'settings/trusted_proxy_ips'),
  users: pce('users', CREATE_READ_UPDATE, { id: 'int' }),
  vens: org('vens', READ_UPDATE, { id: 'uuid', name: 'filter' }),
  virtualServers: policy('virtual_servers', CRUD, { id: 'uuid', name: 'filter' }),
  virtualServices: policy('virtual_services', CRUD, { id: 'uuid', name: 'filter', bulk: ['create', 'update'] }),
  vulnerabilities: org('vulnerabilities', CRUD, { id: 'chosen', name: 'field', arrayCreate: true }),
  vulnerabilityReports: org('vulnerability_reports', READ_UPDATE_DELETE, { id: 'chosen', name: 'field' }),
  workloadSettings: org('workload_settings', GET_PUT, { single: true }, 'settings/workloads'),
  workloads: org('workloads', CRUD, { id: 'uuid', name: 'filter', bulk: ['create', 'update', 'delete'] }),
} satisfies Record<string, Kind>

export type KindAttribute = keyof typeof KINDS

/** The attribute names of the kinds that consist of a single object, which can be addressed without an href. */
export type SingleAttribute = {
  [Attribute in KindAttribute]: (typeof KINDS)[Attribute] extends { single: true } ? Attribute : never
}[KindAttribute]

/** The type of the objects that each kind returns. A kind without a schema in schemas/pce does not compile. */
export type ObjectTypes = { [Attribute in KindAttribute]: Read<(typeof KIND_SCHEMAS)[Attribute]> }
