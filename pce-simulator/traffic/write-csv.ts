import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'

type Cell = string | number | boolean | null | undefined

/** The columns of the source or the destination. Their names get the prefix `Source` or `Destination`. */
const END: Record<string, (end: FlowNode) => Cell> = {
  IP: ({ ip }) => ip,
  'IP List': ({ ip_lists }) => (ip_lists ?? []).map(({ name }) => name).join(';'),
  Name: ({ workload }) => workload?.name,
  Hostname: ({ workload }) => workload?.hostname,
  FQDN: ({ fqdn }) => fqdn,
  Managed: ({ workload }) => workload?.managed,
  Enforcement: ({ workload }) => workload?.enforcement_mode,
  Role: labelOf('role'),
  App: labelOf('app'),
  Env: labelOf('env'),
  Loc: labelOf('loc'),
}

const PROTOCOLS: Readonly<Record<number, string>> = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 58: 'ICMPv6' }

const COLUMNS: Record<string, (flow: TrafficFlow) => Cell> = {
  ...endColumns('Source', ({ src }) => src),
  ...endColumns('Destination', ({ dst }) => dst),
  Transmission: ({ transmission }) => transmission ?? 'unicast',
  Port: ({ service }) => service.port,
  Protocol: ({ service: { proto } }) => (typeof proto === 'number' ? (PROTOCOLS[proto] ?? proto) : ''),
  'Process Name': ({ service }) => service.process_name,
  'Windows Service Name': ({ service }) => service.windows_service_name,
  'User Name': ({ service }) => service.user_name,
  'Num Flows': ({ num_connections }) => num_connections,
  'Connection State': ({ state }) => state,
  'Flow Direction': ({ flow_direction }) => flow_direction,
  'Reported Policy Decision': ({ policy_decision }) => inWords(policy_decision),
  'Reported Enforcement Boundary': ({ boundary_decision }) => inWords(boundary_decision),
  'Reported by': ({ flow_direction }) => (flow_direction === 'inbound' ? 'Destination' : 'Source'),
  'Draft Policy Decision': ({ draft_policy_decision }) => inWords(draft_policy_decision),
  'Bytes In': ({ dst_bi }) => dst_bi,
  'Bytes Out': ({ dst_bo }) => dst_bo,
  'First Detected': ({ timestamp_range }) => timestamp_range?.first_detected,
  'Last Detected': ({ timestamp_range }) => timestamp_range?.last_detected,
}

/**
 * Writes the rows of a traffic query as CSV line by line, beginning with a header. The format is RFC 4180, except that
 * lines end with a line feed (P71).
 */
export function* writeCsv(flows: Iterable<TrafficFlow>): Generator<string> {
  yield `${Object.keys(COLUMNS).join(',')}\n`
  const columns = Object.values(COLUMNS)
  for (const flow of flows) yield `${columns.map((valueOf) => quote(valueOf(flow))).join(',')}\n`
}

function endColumns(side: string, endOf: (flow: TrafficFlow) => FlowNode): typeof COLUMNS {
  return Object.fromEntries(
    Object.entries(END).map(([name, valueOf]) => [`${side} ${name}`, (flow: TrafficFlow) => valueOf(endOf(flow))]),
  )
}

function labelOf(key: string): (end: FlowNode) => Cell {
  return ({ workload }) => workload?.labels?.find((label) => label.key === key)?.value
}

/** Formats a token such as `potentially_blocked` as the PCE's web console shows it. */
function inWords(token: string | null | undefined): string {
  return (token ?? '')
    .split('_')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join(' ')
}

function quote(value: Cell): string {
  const text = String(value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
