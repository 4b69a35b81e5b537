import type { Limits } from '../../../schemas/config.js'
import { countOf } from '../count-of.js'
import { applicationId } from '../flows/applications.js'
import type { Reading } from '../flows/describe-reading.js'
import { showSections } from '../show-sections.js'
import type { Edge, EdgePortCollector } from './collect-edge-ports.js'
import { nodeKey, type AppEdge, type AppNode } from './lay-out-graph.js'
import { isInScope, type Movement, type MovementScope } from './search-movement.js'

const BRIDGES_SHOWN = 10
const NODES_SHOWN = 20
const RISKY_EDGES_SHOWN = 20
const PORTS_SHOWN = 10

export interface MovementFacts {
  days: number
  found: Movement
  scope: MovementScope
  maxHops: number
  ports: EdgePortCollector
  reading: Reading
}

/** The answer of detect-lateral-movement-paths (tools contract, B7). Counts are of everything, lists of what the scope asks for. */
export function showMovement(
  { days, found, scope, maxHops, ports, reading }: MovementFacts,
  { detail, limits }: { detail: 'standard' | 'full'; limits: Limits },
) {
  const { nodes, paths } = found
  const inScope = found.reach.filter((row) => isInScope(row, scope))
  const bridges = inScope.filter((row) => row.is_articulation_point)
  const risky = ports.riskiest(RISKY_EDGES_SHOWN)
  const showEdges = edgeShower(found, ports)
  const articulationPoints = found.reach.filter((row) => row.is_articulation_point).length
  const message = explain(found, reading)
  const envelope = {
    lookback_days: days,
    total_apps: nodes.length,
    total_edges: found.edges.length,
    blocked_edges: found.blockedEdges,
    articulation_points: articulationPoints,
    high_risk_edges_total: risky.total,
    ...(paths !== null && {
      max_hops: maxHops,
      paths_total: paths.total,
    }),
    recommendation: recommend(articulationPoints, risky.total),
    ...(message !== null && { message }),
    ...reading,
  }
  const sections = {
    high_risk_bridge_nodes: {
      rows: bridges.slice(0, BRIDGES_SHOWN).map(({ node: _node, ...row }) => row),
      total: bridges.length,
    },
    top_reachable_nodes: {
      rows: inScope
        .slice(0, NODES_SHOWN)
        .map(({ app, env, reachable_apps: reachable, is_articulation_point: bridge }) => ({
          app,
          env,
          reachable_apps: reachable,
          is_bridge_node: bridge,
        })),
      total: inScope.length,
    },
    high_risk_edges: { rows: showEdges(risky.edges), total: risky.total },
    ...(paths !== null && {
      paths_from: all(paths.starts.map((at) => keyAt(nodes, at)).sort()),
      paths: {
        rows: paths.found.map(({ path, hops }) => ({ path: path.map((at) => keyAt(nodes, at)), hops })),
        total: paths.total,
      },
      path_edges: all(showEdges(edgesOfPaths(found))),
    }),
  }
  const answer = showSections(envelope, sections, {
    detail,
    limits,
    hint: () => 'Totals count everything. Name an application, or fewer hops, to see the rest of its paths.',
  })
  return paths === null ? answer : { ...answer, truncated: (answer.paths?.length ?? 0) < paths.total }
}

const all = <T>(rows: readonly T[]) => ({ rows, total: rows.length })

const keyAt = (nodes: readonly AppNode[], at: number) => nodeKey(nodes[at] as AppNode)

/** Edges with their traffic and ports, as answers show them. */
function edgeShower({ nodes, edges }: Movement, ports: EdgePortCollector) {
  const idOf = ({ from, to }: Edge) => `${applicationId(from)}\u0000${applicationId(to)}`
  const endsOf = ({ from, to }: AppEdge): Edge => ({ from: nodes[from] as AppNode, to: nodes[to] as AppNode })
  const byId = new Map(edges.map((edge) => [idOf(endsOf(edge)), edge]))
  return (wanted: readonly Edge[]) =>
    ports.of(wanted, PORTS_SHOWN).map((used, at) => {
      const edge = wanted[at] as Edge
      const { connections = 0, decisions = {} } = byId.get(idOf(edge)) ?? {}
      return { from: nodeKey(edge.from), to: nodeKey(edge.to), connections, ...used, policy_decisions: decisions }
    })
}

/** Every edge of the paths that were found, once, in order of appearance. */
function edgesOfPaths({ nodes, paths }: Movement): Edge[] {
  const edges = new Map<string, Edge>()
  for (const { path } of paths?.found ?? []) {
    for (let hop = 1; hop < path.length; hop++) {
      const [from, to] = [path[hop - 1] as number, path[hop] as number]
      edges.set(`${from} ${to}`, { from: nodes[from] as AppNode, to: nodes[to] as AppNode })
    }
  }
  return [...edges.values()]
}

function explain({ nodes, paths }: Movement, reading: Reading): string | null {
  if (reading.analysed.rows === 0) return 'No flows in the window.'
  if (nodes.length === 0) return 'No flow has an app and an env label on both ends, so there is nothing to follow.'
  if (paths === null) return null
  if (paths.starts.length === 0) return 'The start has no flow to or from another application in the window.'
  return paths.total === 0 ? 'No flow leaves the start that is not blocked, so nothing can be reached from it.' : null
}

function recommend(bridges: number, risky: number): string {
  const advice = [
    bridges > 0
      ? `Ringfence the ${countOf(bridges, 'articulation point')} first: each joins parts that are apart without it.`
      : 'No application joins parts that would be apart without it.',
    risky > 0
      ? `Restrict remote administration and file sharing on ${countOf(risky, 'edge')} between applications.`
      : 'No remote administration or file sharing between applications is open.',
  ]
  return advice.join(' ')
}
