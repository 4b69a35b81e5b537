import { Type } from '@sinclair/typebox'
import {
  decisionsOf,
  HIGH_RISK_PORTS,
  type EdgePortCollector,
} from '../../../domain/dependency-map/collect-app-graph.js'
import {
  edgesOfPaths,
  riskiestEdges,
  matchesFilter,
  type Movement,
  type AppFilter,
} from '../../../domain/dependency-map/search-movement.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { applicationKey, NO_DECIDED_FLOWS } from '../../../domain/traffic/applications.js'
import type { Reading } from '../../../domain/traffic/read-flows.js'
import { Count, Counts, Flag, Total } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { showSections } from '../byte-budget.js'

const Reachable = Count('Other applications it reaches over any number of hops')

const Edges = (description: string) =>
  Type.Array(
    Type.Object({
      from: Type.String(),
      to: Type.String(),
      connections: Type.Integer(),
      ports: Type.Array(Type.String(), { description: 'Busiest 10, blocked flows left out' }),
      ports_total: Total,
      high_risk_ports: Type.Array(Type.Integer(), { description: `In use, of ${HIGH_RISK_PORTS.join(', ')}` }),
      policy_decisions: Counts('Connections by decision'),
    }),
    { description },
  )

/** The lists of an answer about lateral movement. Nodes are written `app|env`. */
export const MovementLists = {
  high_risk_bridge_nodes: Type.Array(
    Type.Object({
      app: Type.String(),
      env: Type.String(),
      is_articulation_point: Flag('Always true: it links otherwise separate parts'),
      reachable_apps: Reachable,
      direct_connections_out: Count('Applications one hop on'),
      direct_connections_in: Count('Applications one hop back'),
    }),
    { description: 'Articulation points of farthest reach, at most 10' },
  ),
  top_reachable_nodes: Type.Array(
    Type.Object({
      app: Type.String(),
      env: Type.String(),
      reachable_apps: Reachable,
      is_bridge_node: Flag('It is an articulation point'),
    }),
    { description: 'Farthest reach first, at most 20' },
  ),
  high_risk_edges: Edges('Busiest on remote administration and file sharing ports, at most 20'),
  high_risk_edges_total: Total,
  paths_from: Type.Optional(Type.Array(Type.String(), { description: 'Start nodes' })),
  max_hops: Type.Optional(Count('Most hops of a path')),
  paths: Type.Optional(
    Type.Array(
      Type.Object({ path: Type.Array(Type.String(), { description: 'app|env' }), hops: Count('Edges of the path') }),
      { description: 'Shortest path to each node reached, longest first, at most 50' },
    ),
  ),
  paths_total: Type.Optional(Total),
  truncated: Type.Optional(Flag('Paths are not shown, or flows_truncated')),
  path_edges: Type.Optional(Edges('Edges of these paths')),
}

const BRIDGES_SHOWN = 10
const NODES_SHOWN = 20
const RISKY_EDGES_SHOWN = 20
const PORTS_SHOWN = 10

interface MovementFacts {
  days: number
  /** Rows between two applications. */
  between: number
  found: Movement
  start: AppFilter
  maxHops: number
  ports: EdgePortCollector
  reading: Reading
}

/** The answer of detect-lateral-movement-paths (T18). Counts of nodes and edges are of the whole estate. */
export function showMovement(
  { days, between, found, start, maxHops, ports, reading }: MovementFacts,
  { detail, limits }: { detail: 'standard' | 'full'; limits: Limits },
) {
  const { nodes, edges, paths } = found
  // An application is a start, and what it leads to lies elsewhere; an env alone narrows the view.
  const shown: AppFilter = start.app === undefined ? start : {}
  const keys = nodes.map(applicationKey)
  const ranked = found.reach.filter((row) => matchesFilter(row, shown))
  const bridges = ranked.filter((row) => row.is_articulation_point)
  const risky = riskiestEdges(found, shown, ports.risky(), RISKY_EDGES_SHOWN)
  const hops = edgesOfPaths(found)
  const shownEdges = new Set([...risky.edges, ...hops])
  const portsOf = ports.of(shownEdges, PORTS_SHOWN)
  const decided = decisionsOf(found.decisions, shownEdges)
  const showEdge = (number: number) => ({
    from: keys[edges.from[number]!]!,
    to: keys[edges.to[number]!]!,
    connections: edges.connections[number]!,
    ...portsOf.get(number)!,
    policy_decisions: decided.get(number)!,
  })
  const message = explain(found, reading)
  const envelope = {
    lookback_days: days,
    total_apps: nodes.length,
    total_edges: edges.from.length - found.blockedEdges,
    blocked_edges: found.blockedEdges,
    app_to_app_flows: between,
    articulation_points: found.reach.filter((row) => row.is_articulation_point).length,
    high_risk_edges_total: risky.total,
    ...(paths !== null && {
      max_hops: maxHops,
      paths_total: paths.total,
    }),
    recommendation: recommend(bridges.length, risky.total, shown, reading),
    ...(message !== null && { message }),
    ...reading,
  }
  const sections = {
    high_risk_bridge_nodes: {
      rows: bridges.slice(0, BRIDGES_SHOWN).map(({ node: _node, ...row }) => row),
      total: bridges.length,
    },
    top_reachable_nodes: {
      rows: ranked
        .slice(0, NODES_SHOWN)
        .map(({ app, env, reachable_apps: reachable, is_articulation_point: bridge }) => ({
          app,
          env,
          reachable_apps: reachable,
          is_bridge_node: bridge,
        })),
      total: ranked.length,
    },
    high_risk_edges: { rows: risky.edges.map(showEdge), total: risky.total },
    ...(paths !== null && {
      paths_from: all(paths.starts.map((at) => keys[at]!).sort()),
      paths: {
        rows: paths.found.map(({ path, ...rest }) => ({ path: path.map((at) => keys[at]!), ...rest })),
        total: paths.total,
      },
      path_edges: all(hops.map(showEdge)),
    }),
  }
  const answer = showSections(envelope, sections, {
    detail,
    limits,
    hint: () => 'Totals count everything. Give an application, or fewer hops, to see the rest of its paths.',
  })
  if (paths === null) return answer
  return { ...answer, truncated: reading.flows_truncated || (answer.paths?.length ?? 0) < paths.total }
}

const all = <T>(rows: readonly T[]) => ({ rows, total: rows.length })

function explain({ nodes, paths }: Movement, reading: Reading): string | null {
  if (reading.analysed.rows === 0) return NO_DECIDED_FLOWS
  if (nodes.length === 0) return 'No flow has app and env labels on both ends, so there is nothing to follow.'
  if (paths === null) return null
  if (paths.starts.length === 0) return 'The start has no flow to or from another labelled application in the window.'
  return paths.total === 0
    ? 'No unblocked flow leads from the start to another labelled application; hosts without app or env label are not followed.'
    : null
}

/** `bridges` and `risky` are counts of what `filter` shows, which is everything or one env. */
function recommend(bridges: number, risky: number, { env }: AppFilter, reading: Reading): string {
  const where = env === undefined ? '' : ` of env ${env}`
  const isPartial = reading.flows_truncated
  const advice = [
    bridges > 0
      ? `Ringfence the ${countOf(bridges, 'articulation point')}${where} first: each connects parts that would otherwise be separate.`
      : `No labelled application${where} connects parts that would otherwise be separate${isPartial ? ', in the rows read' : ''}.`,
    risky > 0
      ? `Restrict remote administration and file sharing on ${countOf(risky, 'edge')} between labelled applications${where}.`
      : `No remote administration or file sharing between labelled applications${where} is open${isPartial ? ' in the rows read; the missing rows may have some' : ''}.`,
  ]
  return advice.join(' ')
}
