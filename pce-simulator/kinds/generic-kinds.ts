import { BIRTH } from '../built-in-objects.js'
import type { Answer, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { invalidInput } from '../refusal.js'
import { PCE_FQDN, type World } from '../world.js'
import { describeChanges } from './describe-changes.js'
import { genericRoutes, seedGeneric, type GenericKind } from './generic-kind.js'
import { singleRoutes, type SingleKind } from './single-kind.js'

const ALL = ['create', 'update', 'delete'] as const
/** The default lifetime of API keys in seconds: 90 days (P2). */
const DEFAULT_KEY_LIFETIME = 7_776_000
const WEEK = { report_time_range: { last_num_days: 7 } }
const AUTHENTICATION = '/authentication_settings'

/**
 * The settings of the organisation (P12, P49). They limit the lifetime of API keys and the time span of a traffic
 * query.
 */
export const orgSettings: SingleKind = {
  route: '/orgs/:org/settings',
  noun: 'org_settings',
  defaults: {
    num_assets_requiring_ransomware_protection: null,
    total_lateral_address_space: null,
    total_internet_address_space: null,
    automatic_label_application_on_ven_activation: false,
    rule_based_label_maker_schedule_enabled: false,
    rule_based_label_maker_schedule: null,
    max_explorer_query_timespan_days: 97,
    max_api_key_expiration_in_seconds: DEFAULT_KEY_LIFETIME,
    expired_api_keys_retention_in_seconds: DEFAULT_KEY_LIFETIME,
    advanced_ruleset_display: true,
    ven_maintenance_token_required: false,
    cloud_secure_tenant_id: '',
    use_census_permissions: false,
    max_rule_search_provider_consumer_entities: 8,
  },
}

/** The password policy of local users (P12, P31). It also limits how long a session may be idle. */
export const passwordPolicy: SingleKind = {
  route: `${AUTHENTICATION}/password_policy`,
  noun: 'password_policy',
  defaults: {
    require_type_number: true,
    require_type_lowercase: true,
    require_type_uppercase: true,
    require_type_symbol: false,
    min_characters_per_type: 1,
    min_length: 8,
    min_changed_characters: 1,
    history_count: 1,
    expire_time_days: 0,
    session_timeout_minutes: 10,
    updated_at: BIRTH,
    updated_by: { username: 'system' },
  },
}

/** The kinds that consist of a single object (P12, P28). */
const SINGLES: readonly SingleKind[] = [
  orgSettings,
  passwordPolicy,
  { route: AUTHENTICATION, noun: 'authentication_settings', defaults: { authentication_type: 'Local' } },
  {
    route: '/orgs/:org/app_group_summary',
    noun: 'app_group_summary',
    defaults: { nodes: [], labels: {} },
    isReadOnly: true,
  },
  {
    route: '/orgs/:org/settings/events',
    noun: 'event_settings',
    defaults: { audit_event_retention_seconds: 2_592_000, audit_event_min_severity: 'informational', format: 'JSON' },
  },
  {
    route: '/orgs/:org/settings/reports',
    noun: 'report_settings',
    defaults: { max_queued_reports: 25, report_retention_days: 1 },
  },
  {
    route: '/orgs/:org/settings/trusted_proxy_ips',
    noun: 'trusted_proxy_ips',
    defaults: { max_trusted_proxy_ips_per_region: 8, trusted_proxy_ips: [] },
  },
  {
    route: '/orgs/:org/settings/workloads',
    noun: 'workload_settings',
    defaults: {
      workload_disconnected_timeout_seconds: [
        { scope: [], value: 3600, ven_type: 'server' },
        { scope: [], value: -1, ven_type: 'endpoint' },
      ],
      workload_goodbye_timeout_seconds: [
        { scope: [], value: 900, ven_type: 'server' },
        { scope: [], value: 86_400, ven_type: 'endpoint' },
      ],
      workload_disconnected_notification_seconds: [{ scope: [], warning: 1800, ven_type: 'server' }],
      ven_uninstall_timeout_hours: [{ scope: [], value: 168 }],
    },
  },
]

const coreServiceType = (name: string, port: number, priority: number): readonly [null, Json] => [
  null,
  {
    name,
    required_ports: [{ port }],
    optional_ports: [],
    num_optional_ports_required: 0,
    labels: [],
    priority,
  },
]

const detectedCoreService = (ip_address: string): readonly [null, Json] => [
  null,
  {
    ip_address,
    core_service_type: null,
    confidence: 80,
    method_name: 'port_based',
    action: 'recommended',
    feedback: '',
  },
]

const systemEvent = (timestamp: string, event_type: string): readonly [null, Json] => [
  null,
  {
    timestamp,
    pce_fqdn: PCE_FQDN,
    event_type: `system_task.${event_type}`,
    status: 'success',
    severity: 'info',
    action: null,
    resource_changes: [],
    notifications: [],
  },
]

const reportTemplate = (type: string, name: string): readonly [string, Json] => [
  type,
  { name, enabled: true, show_in_ui: true, report_parameters: WEEK },
]

/** The kinds that are collections of objects (P12, P28). */
const COLLECTIONS: readonly GenericKind[] = [
  {
    segment: 'access_restrictions',
    noun: 'access_restriction',
    writes: ALL,
    ids: 'int',
    defaults: { description: null, enforcement_exclusions: [] },
  },
  {
    segment: 'auth_security_principals',
    noun: 'auth_security_principal',
    writes: ALL,
    defaults: { display_name: null, access_restriction: null },
  },
  {
    segment: 'core_service_types',
    noun: 'core_service_type',
    writes: ['update'],
    seeds: [coreServiceType('DNS', 53, 1), coreServiceType('NTP', 123, 2)],
  },
  {
    segment: 'detected_core_services',
    noun: 'detected_core_service',
    writes: ['update'],
    seeds: [detectedCoreService('10.10.0.53'), detectedCoreService('10.20.0.53')],
  },
  { segment: 'discovered_virtual_servers', noun: 'discovered_virtual_server', writes: [] },
  {
    segment: 'label_mapping_rules',
    noun: 'label_mapping_rule',
    writes: ALL,
    defaults: { enabled: true, overwrite: false },
  },
  {
    segment: 'ldap_configs',
    noun: 'ldap_config',
    route: `${AUTHENTICATION}/ldap_configs`,
    writes: ALL,
    defaults: {
      pce_fqdn: PCE_FQDN,
      name: null,
      request_timeout_seconds: 5,
      bind_distinguished_name: null,
      is_bind_password_set: false,
      tls_ca_bundle: null,
      insecure_disable_tls_certificate_verification: false,
    },
  },
  { segment: 'network_devices', noun: 'network_device', writes: ['update', 'delete'] },
  {
    segment: 'network_endpoints',
    noun: 'network_endpoint',
    route: '/orgs/:org/network_devices/:device/network_endpoints',
    parent: 'network_devices',
    writes: ALL,
    defaults: { workloads: [] },
  },
  { segment: 'network_enforcement_nodes', noun: 'network_enforcement_node', writes: ['update'] },
  {
    segment: 'report_schedules',
    noun: 'report_schedule',
    writes: ALL,
    defaults: { scheduled_at: null, send_by_email: false },
  },
  {
    segment: 'report_templates',
    noun: 'report_template',
    writes: ['update'],
    seeds: [
      reportTemplate('executive_summary_report', 'Executive Summary'),
      reportTemplate('rule_hit_count_report', 'Rule Hit Count'),
    ],
  },
  {
    segment: 'reports',
    noun: 'report',
    writes: ['create', 'update'],
    defaults: { description: null, send_by_email: false, generated_at: null, status: 'queued' },
  },
  {
    segment: 'saml_configs',
    noun: 'saml_config',
    route: `${AUTHENTICATION}/saml_configs`,
    writes: ['update'],
    seeds: [
      [
        null,
        {
          cluster_fqdn: PCE_FQDN,
          idp_sso_target_url: '',
          idp_slo_target_url: '',
          idp_cert: '',
          issuer: `https://${PCE_FQDN}:8443/login`,
          consumer_service_url: `https://${PCE_FQDN}:8443/login/acs`,
          consumer_logout_url: `https://${PCE_FQDN}:8443/login/logout`,
          authn_context: 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
          force_authn: false,
          sign_authn_request: false,
        },
      ],
    ],
  },
  {
    segment: 'security_principals',
    noun: 'security_principal',
    writes: ALL,
    ids: { field: 'sid' },
    isBulkCreate: true,
    page: { defaultMaxResults: 100, ceiling: 500 },
    defaults: { description: '', deleted: false, used_by_ruleset: false, members: [] },
  },
  { segment: 'slbs', noun: 'slb', writes: ALL, defaults: { description: '' } },
  {
    segment: 'support_bundle_requests',
    noun: 'support_bundle_request',
    writes: ['create', 'delete'],
    defaults: {
      name: 'support-bundle',
      download_url: null,
      requested_at: BIRTH,
      completed_at: null,
      status: 'pending',
      include_logs: true,
      starting_at: null,
      ending_at: null,
    },
  },
  {
    segment: 'syslog_destinations',
    noun: 'syslog_destination',
    route: '/orgs/:org/settings/syslog/destinations',
    writes: ALL,
    seeds: [
      [
        null,
        {
          pce_scope: [PCE_FQDN],
          type: 'local_syslog',
          description: 'Local syslog',
          audit_event_logger: {
            configuration_event_included: true,
            system_event_included: true,
            min_severity: 'informational',
          },
          traffic_event_logger: {
            traffic_flow_allowed_event_included: true,
            traffic_flow_potentially_blocked_event_included: true,
            traffic_flow_blocked_event_included: true,
          },
          node_status_logger: { node_status_included: true },
        },
      ],
    ],
  },
  {
    segment: 'system_events',
    noun: 'system_event',
    route: '/system_events',
    writes: [],
    page: { defaultMaxResults: 100, ceiling: 10_000 },
    seeds: [
      systemEvent('2025-01-02T00:00:00.000Z', 'agent_offline_check'),
      systemEvent('2025-01-01T00:00:00.000Z', 'prune_old_log_events'),
    ],
  },
  {
    segment: 'traffic_collector_settings',
    noun: 'traffic_collector_setting',
    route: '/orgs/:org/settings/traffic_collector',
    writes: ALL,
    defaults: { data_source: 'any', network: 'any' },
  },
  {
    segment: 'vulnerabilities',
    noun: 'vulnerability',
    writes: ALL,
    ids: { field: 'reference_id' },
    isArrayCreate: true,
    isUpsert: true,
    defaults: { cve_ids: null, description: null },
  },
  {
    segment: 'vulnerability_reports',
    noun: 'vulnerability_report',
    writes: ['update', 'delete'],
    isUpsert: true,
    defaults: { authoritative: false, num_vulnerabilities: 0, scanned_ips: [], exported_at: null },
  },
]

/**
 * The feature switches of the whole PCE, with their initial values. The simulator stores them but does not act on them.
 */
const FEATURES: Json = { ui_analytics: false, core_insights: true, lightning_default: true }
const FEATURES_NOUN = 'optional_features'

/** The route of the optional features, a list of items without hrefs. A PUT contains only the items to change (P12). */
const featureRoute: Route = {
  path: '/orgs/:org/optional_features',
  verbs: {
    GET: {
      handle: ({ world }) => ({
        status: 200,
        json: Object.entries(featuresOf(world)).map(([name, enabled]) => ({ name, enabled })),
      }),
    },
    PUT: {
      event: `${FEATURES_NOUN}.update`,
      handle: ({ world, path, body }): Answer => {
        if (!Array.isArray(body)) throw invalidInput('The body must be an array')
        const current = featuresOf(world)
        const fields = Object.fromEntries(body.map(({ name, enabled }: Json) => [name, enabled])) as Json
        world.singles.set(FEATURES_NOUN, { ...current, ...fields })
        const resource = { [FEATURES_NOUN]: { href: path } }
        return { status: 204, changes: [{ resource, type: 'update', changes: describeChanges(current, fields) }] }
      },
    },
  },
}

const featuresOf = (world: World): Json => world.singles.get(FEATURES_NOUN) ?? FEATURES

/**
 * The routes of every kind whose objects the simulator only stores, because neither the tools nor the demo need more.
 */
export const genericKindRoutes: Route[] = [
  ...SINGLES.flatMap(singleRoutes),
  ...COLLECTIONS.flatMap(genericRoutes),
  featureRoute,
]

/** Stores the objects of the generic kinds that every PCE has from the start. */
export function seedGenericKinds(world: World): void {
  for (const kind of COLLECTIONS) seedGeneric(world, kind)
}
