import type { Label, LabelRef } from '../../schemas/pce/label.js'
import type { EnforcementMode, Workload } from '../../schemas/pce/workload.js'
import { CREATED_AT, type Location } from './number-labels.js'
import type { Process } from './data/processes.js'
import { OS_RELEASES, VEN_RELEASES } from './data/releases.js'
import type { Os } from './data/stacks.js'
import type { Random } from './random.js'

export interface ManagedFacts {
  orgId: number
  hostname: string
  ip: string
  ipv6?: string
  os: Os
  kind: 'server' | 'endpoint'
  labels: readonly Label[]
  mode: EnforcementMode
  online: boolean
  location: Location
  listeners: readonly { port: number; process: Process }[]
  /** A number that is unique among the VEN agents of the estate. */
  agentId: number
}

/** The time at which all VENs that still report sent their last heartbeat. */
export const HEARTBEAT_AT = '2026-01-17T06:00:00.000Z'
/** The names of the enforcement modes in `agent.config.mode`, which older clients read. */
const OLD_MODES: Record<EnforcementMode, string> = {
  idle: 'idle',
  visibility_only: 'illuminated',
  selective: 'selective',
  full: 'enforced',
}

export const references = (labels: readonly Label[]): LabelRef[] =>
  labels.map(({ href, key, value }) => ({ href, key, value }))

const bookkeeping = (author: string) => ({
  created_at: CREATED_AT,
  updated_at: CREATED_AT,
  created_by: { href: author },
  updated_by: { href: '/users/1' },
  deleted_at: null,
  deleted_by: null,
  deleted: false,
  delete_type: null,
  caps: ['write'],
  external_data_set: null,
  external_data_reference: null,
  service_principal_name: null,
  agent_to_pce_certificate_authentication_id: null,
  distinguished_name: null,
  container_cluster: null,
  datacenter_nat_1to1: false,
  visibility_level: 'flow_summary',
  risk_summary: { ransomware: null },
})

const gatewayOf = (ip: string) => ip.replace(/\.\d+\.\d+$/, '.255.254')

/** Returns the corporate network, to which the organisation's own addresses belong. */
export const corporateNetwork = (orgId: number) => ({
  href: `/orgs/${orgId}/networks/4c1f0d2a-0000-4000-8000-000000000001`,
  name: 'Corporate',
})

/** Renders a workload with a VEN as a collection GET shows it (P16). The VEN has the same uuid as its workload. */
export function shapeManaged(random: Random, facts: ManagedFacts): Workload {
  const { orgId, hostname, ip, ipv6, os, kind, mode, online } = facts
  const uuid = random.uuid()
  const [os_id, os_detail] = random.pick(OS_RELEASES[kind === 'endpoint' ? 'client' : os])
  const agent = `/orgs/${orgId}/agents/${facts.agentId}`
  const network = corporateNetwork(orgId)
  const nic = {
    name: os === 'windows' ? 'Ethernet0' : 'eth0',
    link_state: 'up',
    network,
    network_detection_mode: 'single_private_brn',
    friendly_name: null,
    loopback: false,
  }
  const uptime = random.integer(3600, 8_000_000)
  return {
    href: `/orgs/${orgId}/workloads/${uuid}`,
    ...bookkeeping(agent),
    name: null,
    description: null,
    managed: true,
    hostname,
    public_ip: null,
    interfaces: [
      { ...nic, address: ip, cidr_block: 16, default_gateway_address: gatewayOf(ip) },
      ...(ipv6 === undefined ? [] : [{ ...nic, address: ipv6, cidr_block: 64, default_gateway_address: null }]),
    ],
    ignored_interface_names: [],
    service_provider: null,
    data_center: facts.location,
    data_center_zone: null,
    os_id,
    os_detail,
    online,
    labels: references(facts.labels),
    services: {
      uptime_seconds: uptime,
      created_at: HEARTBEAT_AT,
      open_service_ports: facts.listeners.map(({ port, process }) => ({
        protocol: 6,
        address: '0.0.0.0',
        port,
        process_name: process.path,
        user: process.user,
        package: null,
        win_service_name: process.service ?? null,
      })),
    },
    enforcement_mode: mode,
    selectively_enforced_services: [],
    num_enforcement_boundaries: 0,
    containers_inherit_host_policy: false,
    blocked_connection_action: 'drop',
    firewall_coexistence: { illumio_primary: true },
    vulnerabilities_summary: null,
    detected_vulnerabilities: null,
    ven: { href: `/orgs/${orgId}/vens/${uuid}`, hostname, name: null, status: 'active', ven_type: kind },
    agent: {
      href: agent,
      active_pce_fqdn: null,
      target_pce_fqdn: null,
      type: 'Host',
      config: {
        mode: OLD_MODES[mode],
        log_traffic: mode !== 'idle',
        visibility_level: 'flow_summary',
        security_policy_update_mode: 'adaptive',
      },
      secure_connect: null,
      status: {
        uid: random.hex(32),
        status: 'active',
        last_heartbeat_on: HEARTBEAT_AT,
        uptime_seconds: uptime,
        agent_version: random.pick(VEN_RELEASES),
        managed_since: CREATED_AT,
        fw_config_current: true,
        firewall_rule_count: mode === 'idle' ? 0 : random.integer(40, 400),
        security_policy_refresh_at: null,
        security_policy_applied_at: CREATED_AT,
        security_policy_received_at: CREATED_AT,
        security_policy_sync_state: 'applied',
        agent_health_errors: { errors: [], warnings: [] },
        agent_health: [],
      },
    },
  }
}

/** Renders a workload that an administrator has entered by hand: it has no VEN and enforces nothing. */
export function shapeUnmanaged(
  random: Random,
  facts: { orgId: number; name: string; ip: string; osId: string | null; labels: readonly Label[] },
): Workload {
  return {
    href: `/orgs/${facts.orgId}/workloads/${random.uuid()}`,
    ...bookkeeping('/users/2'),
    name: facts.name,
    description: '',
    managed: false,
    hostname: facts.name,
    public_ip: null,
    interfaces: [
      {
        name: 'umw0',
        address: facts.ip,
        cidr_block: 16,
        default_gateway_address: null,
        link_state: null,
        friendly_name: null,
      },
    ],
    ignored_interface_names: [],
    service_provider: null,
    data_center: null,
    data_center_zone: null,
    os_id: facts.osId,
    os_detail: null,
    online: true,
    labels: references(facts.labels),
    services: { open_service_ports: [] },
    enforcement_mode: 'visibility_only',
    agent: {
      config: {
        mode: 'illuminated',
        log_traffic: false,
        visibility_level: 'flow_summary',
        security_policy_update_mode: 'adaptive',
      },
    },
  }
}
