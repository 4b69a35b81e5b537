import type { PceObject } from '../../schemas/pce/reference.js'
import { SMALL, smallEstate } from '../../pce-simulator/small-estate.js'

/** Words to write policy objects with. */

export const RULE = {
  enabled: true,
  providers: [{ label: { href: SMALL.db } }],
  consumers: [{ label: { href: SMALL.ordering } }],
  ingress_services: [{ href: SMALL.postgres }],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  unscoped_consumers: true,
}
export const { resolve_labels_as: _allowOnly, ...DENY_RULE } = RULE

export const IP_TABLES_RULE = {
  enabled: true,
  statements: [{ table_name: 'filter', chain_name: 'INPUT', parameters: '-p tcp --dport 22 -j ACCEPT' }],
  actors: [{ actors: 'ams' }],
  ip_version: '4',
}

/** Block what ordering asks of the databases. */
export const BOUNDARY = {
  name: 'No databases',
  providers: [{ label: { href: SMALL.db } }],
  consumers: [{ label: { href: SMALL.ordering } }],
  ingress_services: [{ port: 5432, proto: 6 }],
}

export const DISCOVERED = [1, 2].map((number) => `/orgs/1/discovered_virtual_servers/${number}`)

export const VIRTUAL_SERVER = {
  name: 'shop',
  labels: [{ href: SMALL.prod }],
  service: { href: SMALL.postgres },
  providers: [{ label: { href: SMALL.db } }],
  discovered_virtual_server: { href: DISCOVERED[0]! },
  mode: 'enforced',
}

/** The small estate with two virtual servers that someone discovered on a load balancer. */
export function estateWithServers() {
  const discovered = DISCOVERED.map((href, index): PceObject => ({
    href,
    dvs_identifier: `/Common/shop-${index}`,
    name: `shop-${index}`,
    vip_port: { vip: `192.0.2.${index + 1}`, protocol: 6, port: '443' },
    local_ips: [],
    mode: 'snat',
    slb: { href: `/orgs/1/slbs/${index}` },
    service_checks: [],
    network_enforcement_node: { href: '/orgs/1/network_enforcement_nodes/1' },
  }))
  return { ...smallEstate(), inventory: { discovered_virtual_servers: discovered } }
}

export const active = (href: string) => href.replace('/draft/', '/active/')
export const token = (answer: { body: { token: string }[] }) => answer.body?.[0]?.token
export const message = (answer: { body: { message: string }[] }) => answer.body[0]!.message
