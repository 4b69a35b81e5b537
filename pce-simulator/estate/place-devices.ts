import type { PceObject } from '../../schemas/pce/reference.js'
import type { EstateOptions, Inventory } from '../model.js'
import { SUPPORTED_DEVICES, SWITCHES, VIRTUAL_SERVERS } from './data/devices.js'
import { CREATED_AT } from './number-labels.js'
import { createRandom } from './random.js'
import { HEARTBEAT_AT } from './shape-workload.js'

/**
 * Creates an enforcement node with its switches, and a pair of load balancers with their virtual servers. A separate
 * random sequence is used for these objects.
 */
export function placeDevices({ seed, orgId }: EstateOptions): Inventory {
  const random = createRandom(seed ^ 0xde)
  const org = (path: string) => `/orgs/${orgId}/${path}/${random.uuid()}`
  const stamped = (author: string) => ({
    created_at: CREATED_AT,
    updated_at: CREATED_AT,
    created_by: { href: author },
    updated_by: { href: author },
  })

  const node: PceObject = {
    href: org('network_enforcement_nodes'),
    org_id: orgId,
    hostname: 'nen-1.example.com',
    name: 'nen-1',
    public_ip: '10.40.255.2',
    software_version: '2.6.30',
    last_status_at: HEARTBEAT_AT,
    uptime_seconds: 604_800,
    supported_devices: SUPPORTED_DEVICES,
    conditions: [],
    target_pce_fqdn: null,
    active_pce_fqdn: null,
  }
  const byNode = { network_enforcement_node: { href: node.href } }
  const switches = SWITCHES.map(({ ports, ...config }) => ({
    ports,
    device: {
      href: org('network_devices'),
      config: {
        ...config,
        description: '',
        device_type: 'switch',
        credentials: { type: 'api', port: 443, username: 'illumio' },
        rules_format: 'json',
      },
      configure: false,
      supported_endpoint_type: 'switch_port',
      ...byNode,
      status: 'active',
    },
  }))
  const endpoints = switches.flatMap(({ ports, device }) =>
    Array.from({ length: ports }, (_, index) => ({
      href: `${device.href}/network_endpoints/${random.uuid()}`,
      config: { endpoint_type: 'switch_port', name: `Ethernet1/${index + 1}`, workload_discovery: false },
      workloads: [],
    })),
  )
  const slb: PceObject = {
    href: org('slbs'),
    name: 'dc1-balancers',
    description: 'In front of the shop',
    device_type: 'f5',
    ...byNode,
    devices: ['10.40.255.20', '10.40.255.21'].map((host) => ({
      href: org('slb_devices'),
      config: { host, port: 443, credential_type: 'password', username: 'illumio', check_certificate: true },
      status: { status: 'active' },
    })),
    ...stamped('/users/2'),
  }
  const discovered = VIRTUAL_SERVERS.map(({ name, vip, port, locals }) => ({
    href: org('discovered_virtual_servers'),
    dvs_identifier: `/Common/${name}`,
    name,
    vip_port: { vip, protocol: 6, port },
    local_ips: [...locals],
    mode: 'snat',
    slb: { href: slb.href },
    snat_type: 'automap',
    snat_pool_ips: [],
    service_checks: [{ protocol: 6, port: 8080 }],
    ...byNode,
    ...stamped('/users/0'),
  }))

  return {
    network_enforcement_nodes: [
      {
        ...node,
        uuid: node.href.slice(node.href.lastIndexOf('/') + 1),
        network_devices: switches.map(({ device }) => ({ href: device.href })),
      },
    ],
    network_devices: switches.map(({ device }) => device),
    network_endpoints: endpoints,
    slbs: [slb],
    discovered_virtual_servers: discovered,
  }
}
