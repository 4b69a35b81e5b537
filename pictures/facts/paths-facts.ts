import { countOf, decisionOf, DECISIONS, quoted, windowInWords, wholeNumber, type Decision } from '../picture.js'
import type { MovementAnswer } from '../../tools/ringfence/detect-lateral-movement-paths.js'

export interface PathNode {
  /** The key of the node, as the tool result gives it: `app|env`. */
  key: string
  isStart: boolean
  isTarget: boolean
  /** True if the tool result calls the node an articulation point: without it, parts of the graph would be separate. */
  isBridge: boolean
  /** The number of hops from the start or, if no start was given, to the target; null if the node is on no path. */
  hop: number | null
}

export interface PathEdge {
  from: number
  to: number
  connections: number
  /**
   * The most permissive policy decision on the traffic of this edge. `unknown` means that the traffic may be blocked.
   */
  decision: Decision
  decisions: Readonly<Record<string, number>>
  ports: readonly string[]
  portsTotal: number
  /** The ports of the edge that serve remote administration or file sharing. */
  riskyPorts: readonly number[]
}

export interface PathsFacts {
  nodes: readonly PathNode[]
  edges: readonly PathEdge[]
  /** The complete paths; each path is a list of node keys. */
  paths: readonly (readonly string[])[]
  title: string
  notes: readonly string[]
  warnings: readonly string[]
}

/** Reads an answer of detect-lateral-movement-paths: its paths, or its riskiest edges if no paths were requested. */
export function readPaths(answer: MovementAnswer): PathsFacts {
  const { paths = [], paths_from: starts = [], paths_to: targets = [], high_risk_bridge_nodes: bridges = [] } = answer
  const isPaths = answer.paths !== undefined
  const bridgeKeys = new Set([
    ...bridges.map(({ app, env }) => `${app}|${env}`),
    ...(answer.top_reachable_nodes ?? []).flatMap((one) => (one.is_bridge_node ? [`${one.app}|${one.env}`] : [])),
  ])
  const nodes: PathNode[] = []
  const places = new Map<string, number>()
  const placeOf = (key: string): number => {
    const known = places.get(key)
    if (known !== undefined) return known
    places.set(key, nodes.length)
    const ends = { isStart: starts.includes(key), isTarget: targets.includes(key) }
    return nodes.push({ key, ...ends, isBridge: bridgeKeys.has(key), hop: null }) - 1
  }
  const isBackwards = starts.length === 0
  for (const { path } of paths)
    for (const [at, key] of path.entries()) {
      const hop = isBackwards ? path.length - 1 - at : at
      const node = nodes[placeOf(key)]!
      node.hop = Math.min(node.hop ?? Infinity, hop)
    }
  const listed = (isPaths ? answer.path_edges : answer.high_risk_edges) ?? []
  const edges = listed.map((edge): PathEdge => ({
    from: placeOf(edge.from),
    to: placeOf(edge.to),
    connections: edge.connections,
    decisions: edge.policy_decisions,
    decision: edge.undecided === true ? 'unknown' : openBy(edge.policy_decisions),
    ports: edge.ports,
    portsTotal: edge.ports_total,
    riskyPorts: edge.high_risk_ports,
  }))
  for (const key of [...starts, ...targets]) placeOf(key)
  return { nodes, edges, paths: paths.map(({ path }) => path), ...describe(answer, isPaths, listed.length) }
}

/** Ranks the policy decisions by how much traffic of an edge they let through; rank 0 is the most permissive one. */
const OPENNESS: Readonly<Record<Decision, number>> = { allowed: 0, potentially_blocked: 1, unknown: 2, blocked: 3 }
const MOST_OPEN_FIRST = [...DECISIONS].sort((one, other) => OPENNESS[one] - OPENNESS[other])

/** Returns the most permissive of the policy decisions on the traffic of an edge. */
function openBy(decisions: Readonly<Record<string, number>>): Decision {
  const found = new Set(Object.keys(decisions).map(decisionOf))
  return MOST_OPEN_FIRST.find((decision) => found.has(decision)) ?? 'unknown'
}

function describe(
  answer: MovementAnswer,
  isPaths: boolean,
  edges: number,
): Pick<PathsFacts, 'title' | 'notes' | 'warnings'> {
  const { paths = [], paths_from: starts = [], paths_to: targets = [], paths_total: total = 0 } = answer
  const names = (keys: readonly string[]) =>
    keys.length > 3
      ? `${keys.slice(0, 3).map(quoteKey).join(', ')} and ${keys.length - 3} more`
      : keys.map(quoteKey).join(', ')
  const title = isPaths
    ? `Lateral movement${starts.length > 0 ? ` from ${names(starts)}` : ''}${targets.length > 0 ? ` to ${names(targets)}` : ''}`
    : 'Lateral movement: riskiest connections'
  return {
    title,
    warnings: [answer.recommendation],
    notes: [
      ...(answer.message === undefined ? [] : [answer.message]),
      `Traffic ${windowInWords(answer.window)} between ${countOf(answer.total_apps, 'application')}: ${countOf(answer.total_edges, 'open connection')} between them, ${wholeNumber(answer.blocked_edges)} blocked. ${countOf(answer.articulation_points, 'application')} ${answer.articulation_points === 1 ? 'is a bridge' : 'are bridges'}${answer.articulation_points_undecided === undefined ? '' : `, ${wholeNumber(answer.articulation_points_undecided)} only perhaps`}.`,
      isPaths
        ? `${countOf(paths.length, 'shortest path')} of ${answer.paths_uncounted === true ? 'at least ' : ''}${wholeNumber(total)}${answer.max_hops === undefined ? '' : `, of at most ${countOf(answer.max_hops, 'hop')}`}.`
        : `${countOf(edges, 'edge')} of ${wholeNumber(answer.high_risk_edges_total)} with remote administration or file sharing.`,
      ...(answer.unlabelled_sources === undefined || answer.unlabelled_sources === 0
        ? []
        : [
            `Addresses without labels that also reach the target, and that no path shows: ${wholeNumber(answer.unlabelled_sources)}.`,
          ]),
      ...(answer.flows_truncated ? ['The row limit of the PCE was reached: there may be more.'] : []),
    ],
  }
}

const quoteKey = (key: string) => quoted(showKey(key))

/** Formats a node's key for people: `payments|prod` becomes `payments (prod)`. */
export function showKey(key: string): string {
  const at = key.lastIndexOf('|')
  return at === -1 ? key : `${key.slice(0, at)} (${key.slice(at + 1)})`
}
