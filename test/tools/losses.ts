import type { Json } from './harness.js'

const WORST = ['blocked_by_override_deny', 'cut', 'possibly_cut']
const NAMES: Record<number, string> = { 1: 'icmp', 6: 'tcp', 17: 'udp' }

/** What one source loses, by the ports that an answer of create-ringfence lists for it. */
export interface SourceLoss {
  kind: string
  source: string
  /** The worst of its ports. */
  effect: string
  connections: number
  ports: string[]
}

/** Who loses traffic by an answer of create-ringfence: for certain, then possibly; the busiest first. */
export function lossesOf(plan: Json): SourceLoss[] {
  const rows = [
    ...plan.inbound_remote_apps.map((row: Json) => ({
      ...row,
      kind: 'application',
      source: `${row.app} (${row.env})`,
    })),
    ...plan.unlabelled_inbound.map((row: Json) => ({ ...row, source: row.name ?? row.hostname ?? row.fqdn ?? row.ip })),
  ]
  return rows
    .flatMap(({ kind, source, observed_ports: ports }: Json): SourceLoss[] => {
      const lost = ports.filter(({ effect }: Json) => WORST.includes(effect))
      const effect = WORST.find((one) => lost.some((port: Json) => port.effect === one))
      if (effect === undefined) return []
      const connections = lost.reduce((sum: number, port: Json) => sum + port.connections, 0)
      return [{ kind, source, effect, connections, ports: [...new Set<string>(lost.map(portName))] }]
    })
    .sort(
      (a, b) =>
        Number(a.effect === 'possibly_cut') - Number(b.effect === 'possibly_cut') || b.connections - a.connections,
    )
}

/** As `443/tcp`, or the protocol alone. */
export const portName = ({ port, proto }: Json): string => {
  const name = NAMES[proto] ?? String(proto)
  return (port ?? 0) === 0 ? name : `${port}/${name}`
}
