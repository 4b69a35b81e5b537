import { compareTexts } from '../text/compare-texts.js'
import { workInTurns, type Steps } from '../text/pace-work.js'
import { applicationKey, type Application } from '../traffic/applications.js'
import { pickTop } from '../traffic/group-tables.js'
import type { DecidedGraph, EdgeDecisions } from './collect-app-graph.js'
import { filterEdges, layOutGraph, type Adjacency, type AppEdges, type GraphLayout } from './lay-out-graph.js'
import { rankReach, type ReachRow } from './rank-reach.js'

/**
 * A filter that selects one application, or all applications with an app or env label. Without both labels, it selects
 * nothing.
 */
export interface AppFilter {
  app?: string
  env?: string
}

export const isAsked = ({ app, env }: AppFilter): boolean => app !== undefined || env !== undefined

/** A question about lateral movement. Paths are searched only if a start or a target is given. */
export interface MovementQuestion {
  start: AppFilter
  target: AppFilter
  /** Maximum number of edges in a path. */
  maxHops: number
}

export interface Movement {
  nodes: readonly Application[]
  /** All edges of the graph. */
  edges: AppEdges
  decisions: EdgeDecisions
  /** Number of edges on which every flow is blocked. Paths never use these edges. */
  blockedEdges: number
  /** The edges on which some flow may pass but none certainly passes. Paths use these edges as if they were open. */
  undecidedEdges: ReadonlySet<number>
  /** One row per node of the graph, with the number of nodes that can be reached from it, highest number first. */
  reach: ReachRow[]
  /**
   * The paths that were found; null if neither a start nor a target was given. If only a start was given, `targets` is
   * null; if only a target was given, `starts` is null.
   */
  paths: (FoundPaths & { starts: number[] | null; targets: number[] | null }) | null
  /**
   * For each node, the number of hops to the nearest target: 0 for a target itself, `FAR` if no target can be reached.
   * Null if no target was given.
   */
  hopsToTarget: Int32Array | null
  /** Like `hopsToTarget`, but counting only edges that are certain to be open. */
  certainHops: Int32Array | null
}

/**
 * The edges on which traffic passes or may pass: on edges in `open`, some flow certainly passes; on edges in `perhaps`,
 * some flow may pass.
 */
export interface EdgePassage {
  open: ReadonlySet<number>
  perhaps: ReadonlySet<number>
}

/** Stands for the number of hops to a node that cannot be reached. */
export const FAR = -1

/**
 * Counts the nodes that each node can reach, and finds the requested paths, using all edges that are not certainly
 * blocked. Rejects with the signal's reason if the call is cancelled.
 */
export async function searchMovement(
  { nodes, edges, decisions }: DecidedGraph,
  { open, perhaps }: EdgePassage,
  { start, target, maxHops }: MovementQuestion,
  signal: AbortSignal,
): Promise<Movement> {
  const undecidedEdges = new Set([...perhaps].filter((edge) => !open.has(edge)))
  const usable = filterEdges(edges, (edge) => open.has(edge) || undecidedEdges.has(edge))
  const layout = layOutGraph({ nodes, edges: usable })
  const certain =
    undecidedEdges.size === 0 ? layout : layOutGraph({ nodes, edges: filterEdges(edges, (edge) => open.has(edge)) })
  const reach = await workInTurns(rankReach(layout, certain), signal)
  const placesOf = (filter: AppFilter) =>
    isAsked(filter) ? nodes.flatMap((node, at) => (matchesFilter(node, filter) ? [at] : [])) : null
  const [starts, targets] = [placesOf(start), placesOf(target)]
  const search =
    targets === null
      ? starts && findPaths(layout, starts, maxHops, certain)
      : starts === null
        ? findPathsTo(layout, targets, maxHops, certain)
        : findPathsBetween(layout, starts, targets, maxHops)
  const found = search && (await workInTurns(search, signal))
  let undecided = found?.undecided ?? null
  if (found?.undecided === null && found.isCounted) {
    // `found` counts the paths along all edges; a second search counts those along certain edges alone. The difference
    // is the number of paths that are not certain.
    const known =
      certain === layout ? found : await workInTurns(findPathsBetween(certain, starts!, targets!, maxHops), signal)
    if (known.isCounted) undecided = found.total - known.total
  }
  return {
    nodes,
    edges,
    decisions,
    blockedEdges: edges.from.length - usable.from.length,
    undecidedEdges,
    reach,
    paths: found && { starts, targets, ...found, undecided },
    hopsToTarget: targets && countHopsTo(layout, targets),
    certainHops: targets && countHopsTo(certain, targets),
  }
}

export const matchesFilter = (node: Application, { app, env }: AppFilter): boolean =>
  (app === undefined || node.app === app) && (env === undefined || node.env === env)

/** The part of the graph that an answer shows. */
interface View {
  /** True if the node at this index is shown. */
  node(place: number): boolean
  /** True if the edge with this number is shown. */
  edge(number: number): boolean
}

/**
 * Chooses the part of the graph that an answer shows. With a target, it is all nodes and edges that lead to it within
 * the allowed number of hops. With only an env as the start, it is the applications of that env and the edges that
 * start or end there. With an app as the start, it is the whole graph, because the applications to which the start
 * leads are not part of the start.
 */
export function viewOf({ nodes, edges, hopsToTarget: hops }: Movement, { start, maxHops }: MovementQuestion): View {
  if (hops !== null) {
    return {
      node: (place) => hops[place] !== FAR && hops[place]! <= maxHops,
      edge: (number) => {
        const [from, to] = [hops[edges.from[number]!]!, hops[edges.to[number]!]!]
        return from !== 0 && to !== FAR && to < maxHops
      },
    }
  }
  const shown: AppFilter = start.app === undefined ? start : {}
  const node = (place: number) => matchesFilter(nodes[place]!, shown)
  return { node, edge: (number) => node(edges.from[number]!) || node(edges.to[number]!) }
}

/**
 * Returns the shown edges with the most connections on high-risk ports, and the number of all shown edges with such
 * connections. Edges with equally many are ordered by the keys of their nodes.
 */
export function riskiestEdges(
  { nodes, edges }: Movement,
  view: View,
  connections: ReadonlyMap<number, number>,
  limit: number,
): { total: number; edges: number[] } {
  const risky = [...connections].filter(([edge]) => view.edge(edge))
  const keysOf = (place: number) => {
    const edge = risky[place]![0]
    return [applicationKey(nodes[edges.from[edge]!]!), applicationKey(nodes[edges.to[edge]!]!)] as const
  }
  const compareEdges = (a: number, b: number) => {
    const [one, other] = [keysOf(a), keysOf(b)]
    return compareTexts(one[0], other[0]) || compareTexts(one[1], other[1])
  }
  const { total, top } = pickTop(risky.length, limit, 0, (at) => risky[at]![1], compareEdges)
  return { total, edges: top.map((at) => risky[at]![0]) }
}

/**
 * Returns the edges on the paths in an answer. `numbers` lists the number of each such edge once, in order of
 * appearance. `between` returns the number of the edge from one node to another.
 */
export function edgesOfPaths({ nodes, edges, paths }: Movement): {
  numbers: number[]
  between: (from: number, to: number) => number | undefined
} {
  const idOf = (from: number, to: number) => from * nodes.length + to
  /** The index in `edges` of each edge on a path, by the edge's id; -1 until the loop below has found it. */
  const wanted = new Map<number, number>()
  for (const { path } of paths?.paths ?? [])
    for (let hop = 1; hop < path.length; hop++) wanted.set(idOf(path[hop - 1]!, path[hop]!), -1)
  for (const [number, from] of edges.from.entries()) {
    const id = idOf(from, edges.to[number]!)
    if (wanted.has(id)) wanted.set(id, number)
  }
  return { numbers: [...wanted.values()], between: (from, to) => wanted.get(idOf(from, to)) }
}

/** Maximum number of paths in an answer (T18). */
const MOST_PATHS = 50

interface FoundPath {
  /** The nodes of the path from start to end, as indices in the caller's list of nodes. */
  path: number[]
  hops: number
}

interface FoundPaths {
  /** The paths. Equally long paths are sorted by the key of their first node, then of their second node, and so on. */
  paths: FoundPath[]
  /** Total number of paths. If `isCounted` is false, this is only a lower bound. */
  total: number
  isCounted: boolean
  /**
   * Number of paths in `total` with at least one edge that is not certain to be open; null if they were not counted.
   */
  undecided: number | null
}

/**
 * Finds one path from each start to every node that is 1 to `maxHops` directed hops away: a shortest path along edges
 * that are certain to be open or, if there is none, along all edges. Of equally short paths, the one that `paths` would
 * list first is used. The longest paths come first. `starts` are indices in the caller's list of nodes.
 */
export function* findPaths(
  graph: GraphLayout,
  starts: readonly number[],
  maxHops: number,
  certain = graph,
): Steps<FoundPaths> {
  const { given } = graph
  const compare = comparePaths(graph, (a, b) => b.hops - a.hops)
  const walk = createTwoWalks(graph, certain, ({ outgoing }) => createWalk(outgoing))
  const counts = { total: 0, undecided: 0 }
  let paths: FoundPath[] = []
  for (const start of placesInOrder(graph, starts)) {
    // Neighbours are sorted by key, so the nodes of a level are reached in the order in which their paths are sorted.
    for (const { order, parent, levels, isNew } of walk(start, maxHops, counts)) {
      const longest: FoundPath[] = []
      for (let hops = levels.length - 2; hops > 0; hops--)
        for (let i = levels[hops]!; i < levels[hops + 1]! && longest.length < MOST_PATHS; i++) {
          if (!isNew(order[i]!)) continue
          const path = new Array<number>(hops + 1)
          for (let hop = hops, node = order[i]!; hop >= 0; hop--, node = parent[node]!) path[hop] = given[node]!
          longest.push({ path, hops })
        }
      paths = [...paths, ...longest].sort(compare).slice(0, MOST_PATHS)
    }
    yield
  }
  return { paths, ...counts, isCounted: true }
}

/**
 * Finds one path to each target from every node that is 1 to `maxHops` hops away: a shortest path along edges that are
 * certain to be open or, if there is none, along all edges. Of equally short paths, the one that `paths` would list
 * first is used. The shortest paths come first, because the nodes nearest to a target matter most. `targets` are
 * indices in the caller's list of nodes.
 */
export function* findPathsTo(
  graph: GraphLayout,
  targets: readonly number[],
  maxHops: number,
  certain = graph,
): Steps<FoundPaths> {
  const { given } = graph
  const compare = comparePaths(graph, (a, b) => a.hops - b.hops)
  // Within a level, nodes are visited in ascending order. The first node to which another node has an edge becomes that
  // node's next hop, so the next hop is always the one that comes first by key.
  const walk = createTwoWalks(graph, certain, ({ incoming }) => createWalk(incoming, { byNumber: true }))
  const counts = { total: 0, undecided: 0 }
  let paths: FoundPath[] = []
  for (const target of placesInOrder(graph, targets)) {
    for (const { order, parent, levels, isNew } of walk(target, maxHops, counts)) {
      const nearest: FoundPath[] = []
      for (let hops = 1; hops < levels.length - 1; hops++) {
        for (let i = levels[hops]!; i < levels[hops + 1]! && nearest.length < MOST_PATHS; i++) {
          if (!isNew(order[i]!)) continue
          const path = new Array<number>(hops + 1)
          for (let hop = 0, node = order[i]!; hop <= hops; hop++, node = parent[node]!) path[hop] = given[node]!
          nearest.push({ path, hops })
        }
      }
      paths = [...paths, ...nearest].sort(compare).slice(0, MOST_PATHS)
    }
    yield
  }
  return { paths, ...counts, isCounted: true }
}

/**
 * Creates a function that compares paths by their number of hops. Paths of equal length are compared by the key of
 * their first node, then of their second node, and so on.
 */
const comparePaths =
  ({ placed }: GraphLayout, byHops: (a: FoundPath, b: FoundPath) => number) =>
  (a: FoundPath, b: FoundPath): number => {
    const order = byHops(a, b)
    if (order !== 0) return order
    const at = a.path.findIndex((place, hop) => place !== b.path[hop])
    return at === -1 ? 0 : placed[a.path[at]!]! - placed[b.path[at]!]!
  }

/**
 * Creates a search that first follows certain edges and then, if there are uncertain ones, all edges. In the second
 * step, only nodes not reached in the first count as new. The numbers of reached nodes are added to `counts`.
 */
function createTwoWalks(graph: GraphLayout, certain: GraphLayout, create: (graph: GraphLayout) => Search) {
  const walkCertain = create(certain)
  const walkAll = certain === graph ? null : create(graph)
  const known = new Uint8Array(graph.given.length)
  return function* (
    from: number,
    maxHops: number,
    counts: { total: number; undecided: number },
  ): Generator<Walk & { isNew: (node: number) => boolean }, void> {
    const first = walkCertain(from, maxHops)
    const reached = first.levels.at(-1)!
    counts.total += reached - 1
    yield { ...first, isNew: () => true }
    if (walkAll === null) return
    known.fill(0)
    for (let i = 0; i < reached; i++) known[first.order[i]!] = 1
    const second = walkAll(from, maxHops)
    const more = second.levels.at(-1)! - reached
    counts.total += more
    counts.undecided += more
    yield { ...second, isNew: (node) => known[node] === 0 }
  }
}

/**
 * Maximum number of edges that a search for all paths examines before it stops counting, which takes tens of
 * milliseconds.
 */
const MOST_LOOKS = 5_000_000
const LOOKS_AT_ONCE = 10_000

/**
 * Finds every path of at most `maxHops` hops from a start to a target, shortest first. A path visits no node twice and
 * passes through no other start or target, because the part from or to that node is found as a path of its own. The
 * number of paths can grow exponentially with the number of hops, so the search stops after examining `looks` edges.
 * `starts` and `targets` are indices in the caller's list of nodes.
 */
export function* findPathsBetween(
  graph: GraphLayout,
  starts: readonly number[],
  targets: readonly number[],
  maxHops: number,
  looks = MOST_LOOKS,
): Steps<FoundPaths> {
  const { given, placed, outgoing, incoming } = graph
  const isTarget = new Uint8Array(given.length)
  for (const target of targets) isTarget[placed[target]!] = 1
  const isEnd = isTarget.slice()
  for (const start of starts) isEnd[placed[start]!] = 1
  const hopsLeft = countHops(
    incoming,
    targets.map((target) => placed[target]!),
    (node) => isEnd[node] === 0,
  )

  const paths: FoundPath[] = []
  let total = 0
  let looked = 0
  const path = new Uint32Array(maxHops + 1)
  /** For each hop of the current path, the edge to examine next. */
  const next = new Uint32Array(maxHops + 1)
  const isOnPath = new Uint8Array(given.length)
  // Paths are searched by increasing length, so that the shortest paths are found before the search stops.
  for (let length = 1; length <= maxHops; length++) {
    for (const start of placesInOrder(graph, starts)) {
      path[0] = start
      next[0] = outgoing.starts[start]!
      isOnPath[start] = 1
      for (let hop = 0; hop >= 0;) {
        const node = path[hop]!
        if (next[hop]! === outgoing.starts[node + 1]!) {
          isOnPath[node] = 0
          hop--
          continue
        }
        if (++looked % LOOKS_AT_ONCE === 0) yield
        if (looked > looks) return { paths, total, isCounted: false, undecided: null }
        const other = outgoing.targets[next[hop]!++]!
        if (isOnPath[other] === 1) continue
        if (isTarget[other] === 1) {
          if (hop + 1 < length) continue
          total++
          if (paths.length === MOST_PATHS) continue
          path[length] = other
          paths.push({ path: Array.from(path.subarray(0, length + 1), (one) => given[one]!), hops: length })
        } else if (isEnd[other] === 0 && hopsLeft[other] !== FAR && hop + 1 + hopsLeft[other]! <= length) {
          path[++hop] = other
          next[hop] = outgoing.starts[other]!
          isOnPath[other] = 1
        }
      }
    }
  }
  return { paths, total, isCounted: true, undecided: null }
}

/**
 * Returns, for each index in the caller's list, the number of hops to the nearest of the given nodes; `FAR` if none can
 * be reached.
 */
export function countHopsTo({ given, placed, incoming }: GraphLayout, targets: readonly number[]): Int32Array {
  const hops = countHops(
    incoming,
    targets.map((target) => placed[target]!),
    () => true,
  )
  return Int32Array.from(given, (_, place) => hops[placed[place]!]!)
}

/**
 * Returns the number of hops from the nearest origin to every node. Paths pass only through nodes that `mayPass`
 * accepts.
 */
function countHops(
  { starts, targets }: Adjacency,
  origins: readonly number[],
  mayPass: (node: number) => boolean,
): Int32Array {
  const hops = new Int32Array(starts.length - 1).fill(FAR)
  const order = [...new Set(origins)]
  for (const node of order) hops[node] = 0
  for (const node of order) {
    if (hops[node] !== 0 && !mayPass(node)) continue
    for (let edge = starts[node]!; edge < starts[node + 1]!; edge++) {
      const other = targets[edge]!
      if (hops[other] !== FAR) continue
      hops[other] = hops[node]! + 1
      order.push(other)
    }
  }
  return hops
}

/** Converts indices in the caller's list to nodes of the layout, sorted and without duplicates. */
const placesInOrder = ({ placed }: GraphLayout, places: readonly number[]): number[] =>
  [...new Set(places)].map((place) => placed[place]!).sort((a, b) => a - b)

interface Walk {
  /** The nodes in the order in which they were reached, beginning with the origin at 0 hops. */
  readonly order: Uint32Array
  /** For each node, the node from which it was reached. */
  readonly parent: Uint32Array
  /**
   * For each number of hops (0, 1, 2...), the index in `order` at which its nodes begin. The last entry is the end of
   * the last level.
   */
  readonly levels: readonly number[]
}

type Search = (from: number, maxHops: number) => Walk

/**
 * Creates a breadth-first search. Its result is valid until the next run. If `byNumber` is true, the nodes of each
 * level are visited in ascending order.
 */
function createWalk({ starts, targets }: Adjacency, { byNumber = false } = {}): Search {
  const count = starts.length - 1
  const order = new Uint32Array(count)
  const parent = new Uint32Array(count)
  const seen = new Uint8Array(count)
  return (from, maxHops) => {
    seen.fill(0)
    seen[from] = 1
    order[0] = from
    const levels = [0, 1]
    let reached = 1
    while (levels.length < maxHops + 2) {
      const [first, end] = [levels.at(-2)!, levels.at(-1)!]
      for (let i = first; i < end; i++) {
        const node = order[i]!
        for (let edge = starts[node]!; edge < starts[node + 1]!; edge++) {
          const other = targets[edge]!
          if (seen[other] === 1) continue
          seen[other] = 1
          parent[other] = node
          order[reached++] = other
        }
      }
      if (reached === end) break
      if (byNumber) order.subarray(end, reached).sort()
      levels.push(reached)
    }
    return { order, parent, levels }
  }
}
