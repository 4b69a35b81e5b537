import { protocolName, TCP, UDP } from '../inventory/protocols.js'
import { applicationColumns, applicationId, applicationIds, type Application } from '../traffic/applications.js'
import { textColumn, portColumn, endColumn, protocolNameColumn, type Column } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'
import type { AppGraph } from './lay-out-graph.js'

/**
 * The numbers of connections of each edge by policy decision, as parallel arrays. Entry i of each array stands for one
 * decision on one edge. Entries are in order of first appearance.
 */
export interface EdgeDecisions {
  /** The number of the edge. */
  readonly edge: Uint32Array
  /** Index of the decision in `names`. */
  readonly decision: Uint32Array
  readonly connections: Float64Array
  /** Names of the decisions. The name is `unknown` if the PCE reported no decision. */
  readonly names: readonly string[]
}

/** The graph of applications, the traffic between them, and the policy decisions on that traffic. */
export interface DecidedGraph extends AppGraph {
  readonly decisions: EdgeDecisions
}

/** Returns the numbers of connections by decision for each of the given edges. */
export function decisionsOf(
  { edge, decision, connections, names }: EdgeDecisions,
  wanted: Iterable<number>,
): Map<number, Record<string, number>> {
  const found = new Map<number, Record<string, number>>(Array.from(wanted, (number) => [number, {}]))
  for (const [at, number] of edge.entries()) {
    const decisions = found.get(number)
    if (decisions !== undefined) decisions[names[decision[at]!]!] = connections[at]!
  }
  return found
}

/** Builds the graph of applications from flow rows. */
interface AppGraphCollector {
  /** Returns true if the source and destination of a row are two different applications. */
  isEdge(row: FlowRow): boolean
  /** Adds a row and returns the number of its edge; null if the row does not lead from one application to another. */
  readonly add: (row: FlowRow) => number | null
  /**
   * Returns the graph. Each ordered pair of applications is one edge, with its numbers of connections by decision (T11,
   * T17).
   */
  finish(): DecidedGraph
}

export function collectAppGraph(encoder: FlowEncoder): AppGraphCollector {
  const { src, dst } = applicationColumns(encoder)
  const nodes: Application[] = []
  /** The index of each application in `nodes`, by the code that the flow encoder gave the application. */
  const places: number[] = []
  const placeOf = (code: number) => (places[code] ??= nodes.push(src.value(code) as Application) - 1)
  // The numbers of the current row's source, destination and edge. Grouping by numbers avoids decoding strings that may
  // not occur in any answer.
  const current = { from: 0, to: 0, edge: 0 }
  const numbers = (name: keyof typeof current): Column<number> => ({ code: () => current[name], value: (code) => code })
  const pairs = groupRows({ from: numbers('from'), to: numbers('to') })
  const decided = groupRows({ edge: numbers('edge'), decision: textColumn(encoder, 'decision') })
  const isEdge = (row: FlowRow) => {
    const [from, to] = [src.code(row), dst.code(row)]
    return from !== 0 && to !== 0 && from !== to
  }
  return {
    isEdge,
    add(row) {
      if (!isEdge(row)) return null
      current.from = placeOf(src.code(row))
      current.to = placeOf(dst.code(row))
      current.edge = pairs.add(row)
      decided.add(row)
      return current.edge
    },
    finish() {
      const edges = {
        from: Uint32Array.from({ length: pairs.size }, (_, edge) => pairs.value(edge, 'from')),
        to: Uint32Array.from({ length: pairs.size }, (_, edge) => pairs.value(edge, 'to')),
        connections: Float64Array.from({ length: pairs.size }, (_, edge) => pairs.connections(edge)),
      }
      const texts = Array.from({ length: decided.size }, (_, group) => decided.value(group, 'decision') ?? 'unknown')
      const names = [...new Set(texts)]
      const decisions = {
        edge: Uint32Array.from(texts, (_, group) => decided.value(group, 'edge')),
        decision: Uint32Array.from(texts, (text) => names.indexOf(text)),
        connections: Float64Array.from(texts, (_, group) => decided.connections(group)),
        names,
      }
      return { nodes, edges, decisions }
    },
  }
}

/** The ports of remote administration and file sharing, which are the usual means of lateral movement (T18). */
export const HIGH_RISK_PORTS: readonly number[] = [22, 23, 135, 139, 445, 3389, 5985, 5986]

interface EdgePorts {
  /** The ports in the form `443/tcp`, busiest first. Protocols without ports appear by name. */
  ports: string[]
  ports_total: number
  high_risk_ports: number[]
}

/** Collects the ports that are used on each edge of the graph. Edges are identified by their numbers. */
export interface EdgePortCollector {
  readonly add: (edge: number, row: FlowRow) => void
  /** Returns the busiest ports of each of the given edges, at most `limit` per edge. */
  of(edges: ReadonlySet<number>, limit: number): Map<number, EdgePorts>
  /** Returns the edges that use high-risk ports, each with the number of its connections on these ports. */
  risky(): Map<number, number>
}

/**
 * Encodes a port and protocol as one number. Protocol numbers are below 256; -1 stands for a missing port or protocol.
 */
const service: Column<{ port: number; proto: number }> = {
  code: ({ port, proto }) => (port + 1) * 257 + proto + 1,
  value: (code) => ({ port: Math.floor(code / 257) - 1, proto: (code % 257) - 1 }),
}

export function collectEdgePorts(): EdgePortCollector {
  // Number of the edge to which the current row belongs.
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

export interface PortUse {
  port: number | null
  proto: string | null
  connections: number
}

/** How other applications and addresses use one application. */
export interface Consumed {
  /** The ports with the most connections. Traffic inside the application does not count. */
  ports: PortUse[]
  ports_total: number
  /** Number of distinct source addresses without an app label. */
  unmanaged_sources: number
}

/** Collects the ports on which applications are used, and the number of unlabelled addresses that use them (T17). */
export interface Consumption {
  readonly add: (row: FlowRow) => void
  /** Returns the use of the given applications, in the same order, with at most `ports` ports each. */
  of(applications: readonly Application[], ports: number): Consumed[]
}

export function collectConsumption(encoder: FlowEncoder): Consumption {
  const { src, dst } = applicationIds(encoder)
  const unlabelled = endColumn(encoder, 'src', ({ ip, labels }) => (labels['app'] === undefined ? (ip ?? '-') : null))
  const ports = groupRows({ dst, port: portColumn, proto: protocolNameColumn })
  const sources = groupRows({ dst, ip: unlabelled })
  return {
    add(row) {
      const target = dst.code(row)
      if (target === 0) return
      if (src.code(row) !== target) ports.add(row)
      if (unlabelled.code(row) !== 0) sources.add(row)
    },
    of(applications, limit) {
      const ids = new Set<string | null>(applications.map(applicationId))
      const busiest = ports.busiestWithin('dst', ids, limit)
      const counts = sources.busiestWithin('dst', ids, 0)
      return applications.map((application) => {
        const used = busiest.get(applicationId(application))
        return {
          ports: (used?.groups ?? []).map(({ keys: { port, proto }, measures: { connections } }) => ({
            port,
            proto,
            connections,
          })),
          ports_total: used?.total ?? 0,
          unmanaged_sources: counts.get(applicationId(application))?.total ?? 0,
        }
      })
    },
  }
}

/**
 * Counts source addresses that belong to no application, so that their traffic is not an edge of the application graph.
 */
export interface UnlabelledCollector {
  /**
   * Returns true if the source of a row belongs to no application and the destination belongs to one. Only such rows
   * are added.
   */
  isSource(row: FlowRow): boolean
  readonly add: (row: FlowRow) => void
  /**
   * Returns the number of distinct source addresses with traffic to at least one application for which `isWanted`
   * returns true.
   */
  count(isWanted: (application: Application) => boolean): number
}

export function collectUnlabelledSources(encoder: FlowEncoder): UnlabelledCollector {
  const { src, dst } = applicationColumns(encoder)
  const sources = groupRows({ dst, ip: endColumn(encoder, 'src', ({ ip }) => ip ?? '-') })
  const isSource = (row: FlowRow) => src.code(row) === 0 && dst.code(row) !== 0
  return {
    isSource,
    add(row) {
      if (isSource(row)) sources.add(row)
    },
    count(isWanted) {
      const addresses = new Set<string | null>()
      for (let group = 0; group < sources.size; group++)
        if (isWanted(sources.value(group, 'dst') as Application)) addresses.add(sources.value(group, 'ip'))
      return addresses.size
    },
  }
}
