import { ID, NO_UUID, type KindRow } from '../kind-row.js'
import type { ContractPce } from '../start-contract-pce.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const VERSIONED = ['href', 'created_at', 'updated_at', 'created_by', 'updated_by']

/** What rules are made of, and the firewall: kinds with a draft and an active version (P4, P15, P17, P18, P27). */
export async function policyKinds(pce: ContractPce): Promise<KindRow[]> {
  const { href: app } = await pce.ask<{ href: string }>('POST', '/orgs/1/labels', {
    key: 'app',
    value: 'Contract policy',
  })

  return [
    {
      kind: 'ip_lists',
      path: `${DRAFT}/ip_lists`,
      versioned: true,
      id: ID.int,
      fields: ['name', 'update_type', ...VERSIONED],
      creates: [
        { body: { name: 'Contract list' } },
        {
          body: {
            name: 'Contract branch offices',
            description: 'All of them',
            ip_ranges: [
              { from_ip: '10.1.0.0/16', description: 'all', exclusion: false },
              { from_ip: '10.1.9.1', to_ip: '10.1.9.20', exclusion: true },
            ],
            fqdns: [{ fqdn: '*.example.com', description: 'ours' }],
            external_data_set: 'cmdb',
            external_data_reference: 'net-1',
          },
        },
      ],
      update: { body: { ip_ranges: [{ from_ip: '10.2.0.0/16' }] } },
      remove: true,
      filter: {
        params: { fqdn: 'example.com' },
        wire: { fqdn: 'example.com' },
        keeps: ({ fqdns }) => JSON.stringify(fqdns ?? []).includes('example.com'),
      },
      bad: { name: 'x', priority: 1 },
      conflict: { body: { name: 'Contract list' }, token: 'ip_list_name_not_unique' },
      unknown: '999999',
    },
    {
      kind: 'services',
      path: `${DRAFT}/services`,
      versioned: true,
      id: ID.int,
      fields: ['name', 'update_type', ...VERSIONED],
      creates: [
        { body: { name: 'Contract ssh', service_ports: [{ port: 22, proto: 6 }] } },
        {
          body: {
            name: 'Contract desktop',
            description: 'Remote desktop',
            windows_services: [{ service_name: 'TermService', port: 3389, proto: 6 }],
            risk_details: { ransomware: { category: 'admin', severity: 'high', os_platforms: ['windows'] } },
            external_data_set: 'cmdb',
            external_data_reference: 'svc-1',
          },
        },
      ],
      update: { body: { description: 'Remote desktop of Windows' } },
      remove: true,
      filter: {
        params: { description: 'Remote desk' },
        wire: { description: 'Remote desk' },
        keeps: ({ description }) => String(description).includes('Remote desk'),
      },
      bad: { name: 'x', service_ports: [{ port: 65_536, proto: 6 }] },
      unknown: '999999',
    },
    {
      kind: 'label_groups',
      path: `${DRAFT}/label_groups`,
      versioned: true,
      id: ID.uuid,
      fields: ['name', 'description', 'key', 'deleted_at', 'deleted_by', 'update_type', ...VERSIONED],
      creates: [
        { body: { name: 'Contract envs', key: 'env' } },
        {
          body: {
            name: 'Contract apps',
            description: 'All of them',
            key: 'app',
            labels: [{ href: app }],
            sub_groups: [],
            external_data_set: 'cmdb',
            external_data_reference: 'grp-1',
          },
        },
      ],
      update: { body: { description: 'One of them' } },
      remove: true,
      filter: { params: { key: 'app' }, wire: { key: 'app' }, keeps: ({ key }) => key === 'app' },
      bad: { name: 'No key' },
      conflict: { body: { name: 'Contract envs', key: 'env' }, token: 'name_must_be_unique' },
      unknown: NO_UUID,
    },
    {
      kind: 'firewall_settings',
      path: `${DRAFT}/firewall_settings`,
      versioned: true,
      single: 'object',
      fields: ['update_type'],
      update: { body: { allow_captive_portal_outbound: true, ike_authentication_type: 'certificate' } },
      bad: { ike_authentication_type: 'password' },
    },
  ]
}
