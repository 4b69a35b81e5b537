import { ID, NO_UUID, type KindRow } from '../kind-row.js'
import type { ContractPce } from '../start-contract-pce.js'

const STAMPS = ['created_at', 'updated_at']

/** Labels, workloads, agents and containers (P12, P14, P16, P24). */
export async function inventoryKinds(pce: ContractPce): Promise<KindRow[]> {
  const made = async (path: string, body: object) => (await pce.ask<{ href: string }>('POST', path, body)).href
  const app = await made('/orgs/1/labels', { key: 'app', value: 'Contract inventory' })
  const cluster = await made('/orgs/1/container_clusters', { name: 'Contract parent' })
  const container = String((await pce.list('/orgs/1/kubernetes_workloads')).at(-1)?.name)
  const hostname = String((await pce.list('/orgs/1/vens')).at(-1)?.hostname)

  return [
    {
      kind: 'labels',
      path: '/orgs/1/labels',
      id: ID.int,
      fields: ['href', 'key', 'value', 'deleted', ...STAMPS],
      creates: [
        { body: { key: 'app', value: 'Contract minimal' } },
        {
          body: {
            key: 'env',
            value: 'Contract full',
            external_data_set: 'cmdb',
            external_data_reference: 'label-1',
          },
        },
      ],
      update: { body: { value: 'Contract changed' } },
      remove: true,
      filter: {
        params: { value: 'ontract' },
        wire: { value: 'ontract' },
        keeps: ({ value }) => String(value).includes('ontract'),
      },
      bad: { key: 'app' },
      conflict: { body: { key: 'app', value: 'Contract minimal' }, token: 'label_key_and_value_must_be_unique' },
      unknown: '999999',
    },
    {
      kind: 'label_dimensions',
      path: '/orgs/1/label_dimensions',
      id: ID.uuid,
      fields: ['href', 'key', 'display_name', ...STAMPS],
      creates: [
        { body: { key: 'bu', display_name: 'Business Unit' } },
        {
          body: {
            key: 'tier',
            display_name: 'Tier',
            display_info: {
              icon: 'group',
              initial: 'T',
              sort_ordinal: 5_000_000,
              background_color: '#ce93d8',
              foreground_color: '#ffffff',
              display_name_plural: 'Tiers',
            },
            external_data_set: 'cmdb',
            external_data_reference: 'dim-1',
          },
        },
      ],
      update: { body: { display_name: 'Tiers and layers' } },
      remove: true,
      bad: { key: 'cost' },
      unknown: NO_UUID,
    },
    {
      kind: 'workloads',
      path: '/orgs/1/workloads',
      id: ID.uuid,
      fields: [
        ...['href', 'deleted', 'name', 'description', 'managed', 'hostname', 'service_principal_name', 'public_ip'],
        ...['interfaces', 'service_provider', 'data_center', 'data_center_zone', 'os_id', 'os_detail', 'online'],
        ...['labels', 'services', 'agent', ...STAMPS],
      ],
      creates: [
        {
          body: { name: 'contract-2', interfaces: [{ name: 'eth0', address: '10.99.0.2' }] },
          reads: {
            name: 'contract-2',
            managed: false,
            interfaces: [{ name: 'eth0', address: '10.99.0.2', link_state: null }],
          },
        },
        {
          body: {
            name: 'contract-db',
            hostname: 'contract-db.example.com',
            description: 'A database',
            public_ip: '203.0.113.7',
            interfaces: [
              {
                name: 'eth0',
                address: '10.99.0.7',
                cidr_block: 24,
                default_gateway_address: '10.99.0.1',
                link_state: 'up',
                friendly_name: 'front',
              },
            ],
            labels: [{ href: app }],
            enforcement_mode: 'visibility_only',
            service_provider: 'none',
            data_center: 'dc1',
            data_center_zone: 'a',
            os_id: 'ubuntu-x86_64-jammy',
            os_detail: 'Ubuntu 22.04',
            online: true,
            external_data_set: 'cmdb',
            external_data_reference: 'ci-1001',
          },
        },
      ],
      update: { body: { description: 'Two databases', enforcement_mode: 'selective', labels: [] } },
      remove: true,
      filter: {
        params: { labels: [[app]] },
        wire: { labels: `[["${app}"]]` },
        keeps: ({ labels }) => JSON.stringify(labels).includes(`"${app}"`),
      },
      bad: { name: 'x', managed: true },
      unknown: NO_UUID,
    },
    {
      kind: 'pairing_profiles',
      path: '/orgs/1/pairing_profiles',
      id: ID.int,
      fields: [
        ...['href', 'name', 'description', 'mode', 'enabled', 'total_use_count', 'allowed_uses_per_key', 'labels'],
        ...['key_lifespan', 'last_pairing_at', 'is_default', 'role_label_lock', 'visibility_level_lock', ...STAMPS],
      ],
      creates: [
        { body: { enabled: true, name: 'Contract servers' } },
        {
          body: {
            name: 'Contract clients',
            description: 'Of the users',
            enabled: false,
            enforcement_mode: 'visibility_only',
            enforcement_mode_lock: true,
            allowed_uses_per_key: 5,
            key_lifespan: 'unlimited',
            labels: [{ href: app }],
            role_label_lock: false,
            visibility_level: 'flow_summary',
            ven_type: 'endpoint',
            external_data_set: 'cmdb',
            external_data_reference: 'pp-1',
          },
        },
      ],
      update: { body: { description: 'Of all users', key_lifespan: 3600 } },
      remove: true,
      filter: {
        params: { ven_type: 'endpoint' },
        wire: { ven_type: 'endpoint' },
        keeps: ({ ven_type }) => ven_type === 'endpoint',
      },
      bad: { name: 'x' },
      unknown: '999999',
    },
    {
      kind: 'vens',
      path: '/orgs/1/vens',
      id: ID.uuid,
      fields: ['href', 'hostname', 'version', 'status', 'labels', 'interfaces', 'workloads', ...STAMPS],
      update: { body: { description: 'Looked at', status: 'suspended' } },
      filter: {
        params: { hostname },
        wire: { hostname },
        keeps: (ven) => String(ven.hostname).includes(hostname),
      },
      bad: { status: 'uninstalled' },
      unknown: NO_UUID,
    },
    {
      kind: 'container_clusters',
      path: '/orgs/1/container_clusters',
      id: ID.uuid,
      fields: ['href', 'name'],
      secret: 'container_cluster_token',
      creates: [
        { body: { name: 'Contract cluster' } },
        { body: { name: 'Contract cluster b', description: 'The second', datacenter_nat_1to1: true } },
      ],
      update: { body: { description: 'Still the second' } },
      remove: true,
      filter: {
        params: { name: 'cluster b' },
        wire: { name: 'cluster b' },
        keeps: ({ name }) => String(name).includes('cluster b'),
      },
      bad: { name: 'x', nodes: [] },
      unknown: NO_UUID,
    },
    {
      kind: 'container_workload_profiles',
      path: `${cluster}/container_workload_profiles`,
      parent: cluster,
      id: ID.uuid,
      fields: ['href', 'name', 'namespace', 'managed', 'linked', 'enforcement_mode', ...STAMPS],
      creates: [
        { body: { name: 'Contract profile' } },
        {
          body: {
            name: 'Contract profile b',
            description: 'The second',
            managed: true,
            enforcement_mode: 'visibility_only',
            labels: [{ key: 'app', assignment: { href: app } }],
          },
        },
      ],
      update: { body: { enforcement_mode: 'full' } },
      remove: true,
      filter: {
        params: { name: 'profile b' },
        wire: { name: 'profile b' },
        keeps: ({ name }) => String(name).includes('profile b'),
      },
      bad: { name: 'x', linked: true },
      unknown: NO_UUID,
    },
    {
      kind: 'kubernetes_workloads',
      path: '/orgs/1/kubernetes_workloads',
      id: ID.uuid,
      fields: ['href', 'name', 'namespace', 'kind'],
      filter: {
        params: { name: container },
        wire: { name: container },
        keeps: ({ name }) => String(name).includes(container),
      },
      unknown: NO_UUID,
    },
  ]
}
