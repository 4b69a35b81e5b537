import { ID, NO_UUID, type KindRow } from '../kind-row.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

/** Network devices (P12, P49). */
export async function deviceKinds(pce: ContractPce): Promise<KindRow[]> {
  const made = async (path: string, body: object) => (await pce.ask<{ href: string }>('POST', path, body)).href
  const workload = await made('/orgs/1/workloads', { name: 'contract-1', hostname: 'contract-1.example.com' })
  const node = (await pce.list('/orgs/1/network_enforcement_nodes'))[0]?.href
  const newDevice = (name: string) =>
    made(`${node}/network_devices`, {
      name,
      device_type: 'switch',
      manufacturer: 'Cisco',
      model: '9000',
      ip_address: '192.0.2.20',
    })
  const device = await newDevice('Contract switch')
  await newDevice('Contract spare')

  return [
    {
      kind: 'network_enforcement_nodes',
      path: '/orgs/1/network_enforcement_nodes',
      id: ID.uuid,
      fields: ['hostname', 'network_devices'],
      filter: { params: { model: 'no such' }, wire: { model: 'no such' }, keeps: () => false, none: true },
      update: { body: { target_pce_fqdn: 'pce2.example.com' } },
      bad: { hostname: 'x' },
      unknown: NO_UUID,
    },
    {
      kind: 'network_devices',
      path: '/orgs/1/network_devices',
      id: ID.uuid,
      fields: ['href', 'config', 'supported_endpoint_type', 'network_enforcement_node'],
      update: { body: { description: 'In the basement' }, reads: { config: { description: 'In the basement' } } },
      remove: true,
      filter: {
        params: { name: 'Contract switch' },
        wire: { name: 'Contract switch' },
        keeps: ({ config }) => (config as Json).name === 'Contract switch',
      },
      bad: { rules_format: 'xml' },
      unknown: NO_UUID,
    },
    {
      kind: 'network_endpoints',
      path: `${device}/network_endpoints`,
      parent: device,
      id: ID.uuid,
      fields: ['href', 'config'],
      creates: [
        { body: { config: { name: 'port-1', endpoint_type: 'switch_port' } } },
        {
          body: {
            config: { name: 'port-2', endpoint_type: 'switch_port', traffic_flow_id: '7', workload_discovery: false },
            workloads: [{ href: workload }],
          },
        },
      ],
      update: {
        body: { config: { name: 'port-2b', endpoint_type: 'switch_port' } },
        reads: { config: { name: 'port-2b' } },
      },
      remove: true,
      bad: { workloads: [] },
      unknown: NO_UUID,
    },
  ]
}
