import { compareTexts } from '../text/compare-texts.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { applicationKey, type Application } from '../traffic/applications.js'
import { pickTop } from '../traffic/group-tables.js'
import type { DecidedGraph, EdgeDecisions } from './collect-app-graph.js'
import { filterEdges, layOutGraph, type AppEdges, type GraphLayout } from './lay-out-graph.js'
import { rankReach, type ReachRow } from './rank-reach.js'

/** Where to start: one application, all applications of an app or env label, or nowhere. */
export interface AppFilter {
  app?: string
  env?: string
}

export interface Movement {
  nodes: readonly Application[]
  /** All of them. */
  edges: AppEdges
  decisions: EdgeDecisions
  /** Edges whose every flow is blocked; no path uses them. */
  blockedEdges: number
  /** Of the whole graph, the farthest reach first. */
  reach: ReachRow[]
  /** Null when no start was asked for. */
  paths: { starts: number[]; found: FoundPath[]; total: number } | null
}

/** What can be reached from where, over edges that are not blocked. Rejects with the signal's reason when cancelled. */
export async function searchMovement(
  { nodes, edges, decisions }: DecidedGraph,
  filter: AppFilter,
  maxHops: number,
  signal: AbortSignal,
): Promise<Movement> {
  const isOpen = new Uint8Array(edges.from.length)
  const blocked = decisions.names.indexOf('blocked')
  for (const [at, edge] of decisions.edge.entries()) if (decisions.decision[at] !== blocked) isOpen[edge] = 1
  const usable = filterEdges(edges, (edge) => isOpen[edge] === 1)
  const layout = layOutGraph({ nodes, edges: usable })
  const reach = await workInTurns(rankReach(layout), signal)
  const base = { nodes, edges, decisions, blockedEdges: edges.from.length - usable.from.length, reach }
  if (filter.app === undefined && filter.env === undefined) return { ...base, paths: null }
  const starts = nodes.flatMap((node, at) => (matchesFilter(node, filter) ? [at] : []))
  const { paths, total } = await workInTurns(findPaths(layout, starts, maxHops), signal)
  return { ...base, paths: { starts, found: paths, total } }
}

export const matchesFilter = (node: Application, { app, env }: AppFilter): boolean =>
  (app === undefined || node.app === app) && (env === undefined || node.env === env)

/**
 * The edges with most connections on high-risk ports that start or end at applications of the filter, and how many do. Ties are in
 * the order of their ends' keys.
 */
export function riskiestEdges(
  { nodes, edges }: Movement,
  filter: AppFilter,
  connections: ReadonlyMap<number, number>,
  limit: number,
): { total: number; edges: number[] } {
  const endsOf = (edge: number) => [nodes[edges.from[edge]!]!, nodes[edges.to[edge]!]!] as const
  const risky = [...connections].filter(([edge]) => endsOf(edge).some((end) => matchesFilter(end, filter)))
  const keysOf = (place: number) => endsOf(risky[place]![0]).map(applicationKey) as [string, string]
  const compareEdges = (a: number, b: number) => {
    const [one, other] = [keysOf(a), keysOf(b)]
    return compareTexts(one[0], other[0]) || compareTexts(one[1], other[1])
  }
  const { total, top } = pickTop(risky.length, limit, 0, (at) => risky[at]![1], compareEdges)
  return { total, edges: top.map((at) => risky[at]![0]) }
}

/** The numbers of the edges on the paths found, each once, in order of appearance. */
export function edgesOfPaths({ nodes, edges, paths }: Movement): number[] {
  const idOf = (from: number, to: number) => from * nodes.length + to
  /** The number of each edge wanted, -1 until it is known. */
  const wanted = new Map<number, number>()
  for (const { path } of paths?.found ?? [])
    for (let hop = 1; hop < path.length; hop++) wanted.set(idOf(path[hop - 1]!, path[hop]!), -1)
  if (wanted.size === 0) return []
  for (const [number, from] of edges.from.entries()) {
    const id = idOf(from, edges.to[number]!)
    if (wanted.has(id)) wanted.set(id, number)
  }
  return [...wanted.values()]
}

/** The most paths an answer lists (T18). */
const MOST_PATHS = 50

interface FoundPath {
  /** From its start to its end, as places in the caller's list of nodes. */
  path: number[]
  hops: number
}

interface FoundPaths {
  /** Longest first; paths of one length by the keys of their first nodes, then of their second nodes, and so on. */
  paths: FoundPath[]
  /** All there are. */
  total: number
}

/**
 * One shortest path from every start to every node 1 to `maxHops` hops away along directed edges; of several shortest ones, the
 * first in the order of `paths`. `starts` are places in the caller's list of nodes.
 */
export function* findPaths(graph: GraphLayout, starts: readonly number[], maxHops: number): Steps<FoundPaths> {
  const search = createSearch(graph, maxHops)
  let total = 0
  let paths: FoundPath[] = []
  for (const start of [...new Set(starts)].map((place) => graph.placed[place]!).sort((a, b) => a - b)) {
    const { found, longest } = search(start)
    total += found
    // Sorting is stable and both lists are in order, so equal lengths stay in the order of their keys.
    paths = [...paths, ...longest].sort((a, b) => b.hops - a.hops).slice(0, MOST_PATHS)
    yield
  }
  return { paths, total }
}

interface SearchResult {
  /** Paths from this start. */
  found: number
  /** The first `MOST_PATHS` of them in the order of an answer. */
  longest: FoundPath[]
}

/** Breadth-first search. Neighbours are in the order of their keys, so the nodes of a level are in the order of their paths. */
function createSearch({ outgoing, given }: GraphLayout, maxHops: number): (start: number) => SearchResult {
  const { starts, targets } = outgoing
  const order = new Uint32Array(given.length)
  const parent = new Uint32Array(given.length)
  const seen = new Uint8Array(given.length)

  const pathTo = (end: number, hops: number): FoundPath => {
    const path = new Array<number>(hops + 1)
    for (let hop = hops, node = end; hop >= 0; hop--, node = parent[node]!) path[hop] = given[node]!
    return { path, hops }
  }

  return (start) => {
    seen.fill(0)
    seen[start] = 1
    order[0] = start
    let reached = 1
    /** Where the nodes at 0, 1, 2... hops begin in `order`. */
    const levels = [0]
    while (levels.length <= maxHops && levels.at(-1)! < reached) {
      const [from, to] = [levels.at(-1)!, reached]
      levels.push(to)
      for (let i = from; i < to; i++) {
        const node = order[i]!
        for (let edge = starts[node]!; edge < starts[node + 1]!; edge++) {
          const other = targets[edge]!
          if (seen[other] === 1) continue
          seen[other] = 1
          parent[other] = node
          order[reached++] = other
        }
      }
    }
    const longest: FoundPath[] = []
    for (let hops = levels.length - 1; hops > 0; hops--) {
      const end = levels[hops + 1] ?? reached
      for (let i = levels[hops]!; i < end && longest.length < MOST_PATHS; i++) longest.push(pathTo(order[i]!, hops))
    }
    return { found: reached - 1, longest }
  }
}
