import { ID, NO_UUID, type KindRow } from '../kind-row.js'
import type { ContractPce, Json } from '../start-contract-pce.js'

/** Network devices (P12, P49). */
export async function deviceKinds(pce: ContractPce): Promise<KindRow[]> {
  const made = async (path: string, body: object) => (await pce.ask<{ href: string }>('POST', path, body)).href
  const workload = await made('/orgs/1/workloads', { name: 'contract-1', hostname: 'contract-1.example.com' })
  const [device = '', spare = ''] = (await pce.list('/orgs/1/network_devices')).map(({ href }) => href)
  if (spare === '') throw new Error('The estate has too few network devices')

  return [
    {
      kind: 'network_enforcement_nodes',
      path: '/orgs/1/network_enforcement_nodes',
      id: ID.uuid,
      fields: ['hostname', 'network_devices'],
      filter: { params: { name: 'no such' }, wire: { name: 'no such' }, keeps: () => false, none: true },
      update: { body: { target_pce_fqdn: 'pce2.example.com' } },
      unknown: NO_UUID,
    },
    {
      kind: 'network_devices',
      path: '/orgs/1/network_devices',
      id: ID.uuid,
      fields: ['href', 'config', 'supported_endpoint_type', 'network_enforcement_node'],
      update: { body: { description: 'In the basement' } },
      remove: true,
      filter: {
        params: { name: 'core-switch-1' },
        wire: { name: 'core-switch-1' },
        keeps: ({ config }) => (config as Json).name === 'core-switch-1',
      },
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
      unknown: NO_UUID,
    },
  ]
}
