import { readDecision } from '../../schemas/pce/policy-decisions.js'
import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'

const STRICT = ['blocked', 'potentially_blocked', 'allowed', 'unknown']
const sum = (flows: readonly TrafficFlow[]) => flows.reduce((all, { num_connections: some }) => all + (some ?? 0), 0)

/**
 * Counts every conversation once, by itself: of the rows of both ends those with more connections, the stricter decision first, and of ends that
 * share no decision the stricter one's. It shares nothing with the product but the names of decisions, and leaves times aside: rows of one query
 * are of one window.
 */
export function onceEach(flows: readonly TrafficFlow[]): TrafficFlow[] {
  const groups = new Map<string, TrafficFlow[]>()
  const alone: TrafficFlow[] = []
  for (const flow of flows) {
    const { src, dst, service, icmp_type, icmp_code, network, transmission } = flow
    const ends = [src, dst].map(identify)
    if (ends.includes(null)) alone.push(flow)
    else {
      const key = JSON.stringify([ends, service.port, service.proto, icmp_type, icmp_code, network?.href, transmission])
      groups.set(key, [...(groups.get(key) ?? []), flow])
    }
  }
  return [...alone, ...[...groups.values()].flatMap(merge)]
}

function identify({ ip, workload, virtual_service: service, virtual_server: server }: FlowNode): string | null {
  const object = workload?.href ?? service?.name ?? server?.name
  return object === undefined || object === null ? null : `${object} ${ip}`
}

function merge(flows: TrafficFlow[]): TrafficFlow[] {
  const of = (direction: string) => flows.filter(({ flow_direction: one }) => one === direction)
  const [outbound, inbound] = [of('outbound'), of('inbound')]
  if (outbound.length === 0 || inbound.length === 0) return flows
  let left = Math.max(sum(outbound), sum(inbound))
  const decisionOf = ({ policy_decision: word }: TrafficFlow) => readDecision(word ?? null)
  const isIn = (some: TrafficFlow[], decision: string) => some.some((flow) => decisionOf(flow) === decision)
  if (!STRICT.some((decision) => isIn(outbound, decision) && isIn(inbound, decision))) {
    const strictest = STRICT.find((decision) => isIn(flows, decision))!
    const [first, ...rest] = (isIn(outbound, strictest) ? outbound : inbound).toSorted(
      (a, b) => STRICT.indexOf(decisionOf(a)) - STRICT.indexOf(decisionOf(b)),
    ) as [TrafficFlow, ...TrafficFlow[]]
    return [{ ...first, num_connections: left - sum(rest) }, ...rest]
  }
  return STRICT.flatMap((decision) => {
    const [out, into] = [outbound, inbound].map((some) => some.filter((flow) => decisionOf(flow) === decision)) as [
      TrafficFlow[],
      TrafficFlow[],
    ]
    return (sum(into) >= sum(out) ? into : out).flatMap((flow) => {
      const connections = Math.min(left, flow.num_connections ?? 0)
      left -= connections
      return connections === 0 ? [] : [{ ...flow, num_connections: connections }]
    })
  })
}
