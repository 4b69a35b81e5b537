import { portColumn, type Column } from '../traffic/columns.js'
import type { FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'
import { protocolName, TCP, UDP } from '../inventory/protocols.js'

/** Ports of remote administration and file sharing, by which intruders move (tools contract, B7). */
export const HIGH_RISK_PORTS: readonly number[] = [22, 23, 135, 139, 445, 3389, 5985, 5986]

export interface EdgePorts {
  /** `443/tcp`, the busiest first; protocols without ports by name. */
  ports: string[]
  ports_total: number
  high_risk_ports: number[]
}

/** On which ports edges are open. Edges are known by number. */
export interface EdgePortCollector {
  readonly add: (edge: number, row: FlowRow) => void
  /** Of these edges, at most `limit` ports each. */
  of(edges: ReadonlySet<number>, limit: number): Map<number, EdgePorts>
  /** The edges that use high-risk ports, and their connections on those. */
  risky(): Map<number, number>
}

/** A port and its protocol as one number: the protocol is below 256, and -1 counts as none of either. */
const service: Column<{ port: number; proto: number }> = {
  code: ({ port, proto }) => (port + 1) * 257 + proto + 1,
  value: (code) => ({ port: Math.floor(code / 257) - 1, proto: (code % 257) - 1 }),
}

export function collectEdgePorts(): EdgePortCollector {
  // The edge of the row at hand.
  let current = 0
  const edge: Column<number> = { code: () => current, value: (code) => code }
  const services = groupRows({ edge, service })
  const risks = groupRows({ edge, port: portColumn })

  return {
    add(number, row) {
      current = number
      services.add(row)
      if (isHighRisk(row)) risks.add(row)
    },
    of(edges, limit) {
      const used = services.busiestWithin('edge', edges, limit)
      const risky = risks.within('edge', edges)
      return new Map(
        [...used].map(([number, { total, groups }]) => [
          number,
          {
            ports: groups.map(({ keys }) => showPort(keys.service)),
            ports_total: total,
            high_risk_ports: (risky.get(number)?.values('port') ?? [])
              .flatMap((port) => port ?? [])
              .sort((a, b) => a - b),
          },
        ]),
      )
    },
    risky() {
      const connections = new Map<number, number>()
      for (let group = 0; group < risks.size; group++) {
        const number = risks.value(group, 'edge')
        connections.set(number, (connections.get(number) ?? 0) + risks.connections(group))
      }
      return connections
    },
  }
}

const isHighRisk = ({ port, proto }: { port: number; proto: number }) =>
  (proto === TCP || proto === UDP) && HIGH_RISK_PORTS.includes(port)

function showPort({ port, proto }: { port: number; proto: number }): string {
  const name = proto === -1 ? '-' : protocolName(proto)
  return proto === TCP || proto === UDP ? `${port}/${name}` : name
}
