/**
 * The measures of small graphs by their definitions: every shortest path is written down, every node is taken out in turn. Shares
 * nothing with the code it judges.
 */
import type { Application } from '../../domain/traffic/applications.js'
import type { Adjacency, AppGraph } from '../../domain/dependency-map/lay-out-graph.js'

type Matrix = boolean[][]

/** A graph as it is drawn, edge by edge. */
export interface DrawnGraph {
  nodes: Application[]
  edges: { from: number; to: number; connections: number }[]
}

/** The same graph in columns. */
export const inColumns = ({ nodes, edges }: DrawnGraph): AppGraph => ({
  nodes,
  edges: {
    from: Uint32Array.from(edges, ({ from }) => from),
    to: Uint32Array.from(edges, ({ to }) => to),
    connections: Float64Array.from(edges, ({ connections }) => connections),
  },
})

export const keyOf = ({ app, env }: Application) => `${app}|${env}`

/** Negative, zero or positive: by key, and by app where two nodes look alike. */
export function compareNodes(a: Application, b: Application): number {
  const [one, other] = [keyOf(a), keyOf(b)]
  if (one !== other) return one < other ? -1 : 1
  return a.app === b.app ? 0 : a.app < b.app ? -1 : 1
}

export function directed({ nodes, edges }: DrawnGraph): Matrix {
  const matrix = nodes.map(() => nodes.map(() => false))
  for (const { from, to } of edges) if (from !== to) matrix[from]![to] = true
  return matrix
}

export const undirected = (graph: DrawnGraph): Matrix => {
  const along = directed(graph)
  return along.map((row, from) => row.map((is, to) => is || along[to]![from]!))
}

/** Floyd and Warshall. */
export function distances(matrix: Matrix): number[][] {
  const far = matrix.map((row, from) => row.map((is, to) => (from === to ? 0 : is ? 1 : Infinity)))
  for (const via of far.keys())
    for (const from of far.keys())
      for (const to of far.keys()) far[from]![to] = Math.min(far[from]![to]!, far[from]![via]! + far[via]![to]!)
  return far
}

/** Every path of the shortest length between two different nodes. */
export function shortestPaths(matrix: Matrix, from: number, to: number): number[][] {
  const far = distances(matrix)
  const grow = (path: number[]): number[][] => {
    const last = path.at(-1)!
    if (last === to) return [path]
    const closer = [...far.keys()].filter((next) => matrix[last]![next] && far[next]![to] === far[last]![to]! - 1)
    return closer.flatMap((next) => grow([...path, next]))
  }
  return far[from]![to] === Infinity ? [] : grow([from])
}

export function betweenness(matrix: Matrix): number[] {
  const count = matrix.length
  const sums = matrix.map(() => 0)
  for (const from of matrix.keys()) {
    for (const to of matrix.keys()) {
      if (from === to) continue
      const paths = shortestPaths(matrix, from, to)
      for (const path of paths) for (const node of path.slice(1, -1)) sums[node]! += 1 / paths.length
    }
  }
  return sums.map((sum) => (count <= 2 ? 0 : sum / ((count - 1) * (count - 2))))
}

/**
 * Betweenness after Brandes, as plainly as it can be written: every node asks all its neighbours at every step, in ascending order.
 * Counts of paths beyond 2^500 are not its business.
 */
export function plainBetweenness({ starts, targets }: Adjacency): Float64Array {
  const count = starts.length - 1
  const sums = new Float64Array(count)
  const neighbours = Array.from(sums, (_, node) => [...targets.subarray(starts[node], starts[node + 1])])
  for (let source = 0; source < count; source++) {
    const depth = new Int32Array(count).fill(-1)
    depth[source] = 0
    const order = [source]
    for (const node of order) {
      for (const other of neighbours[node]!) {
        if (depth[other] !== -1) continue
        depth[other] = depth[node]! + 1
        order.push(other)
      }
    }
    const paths = new Float64Array(count)
    paths[source] = 1
    for (const node of order.slice(1))
      for (const other of neighbours[node]!) if (depth[other]! < depth[node]!) paths[node]! += paths[other]!
    const perPath = new Float64Array(count)
    for (const node of order.slice(1).reverse()) {
      let below = 0
      for (const other of neighbours[node]!) if (depth[other]! > depth[node]!) below += perPath[other]!
      const dependency = below * paths[node]!
      perPath[node] = (1 + dependency) / paths[node]!
      sums[node]! += dependency
    }
  }
  return sums.map((sum) => sum / ((count - 1) * (count - 2)))
}

/** Components of an undirected graph without one of its nodes. */
function countComponents(matrix: Matrix, without: number): number {
  const left = [...matrix.keys()].filter((node) => node !== without)
  const cut = matrix.map((row, from) => row.map((is, to) => is && from !== without && to !== without))
  const far = distances(cut)
  return new Set(left.map((node) => left.find((other) => far[node]![other]! < Infinity))).size
}

/** Whether each node's removal leaves more components than there were. */
export const articulationPoints = (matrix: Matrix): boolean[] =>
  matrix.map((row, node) => {
    const isAlone = !row.includes(true)
    return countComponents(matrix, node) > countComponents(matrix, -1) - (isAlone ? 1 : 0)
  })

export const reach = (matrix: Matrix): number[] =>
  distances(matrix).map((row) => row.filter((far) => far > 0 && far < Infinity).length)

/** All that `findPaths` should find, in its order and not cut: the first of the shortest paths to every node near enough. */
export function paths(graph: DrawnGraph, starts: readonly number[], maxHops: number): number[][] {
  const matrix = directed(graph)
  const far = distances(matrix)
  const compare = (a: number[], b: number[]) => {
    const at = a.findIndex((node, hop) => node !== b[hop])
    return at === -1 ? 0 : compareNodes(graph.nodes[a[at]!]!, graph.nodes[b[at]!]!)
  }
  return starts
    .flatMap((from) => [...matrix.keys()].filter((to) => far[from]![to]! > 0).map((to) => [from, to] as const))
    .filter(([from, to]) => far[from]![to]! <= maxHops)
    .flatMap(([from, to]) => shortestPaths(matrix, from, to).sort(compare).slice(0, 1))
    .sort((a, b) => b.length - a.length || compare(a, b))
}

const inOrder = (graph: DrawnGraph) => (a: number[], b: number[]) => {
  const at = a.findIndex((node, hop) => node !== b[hop])
  return a.length - b.length || (at === -1 ? 0 : compareNodes(graph.nodes[a[at]!]!, graph.nodes[b[at]!]!))
}

/** All that `findPathsTo` should find, in its order and not cut. */
export function pathsTo(graph: DrawnGraph, targets: readonly number[], maxHops: number): number[][] {
  const matrix = directed(graph)
  return targets
    .flatMap((to) => [...matrix.keys()].map((from) => shortestPaths(matrix, from, to).sort(inOrder(graph))[0] ?? []))
    .filter((path) => path.length > 1 && path.length <= maxHops + 1)
    .sort(inOrder(graph))
}

/** All that `findPathsBetween` should find, in its order and not cut: every sequence of nodes is tried. */
export function pathsBetween(
  graph: DrawnGraph,
  starts: readonly number[],
  targets: readonly number[],
  maxHops: number,
): number[][] {
  const matrix = directed(graph)
  const isEnd = (node: number) => starts.includes(node) || targets.includes(node)
  const grow = (path: number[]): number[][] => {
    const own = path.length > 1 && targets.includes(path.at(-1)!) ? [path] : []
    if (path.length > maxHops || (path.length > 1 && isEnd(path.at(-1)!))) return own
    const next = [...matrix.keys()].filter((node) => matrix[path.at(-1)!]![node] && !path.includes(node))
    return next.flatMap((node) => grow([...path, node]))
  }
  return starts.flatMap((start) => grow([start])).sort(inOrder(graph))
}
