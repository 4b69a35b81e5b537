import { ID, NO_UUID, type KindRow } from '../kind-row.js'

const LOGGERS = {
  audit_event_logger: { configuration_event_included: true, system_event_included: false, min_severity: 'warning' },
  traffic_event_logger: {
    traffic_flow_allowed_event_included: false,
    traffic_flow_potentially_blocked_event_included: true,
    traffic_flow_blocked_event_included: true,
  },
  node_status_logger: { node_status_included: true },
}

/** The settings of the organisation (P12, P28). */
export function settingsKinds(): KindRow[] {
  return [
    {
      kind: 'event_settings',
      path: '/orgs/1/settings/events',
      single: 'object',
      fields: ['audit_event_retention_seconds', 'audit_event_min_severity', 'format'],
      update: { body: { audit_event_retention_seconds: 86_400, format: 'CEF' } },
    },
    {
      kind: 'org_settings',
      path: '/orgs/1/settings',
      single: 'object',
      fields: ['max_explorer_query_timespan_days', 'max_api_key_expiration_in_seconds'],
      update: { body: { max_api_key_expiration_in_seconds: 86_400, ven_maintenance_token_required: true } },
    },
    {
      kind: 'report_settings',
      path: '/orgs/1/settings/reports',
      single: 'object',
      fields: ['max_queued_reports', 'report_retention_days'],
      update: { body: { max_queued_reports: 7, report_retention_days: 6 } },
    },
    {
      kind: 'trusted_proxy_ips',
      path: '/orgs/1/settings/trusted_proxy_ips',
      single: 'object',
      fields: ['max_trusted_proxy_ips_per_region', 'trusted_proxy_ips'],
      update: { body: { trusted_proxy_ips: [{ pce_fqdn: null, ip: '192.0.2.1' }] } },
    },
    {
      kind: 'workload_settings',
      path: '/orgs/1/settings/workloads',
      single: 'object',
      fields: [
        'workload_disconnected_timeout_seconds',
        'workload_goodbye_timeout_seconds',
        'workload_disconnected_notification_seconds',
        'ven_uninstall_timeout_hours',
      ],
      update: { body: { workload_disconnected_timeout_seconds: [{ scope: [], value: 7200 }] } },
    },
    {
      kind: 'optional_features',
      path: '/orgs/1/optional_features',
      single: 'list',
      fields: ['name', 'enabled'],
      update: {
        body: [
          { name: 'ui_analytics', enabled: true },
          { name: 'core_insights', enabled: false },
        ],
      },
    },
    {
      kind: 'syslog_destinations',
      path: '/orgs/1/settings/syslog/destinations',
      id: ID.uuid,
      fields: ['href', 'pce_scope', 'type', 'description', ...Object.keys(LOGGERS)],
      creates: [
        { body: { pce_scope: ['pce.example.com'], type: 'local_syslog', description: 'Local', ...LOGGERS } },
        {
          body: {
            pce_scope: ['pce.example.com'],
            type: 'remote_syslog',
            description: 'The collector',
            ...LOGGERS,
            remote_syslog: {
              address: 'syslog.example.com',
              port: 6514,
              protocol: 6,
              tls_enabled: true,
              tls_verify_cert: true,
            },
          },
        },
      ],
      update: { body: { description: 'The new collector' } },
      remove: true,
      unknown: NO_UUID,
    },
    {
      kind: 'traffic_collector_settings',
      path: '/orgs/1/settings/traffic_collector',
      id: ID.uuid,
      fields: ['href', 'transmission', 'action'],
      creates: [
        { body: { transmission: 'broadcast', action: 'drop' } },
        {
          body: {
            transmission: 'unicast',
            data_source: 'server',
            network: 'corporate',
            target: { dst_port: 53, proto: 17, dst_ip: '192.0.2.53' },
            action: 'aggregate',
          },
        },
      ],
      update: { body: { data_source: 'any', target: { dst_port: 5353, proto: 17, dst_ip: '192.0.2.53' } } },
      remove: true,
      unknown: NO_UUID,
    },
    {
      kind: 'support_bundle_requests',
      path: '/orgs/1/support_bundle_requests',
      id: ID.uuid,
      fields: [
        ...['href', 'name', 'download_url', 'requested_at', 'completed_at', 'status', 'created_by', 'include_logs'],
        ...['starting_at', 'ending_at'],
      ],
      creates: [
        { body: {} },
        {
          body: {
            include_logs: true,
            starting_at: '2026-02-27T00:00:00.000Z',
            ending_at: '2026-02-28T00:00:00.000Z',
          },
        },
      ],
      remove: true,
      unknown: NO_UUID,
    },
  ]
}
