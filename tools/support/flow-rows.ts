import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'
import { ANY_IP_LIST_NAME } from '../../schemas/pce/ip-list.js'
import type { LabelIndex } from './load-labels.js'

/** One end of a flow. Missing values are null; an empty string counts as missing. */
export interface FlowEnd {
  ip: string | null
  fqdn: string | null
  /** The workload's host name, else its name. */
  hostname: string | null
  /** Names joined with ", ". */
  ip_lists: string | null
  /** A workload with an agent of this PCE. */
  managed: boolean
  labels: Readonly<Record<string, string>>
}

/** One aggregated row of a traffic query, flattened (tools contract, A8). */
export interface FlowRow {
  src: FlowEnd
  dst: FlowEnd
  port: number | null
  proto: number | null
  process_name: string | null
  windows_service_name: string | null
  user_name: string | null
  policy_decision: string
  flow_direction: string | null
  matched_rules: string | null
  state: string | null
  num_connections: number
  /** Bytes into and out of the destination. */
  bytes_in: number
  bytes_out: number
  first_detected: string | null
  last_detected: string | null
}

/** A flow as a row. Labels the PCE names by href alone are looked up; one that is unknown even there is left out. */
export function toFlowRow(flow: TrafficFlow, labels: LabelIndex | null): FlowRow {
  const { service } = flow
  return {
    src: toEnd(flow.src, labels),
    dst: toEnd(flow.dst, labels),
    port: service.port ?? null,
    proto: service.proto ?? null,
    process_name: present(service.process_name),
    windows_service_name: present(service.windows_service_name),
    user_name: present(service.user_name),
    policy_decision: flow.policy_decision ?? 'unknown',
    flow_direction: present(flow.flow_direction),
    matched_rules: present(flow.rules?.map(({ href }) => href).join(', ')),
    state: present(flow.state),
    num_connections: flow.num_connections ?? 0,
    bytes_in: flow.dst_bi ?? 0,
    bytes_out: flow.dst_bo ?? 0,
    first_detected: present(flow.timestamp_range?.first_detected),
    last_detected: present(flow.timestamp_range?.last_detected),
  }
}

function toEnd(node: FlowNode, index: LabelIndex | null): FlowEnd {
  const { workload } = node
  const labels: Record<string, string> = {}
  for (const label of workload?.labels ?? []) {
    const { key, value } = label.key !== undefined && label.value !== undefined ? label : (index?.get(label.href) ?? {})
    if (key !== undefined && value !== undefined) labels[key] = value
  }
  return {
    ip: present(node.ip),
    // Release 26.3 calls it fqdn_name (pce-api e.12).
    fqdn: present(node.fqdn) ?? present(node.fqdn_name),
    hostname: present(workload?.hostname) ?? present(workload?.name),
    ip_lists: present(node.ip_lists?.flatMap(({ name }) => name ?? []).join(', ')),
    managed: workload !== undefined && workload !== null && workload.managed !== false,
    labels,
  }
}

function present(text: string | null | undefined): string | null {
  const trimmed = text?.trim()
  return trimmed === undefined || trimmed === '' ? null : trimmed
}

/**
 * What one end is called in lists of endpoints: its FQDN, else its host name, else its address with the IP lists it is in,
 * else `app (env)`. Two hosts of one IP list stay two endpoints.
 */
export function endpointLabel(end: FlowEnd): string {
  if (end.fqdn !== null) return end.fqdn
  if (end.hostname !== null) return end.hostname
  const lists = tellingIpLists(end)
  if (end.ip !== null) return lists === null ? end.ip : `${end.ip} (${lists})`
  if (lists !== null) return lists
  return identityFromLabels(end, ['app', 'env']) ?? 'unknown'
}

/** What one end is to an application map: `app (env)` by the chosen label keys, else `external:<name>`, else `unlabelled`. */
export function endpointIdentity(end: FlowEnd, keys: readonly string[]): string {
  const labelled = identityFromLabels(end, keys)
  if (labelled !== null) return labelled
  const outside = end.fqdn ?? tellingIpLists(end)
  return outside === null ? 'unlabelled' : `external:${outside}`
}

function identityFromLabels(end: FlowEnd, keys: readonly string[]): string | null {
  const [first, ...rest] = keys.flatMap((key) => end.labels[key] ?? [])
  if (first === undefined) return null
  return rest.length === 0 ? first : `${first} (${rest.join(', ')})`
}

/** Every address is in the Any list, so it names an end only when no other list does. */
function tellingIpLists(end: FlowEnd): string | null {
  if (end.ip_lists === null || end.ip_lists === ANY_IP_LIST_NAME) return end.ip_lists
  const telling = end.ip_lists.split(', ').filter((name) => name !== ANY_IP_LIST_NAME)
  return telling.join(', ')
}
