import { applicationColumns, applicationId, type Application } from '../flows/applications.js'
import type { Column } from '../flows/columns.js'
import type { FlowEncoder, FlowRow } from '../flows/encode-flow.js'
import { groupRows } from '../flows/group-rows.js'
import { protocolName, TCP, UDP } from '../protocols.js'

/** Ports of remote administration and file sharing, by which intruders move (tools contract, B7). */
export const HIGH_RISK_PORTS: readonly number[] = [22, 23, 135, 139, 445, 3389, 5985, 5986]

export interface Edge {
  from: Application
  to: Application
}

export interface EdgePorts {
  /** `443/tcp`, the busiest first; protocols without ports by name. */
  ports: string[]
  ports_total: number
  high_risk_ports: number[]
}

/** On which ports edges are open. */
export interface EdgePortCollector {
  /** For rows that join two applications. */
  readonly add: (row: FlowRow) => void
  /** Of these edges, in their order, at most `limit` ports each. */
  of(edges: readonly Edge[], limit: number): EdgePorts[]
  /** The edges with most connections on high-risk ports, and how many have any. */
  riskiest(limit: number): { total: number; edges: (Edge & { connections: number })[] }
}

/** A port and its protocol as one number: the protocol is below 256, and -1 counts as none of either. */
const service: Column<{ port: number; proto: number }> = {
  code: ({ port, proto }) => (port + 1) * 257 + proto + 1,
  value: (code) => ({ port: Math.floor(code / 257) - 1, proto: (code % 257) - 1 }),
}

export function collectEdgePorts(encoder: FlowEncoder): EdgePortCollector {
  const { src, dst } = applicationColumns(encoder)
  const edges = groupRows({ from: src, to: dst })
  const risky = groupRows({ from: src, to: dst })
  // The edge of the row at hand, so that its services need two columns.
  let current = 0
  const edge: Column<number> = { code: () => current, value: (code) => code }
  const services = groupRows({ edge, service })

  return {
    add(row) {
      current = edges.add(row)
      services.add(row)
      if (isHighRisk(row)) risky.add(row)
    },
    of(wanted, limit) {
      const numbers = new Map<string, number>()
      for (const { keys, number } of edges) numbers.set(edgeId(keys as Edge), number)
      const numberOf = (one: Edge) => numbers.get(edgeId(one)) ?? -1
      const found = services.busiestWithin('edge', new Set(wanted.map(numberOf)), Infinity)
      return wanted.map((one) =>
        showPorts(found.get(numberOf(one))?.groups.map(({ keys }) => keys.service) ?? [], limit),
      )
    },
    riskiest(limit) {
      const { total, groups } = risky.busiest(limit)
      return {
        total,
        edges: groups.map(({ keys, measures }) => ({ ...(keys as Edge), connections: measures.connections })),
      }
    },
  }
}

const isHighRisk = ({ port, proto }: { port: number; proto: number }) =>
  (proto === TCP || proto === UDP) && HIGH_RISK_PORTS.includes(port)

const edgeId = ({ from, to }: Edge) => `${applicationId(from)}\u0000${applicationId(to)}`

function showPorts(services: readonly { port: number; proto: number }[], limit: number): EdgePorts {
  const nameOf = (proto: number) => (proto === -1 ? '-' : protocolName(proto))
  return {
    ports: services
      .slice(0, limit)
      .map(({ port, proto }) => (proto === TCP || proto === UDP ? `${port}/${nameOf(proto)}` : nameOf(proto))),
    ports_total: services.length,
    high_risk_ports: [...new Set(services.filter(isHighRisk).map(({ port }) => port))].sort((a, b) => a - b),
  }
}
