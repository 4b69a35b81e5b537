import type { PceObject } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import { linkState } from '../kinds/link-state.js'
import { renderLabels } from '../kinds/render-labels.js'
import type { World } from '../world.js'
import { conditionsOf } from './ven-health.js'
import { agentOf, heartbeatOf, inRecovery, ownVen, pendingUpgrade, venState, versionOf } from './ven.js'

type Interface = Record<string, unknown>

/**
 * Renders a VEN for a GET (P24). With the profile `core-25.2`, labels and workload are given only by their hrefs, and
 * the fields of the workload are left out.
 */
export function renderVen(world: World, workload: PceObject): Json {
  const ven = ownVen(workload)!
  const state = venState(world, workload)
  const agent = agentOf(workload)
  const upgrade = pendingUpgrade(world, workload)
  const isShort = world.options.reality === 'core-25.2'
  const labels = renderLabels(world, workload.labels)
  const interfaces = ((workload.interfaces ?? []) as Interface[]).map((one) =>
    renderInterface({ ...one, link_state: linkState(world, workload, one) }, isShort ? workload.href : null),
  )
  const osId = (workload.os_id ?? null) as string | null
  return {
    href: ven.href,
    name: ven.name ?? null,
    description: state?.description ?? null,
    hostname: workload.hostname ?? '',
    uid: agent.status?.uid ?? null,
    os_id: osId,
    os_detail: workload.os_detail ?? null,
    os_platform: platformOf(osId),
    version: versionOf(workload),
    status: ven.status ?? 'active',
    ven_type: ven.ven_type ?? 'server',
    activation_type: 'pairing_key',
    active_pce_fqdn: agent.active_pce_fqdn ?? null,
    target_pce_fqdn: state?.target_pce_fqdn ?? agent.target_pce_fqdn ?? null,
    golden_image: state?.golden_image ?? false,
    authentication_recovery: inRecovery(world, workload),
    labels: isShort ? labels.map(({ href }) => ({ href })) : labels,
    interfaces,
    workloads: [isShort ? { href: workload.href } : describeWorkload(workload, labels, interfaces)],
    container_cluster: workload.container_cluster ?? null,
    secure_connect: agent.secure_connect ?? null,
    last_heartbeat_at: heartbeatOf(workload),
    last_goodbye_at: null,
    conditions: conditionsOf(workload),
    unpair_allowed: true,
    upgrade_target_version: upgrade?.release ?? null,
    upgrade_expires_at: upgrade ? new Date(upgrade.expiresAt).toISOString() : null,
    created_at: workload.created_at,
    created_by: { href: ven.href },
    updated_at: state?.updated_at ?? workload.updated_at,
    updated_by: state?.updated_by ?? workload.updated_by,
    caps: ['write', 'upgrade', 'unpair', 'generate_support_report'],
  }
}

function describeWorkload(workload: PceObject, labels: unknown, interfaces: unknown): Json {
  const { config = {}, status = {} } = agentOf(workload)
  return {
    href: workload.href,
    name: workload.name ?? null,
    managed: true,
    hostname: workload.hostname ?? null,
    data_center: workload.data_center ?? null,
    data_center_zone: workload.data_center_zone ?? null,
    service_principal_name: workload.service_principal_name ?? null,
    os_id: workload.os_id ?? null,
    os_detail: workload.os_detail ?? null,
    labels,
    public_ip: workload.public_ip ?? null,
    interfaces,
    security_policy_applied_at: status.security_policy_applied_at ?? null,
    security_policy_received_at: status.security_policy_received_at ?? null,
    security_policy_sync_state: status.security_policy_sync_state ?? 'applied',
    log_traffic: config.log_traffic ?? true,
    mode: config.mode,
    enforcement_mode: workload.enforcement_mode,
    visibility_level: workload.visibility_level,
    online: workload.online ?? true,
  }
}

/**
 * Renders a network interface. If `owner` is given, the interface gets an href below the owner, and the fields that
 * interfaces have in recorded answers.
 */
function renderInterface(given: Interface, owner: string | null): Interface {
  return {
    ...(owner !== null && { href: `${owner}/interfaces/${String(given.name)}`, loopback: given.loopback ?? false }),
    name: given.name,
    link_state: given.link_state,
    address: given.address,
    cidr_block: given.cidr_block ?? null,
    default_gateway_address: given.default_gateway_address ?? null,
    network: given.network ?? null,
    network_detection_mode: given.network_detection_mode ?? null,
    friendly_name: given.friendly_name ?? null,
  }
}

function platformOf(osId: string | null): string | null {
  return osId === null ? null : osId.startsWith('win') ? 'windows' : 'linux'
}
