import type { PceObject } from '../../schemas/pce/reference.js'
import { requireFreeExternalData, requireLabels } from '../validate/check-references.js'
import type { World } from '../world.js'
import { LEGACY_MODES, type WorkloadFields } from './workload-shapes.js'

/** Builds the full object of a new workload without a VEN (P16). */
export function buildUnmanaged(world: World, fields: WorkloadFields): Record<string, unknown> {
  const { labels = [], interfaces = [], agent, enforcement_mode } = fields
  requireFreePair(world, fields)
  const mode = enforcement_mode ?? LEGACY_MODES[agent?.config.mode ?? 'illuminated']!
  return {
    deleted: false,
    delete_type: null,
    name: fields.name ?? null,
    description: fields.description ?? null,
    managed: false,
    hostname: fields.hostname ?? null,
    service_principal_name: fields.service_principal_name ?? null,
    agent_to_pce_certificate_authentication_id: fields.agent_to_pce_certificate_authentication_id ?? null,
    distinguished_name: fields.distinguished_name ?? null,
    public_ip: fields.public_ip ?? null,
    external_data_set: fields.external_data_set ?? null,
    external_data_reference: fields.external_data_reference ?? null,
    interfaces: interfaces.map(describeInterface),
    ignored_interface_names: [],
    service_provider: fields.service_provider ?? null,
    data_center: fields.data_center ?? null,
    data_center_zone: fields.data_center_zone ?? null,
    os_id: fields.os_id ?? null,
    os_detail: fields.os_detail ?? null,
    online: fields.online ?? true,
    labels: requireLabels(world, labels),
    services: { open_service_ports: [] },
    enforcement_mode: mode,
    visibility_level: 'flow_summary',
    selectively_enforced_services: [],
    num_enforcement_boundaries: 0,
    containers_inherit_host_policy: false,
    blocked_connection_action: 'drop',
    firewall_coexistence: { illumio_primary: false },
    vulnerabilities_summary: null,
    detected_vulnerabilities: null,
    risk_summary: { ransomware: null },
    agent: withMode(null, mode),
    container_cluster: null,
    datacenter_nat_1to1: false,
    deleted_at: null,
    deleted_by: null,
  }
}

/**
 * Requires that no other workload has the same external data. This compares up to 50,000 workloads, so it is done only
 * if the request contains external data.
 */
export function requireFreePair(
  world: World,
  fields: { external_data_set?: unknown; external_data_reference?: unknown },
  current?: PceObject,
): void {
  if (fields.external_data_set === undefined && fields.external_data_reference === undefined) return
  requireFreeExternalData(otherWorkloads(world, current), { ...current, ...fields })
}

function* otherWorkloads(world: World, current: PceObject | undefined): Generator<PceObject> {
  for (const other of world.workloads.all()) {
    if (other.deleted !== true && other.href !== current?.href) yield other
  }
}

/** Updates the agent's older field `config.mode` to match the enforcement mode. */
export function withMode(agent: unknown, mode: string): Record<string, unknown> {
  const { config, ...rest } = (agent ?? {}) as { config?: Record<string, unknown> }
  const legacy = Object.entries(LEGACY_MODES).find(([, current]) => current === mode)?.[0]
  return {
    ...rest,
    config: {
      log_traffic: true,
      visibility_level: 'flow_summary',
      security_policy_update_mode: 'adaptive',
      ...config,
      mode: legacy,
    },
  }
}

/** Returns the agent of a workload after a change, or undefined if the change does not affect the agent. */
export function changeAgent(
  current: unknown,
  { mode, status, log_traffic }: { mode?: string; status?: string; log_traffic?: boolean },
): Record<string, unknown> | undefined {
  let agent = current as { config?: object; status?: object } | null | undefined
  if (mode !== undefined) agent = withMode(agent, mode)
  if (log_traffic !== undefined) agent = { ...agent, config: { ...agent?.config, log_traffic } }
  if (status !== undefined && agent?.status) agent = { ...agent, status: { ...agent.status, status } }
  return agent === current ? undefined : (agent as Record<string, unknown>)
}

type GivenInterface = NonNullable<WorkloadFields['interfaces']>[number]

/**
 * Builds the stored form of a network interface. An interface that is added to an existing workload may lack an
 * address.
 */
export function describeInterface(
  given: Omit<GivenInterface, 'address'> & { address?: string },
): Record<string, unknown> {
  return {
    name: given.name,
    link_state: given.link_state ?? null,
    address: given.address,
    cidr_block: given.cidr_block ?? null,
    default_gateway_address: given.default_gateway_address ?? null,
    network: given.network ?? null,
    network_detection_mode: 'single_private_brn',
    friendly_name: given.friendly_name ?? null,
    loopback: false,
  }
}
