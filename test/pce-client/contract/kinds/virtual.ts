import { ID, NO_UUID, type KindRow } from '../kind-row.js'
import type { ContractPce } from '../start-contract-pce.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const STAMPS = ['created_at', 'updated_at']

/** Virtual services and servers, what binds them, and the balancers they are found on (P23). */
export async function virtualKinds(pce: ContractPce): Promise<KindRow[]> {
  const made = async (path: string, body: object) => (await pce.ask<{ href: string }>('POST', path, body)).href
  const app = await made('/orgs/1/labels', { key: 'app', value: 'Contract virtual' })
  const web = await made(`${DRAFT}/services`, { name: 'Contract web', service_ports: [{ port: 443, proto: 6 }] })
  const workload = await made('/orgs/1/workloads', { name: 'contract-1', hostname: 'contract-1.example.com' })
  const virtualServices: string[] = []
  for (const port of [8081, 8082]) {
    const body = { name: `Contract binding ${port}`, service_ports: [{ port, proto: 6 }] }
    virtualServices.push(await made(`${DRAFT}/virtual_services`, body))
  }
  await pce.ask('POST', '/orgs/1/sec_policy', { update_description: 'The ground' })
  const active = virtualServices.map((href) => href.replace('/draft/', '/active/'))
  const discovered = await pce.list('/orgs/1/discovered_virtual_servers')
  const discoveredName = String(discovered.at(-1)?.name)
  const node = (await pce.list('/orgs/1/network_enforcement_nodes'))[0]?.href

  return [
    {
      kind: 'virtual_services',
      path: `${DRAFT}/virtual_services`,
      versioned: true,
      id: ID.uuid,
      fields: ['href', 'name', 'description', 'labels', 'created_at', 'updated_at', 'deleted_at', 'update_type'],
      creates: [
        { body: { name: 'Contract ports', service_ports: [{ port: 8443, proto: 6 }] } },
        {
          body: {
            name: 'Contract api',
            description: 'Of the application',
            service: { href: web },
            labels: [{ href: app }],
            service_addresses: [{ fqdn: 'api.example.com', description: '', port: 443 }],
            ip_overrides: ['10.9.0.2'],
            apply_to: 'host_only',
            external_data_set: 'cmdb',
            external_data_reference: 'vs-1',
          },
        },
      ],
      update: { body: { description: 'Of both applications' } },
      remove: true,
      filter: {
        params: { service: web },
        wire: { service: web },
        keeps: ({ service }) => (service as { href?: string } | undefined)?.href === web,
      },
      bad: { name: 'x', apply_to: 'everything', service_ports: [{ port: 1, proto: 6 }] },
      unknown: NO_UUID,
    },
    {
      kind: 'virtual_servers',
      path: `${DRAFT}/virtual_servers`,
      versioned: true,
      id: ID.uuid,
      fields: [
        ...['href', 'name', 'labels', 'service', 'providers', 'mode', 'discovered_virtual_server', 'update_type'],
        ...['created_at', 'updated_at', 'deleted_at', 'created_by', 'updated_by', 'deleted_by'],
      ],
      creates: [
        {
          body: {
            name: 'Contract balancer',
            labels: [],
            service: { href: web },
            providers: [],
            discovered_virtual_server: { href: discovered.at(-1)?.href },
            mode: 'unmanaged',
          },
        },
        {
          body: {
            name: 'Contract balancer in force',
            description: 'In front of the application',
            labels: [{ href: app }],
            service: { href: web },
            providers: [{ label: { href: app } }],
            discovered_virtual_server: { href: discovered.at(-2)?.href },
            mode: 'enforced',
            external_data_set: 'cmdb',
            external_data_reference: 'vip-1',
          },
        },
      ],
      update: { body: { description: 'Behind the application', mode: 'unmanaged' } },
      remove: true,
      filter: { params: { mode: 'enforced' }, wire: { mode: 'enforced' }, keeps: ({ mode }) => mode === 'enforced' },
      bad: { name: 'x', labels: [], service: { href: web }, providers: [], mode: 'unmanaged' },
      unknown: NO_UUID,
    },
    {
      kind: 'service_bindings',
      path: '/orgs/1/service_bindings',
      id: ID.uuid,
      fields: ['href', 'bound_service'],
      arrayCreate: true,
      creates: [
        {
          body: { virtual_service: { href: active[0] }, workload: { href: workload } },
          reads: { workload: { href: workload } },
        },
        {
          body: {
            virtual_service: { href: active[1] },
            workload: { href: workload },
            port_overrides: [{ port: 8082, proto: 6, new_port: 9082 }],
            external_data_set: 'cmdb',
            external_data_reference: 'sb-1',
          },
          reads: {
            workload: { href: workload },
            port_overrides: [{ port: 8082, proto: 6, new_port: 9082 }],
            external_data_set: 'cmdb',
            external_data_reference: 'sb-1',
          },
        },
      ],
      remove: true,
      filter: {
        params: { external_data_set: 'cmdb', external_data_reference: 'sb-1' },
        wire: { external_data_set: 'cmdb', external_data_reference: 'sb-1' },
        keeps: ({ external_data_reference }) => external_data_reference === 'sb-1',
      },
      bad: { workload: { href: workload } },
      conflict: { body: { virtual_service: { href: virtualServices[0] }, workload: { href: workload } } },
      unknown: NO_UUID,
    },
    {
      kind: 'slbs',
      path: '/orgs/1/slbs',
      id: ID.uuid,
      fields: ['href', 'name', 'device_type', 'devices', ...STAMPS, 'created_by', 'updated_by'],
      creates: [
        {
          body: {
            name: 'Contract balancer',
            device_type: 'f5',
            devices: [{ config: { host: '192.0.2.30', port: 443 } }],
          },
        },
        {
          body: {
            name: 'Contract balancers',
            description: 'A pair',
            network_enforcement_node: { href: node },
            device_type: 'f5',
            devices: ['192.0.2.31', '192.0.2.32'].map((host) => ({
              config: {
                host,
                port: 443,
                credential_type: 'password',
                username: 'reader',
                credential: 'of-a-device',
                check_certificate: true,
              },
            })),
          },
          reads: {
            name: 'Contract balancers',
            devices: ['192.0.2.31', '192.0.2.32'].map((host) => ({
              config: { host, username: 'reader', credential: undefined },
            })),
          },
        },
      ],
      update: { body: { description: 'A good pair' } },
      remove: true,
      filter: {
        params: { name: 'balancers' },
        wire: { name: 'balancers' },
        keeps: ({ name }) => String(name).includes('balancers'),
      },
      unknown: NO_UUID,
    },
    {
      kind: 'discovered_virtual_servers',
      path: '/orgs/1/discovered_virtual_servers',
      id: ID.uuid,
      fields: [
        ...['href', 'dvs_identifier', 'name', 'vip_port', 'local_ips', 'mode', 'slb', 'service_checks'],
        ...['network_enforcement_node', ...STAMPS, 'created_by', 'updated_by'],
      ],
      filter: {
        params: { name: discoveredName },
        wire: { name: discoveredName },
        keeps: ({ name }) => name === discoveredName,
      },
      unknown: NO_UUID,
    },
  ]
}
