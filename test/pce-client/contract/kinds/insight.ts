import { ID, NO_UUID, type KindRow } from '../kind-row.js'
import type { ContractPce } from '../start-contract-pce.js'

const STAMPS = ['created_at', 'updated_at', 'created_by', 'updated_by']
const EVENT = ['href', 'event_type', 'status', 'severity', 'timestamp', 'pce_fqdn', 'created_by']

/** Events, jobs, reports, vulnerabilities, core services and label mapping (P10, P26, P28). */
export async function insightKinds(pce: ContractPce): Promise<KindRow[]> {
  const label = await pce.ask<{ href: string }>('POST', '/orgs/1/labels', { key: 'role', value: 'Contract insight' })
  await pce.ask('PUT', label.href, { value: 'Contract insights' })
  const workloads = await pce.list('/orgs/1/workloads?max_results=1')
  const templates = await pce.list('/orgs/1/report_templates')
  const template = templates.find(({ href }) => /executive_summary/.test(href)) ?? templates[0]
  for (let index = 0; index < 2; index++) await startJob(pce)
  const time = { report_time_range: { last_num_days: 7 } }
  const cve = { name: 'CVE-2026-0001', score: 75, cve_ids: ['CVE-2026-0001'], description: 'A hole' }

  return [
    {
      kind: 'events',
      path: '/orgs/1/events',
      id: ID.uuid,
      fields: EVENT,
      filter: {
        params: { event_type: 'label.update' },
        wire: { event_type: 'label.update' },
        keeps: ({ event_type }) => event_type === 'label.update',
      },
      unknown: NO_UUID,
    },
    {
      kind: 'system_events',
      path: '/system_events',
      id: ID.uuid,
      fields: EVENT,
      filter: {
        params: { max_results: 1 },
        wire: { max_results: '1' },
        keeps: (_object, index) => index === 0,
      },
      unknown: NO_UUID,
    },
    {
      kind: 'jobs',
      path: '/orgs/1/jobs',
      id: ID.uuid,
      fields: ['href', 'status', 'job_type', 'requested_at', 'requested_by'],
      filter: { params: { job_type: 'another' }, wire: { job_type: 'another' }, keeps: () => false, none: true },
      remove: true,
      unknown: NO_UUID,
    },
    {
      kind: 'label_mapping_rules',
      path: '/orgs/1/label_mapping_rules',
      id: ID.uuid,
      fields: ['href', 'enabled', 'expression', 'label_assignments', 'overwrite', 'created_at', 'updated_at'],
      filter: { params: { max_results: 1 }, wire: { max_results: '1' }, keeps: (_object, index) => index === 0 },
      creates: [
        {
          body: {
            expression: { property: 'hostname', operator: 'starts_with', values: ['web'] },
            label_assignments: [{ label: { href: label.href } }],
          },
        },
        {
          body: {
            expression: {
              logical_operator: 'and',
              child_expressions: [
                { property: 'os', operator: 'contains', values: ['ubuntu'] },
                { property: 'port', operator: 'is_in', values: [{ port: 5432, proto: 6 }] },
              ],
            },
            label_assignments: [{ label: { href: label.href } }],
            overwrite: true,
          },
        },
      ],
      update: { body: { enabled: false, overwrite: false } },
      remove: true,
      unknown: NO_UUID,
    },
    {
      kind: 'report_templates',
      path: '/orgs/1/report_templates',
      id: /^[\w-]+$/,
      fields: ['href', 'name', 'report_parameters'],
      update: { body: { enabled: false } },
      unknown: 'no_such_template',
    },
    {
      kind: 'report_schedules',
      path: '/orgs/1/report_schedules',
      id: ID.uuid,
      fields: ['href', 'name', 'report_template', 'report_generation_frequency', 'report_parameters'],
      creates: [
        {
          body: {
            name: 'Contract weekly',
            report_template: { href: template?.href },
            report_generation_frequency: 'weekly',
            report_parameters: time,
          },
        },
        {
          body: {
            name: 'Contract once',
            report_template: { href: template?.href },
            report_generation_frequency: 'once',
            scheduled_at: '2026-03-02T00:00:00.000Z',
            send_by_email: true,
            report_parameters: time,
          },
        },
      ],
      update: { body: { name: 'Contract twice', report_generation_frequency: 'daily' } },
      remove: true,
      unknown: NO_UUID,
    },
    {
      kind: 'reports',
      path: '/orgs/1/reports',
      id: ID.uuid,
      fields: ['href', 'report_template', 'status', 'report_parameters'],
      creates: [
        { body: { report_template: { href: template?.href }, report_parameters: time } },
        {
          body: {
            report_template: { href: template?.href },
            report_parameters: {
              report_time_range: { start_date: '2026-02-01T00:00:00Z', end_date: '2026-02-08T00:00:00Z' },
            },
            description: 'Contract report',
            send_by_email: false,
          },
        },
      ],
      unknown: NO_UUID,
      update: {
        of: { report_template: { href: template?.href }, report_parameters: time },
        body: { status: 'cancel_requested' },
      },
    },
    {
      kind: 'vulnerabilities',
      path: '/orgs/1/vulnerabilities',
      id: /^[\w.%-]+$/,
      fields: ['href', 'name', 'score', 'cve_ids', ...STAMPS],
      filter: { params: { max_results: 1 }, wire: { max_results: '1' }, keeps: (_object, index) => index === 0 },
      arrayCreate: true,
      creates: [
        { body: { reference_id: 'contract-1', name: 'A hole', score: 10 }, reads: { name: 'A hole', score: 10 } },
        { body: { reference_id: 'contract-2', ...cve }, reads: cve },
      ],
      chosen: { id: 'contract-3', body: { name: 'Another hole', score: 50 } },
      update: { body: { name: 'A small hole', score: 5 } },
      remove: true,
      unknown: 'no-such-reference',
    },
    {
      kind: 'vulnerability_reports',
      path: '/orgs/1/vulnerability_reports',
      fields: ['href', 'name', 'report_type', 'num_vulnerabilities', ...STAMPS],
      filter: { params: { max_results: 0 }, wire: { max_results: '0' }, keeps: () => false, none: true },
      chosen: {
        id: 'contract-report',
        body: {
          name: 'Contract scan',
          report_type: 'nessus',
          authoritative: true,
          scanned_ips: ['10.0.0.1'],
          detected_vulnerabilities: [
            {
              ip_address: '10.0.0.1',
              port: 443,
              proto: 6,
              workload: { href: workloads[0]?.href },
              vulnerability: { href: '/orgs/1/vulnerabilities/contract-1' },
            },
          ],
        },
        reads: { name: 'Contract scan', report_type: 'nessus', scanned_ips: ['10.0.0.1'] },
      },
      update: { body: { name: 'Contract rescan', report_type: 'nessus' } },
      remove: true,
      unknown: 'no-such-report',
    },
    {
      kind: 'core_service_types',
      path: '/orgs/1/core_service_types',
      id: ID.uuid,
      fields: ['href', 'name', 'labels', 'created_at', 'updated_at'],
      update: { body: { required_ports: [{ port: 5353 }], num_optional_ports_required: 0 } },
      unknown: NO_UUID,
    },
    {
      kind: 'detected_core_services',
      path: '/orgs/1/detected_core_services',
      id: ID.uuid,
      fields: ['href', 'ip_address', 'core_service_type', 'method_name', 'created_at', 'updated_at'],
      filter: { params: { max_results: 1 }, wire: { max_results: '1' }, keeps: (_object, index) => index === 0 },
      update: { body: { action: 'accept', feedback: 'It is one' }, reads: { feedback: 'It is one' } },
      unknown: NO_UUID,
    },
    {
      kind: 'app_group_summary',
      path: '/orgs/1/app_group_summary',
      single: 'object',
      fields: ['nodes', 'labels'],
    },
  ]
}

/** A finished collection job. */
async function startJob({ simulator }: ContractPce): Promise<void> {
  const { key, secret } = simulator.credentials
  const authorization = `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`
  const answer = await fetch(`${simulator.url}/api/v2/orgs/1/labels`, {
    headers: { authorization, prefer: 'respond-async' },
  })
  await fetch(`${simulator.url}/api/v2${answer.headers.get('location')}`, { headers: { authorization } })
  simulator.clearRequests()
}
