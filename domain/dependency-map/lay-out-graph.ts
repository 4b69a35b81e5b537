import { compareTexts } from '../text/compare-texts.js'
import { applicationKey, type Application } from '../traffic/applications.js'

/**
 * The edges of a graph as parallel arrays. `from` and `to` are indices in the list of nodes. Typed arrays save memory:
 * there are about ten times as many edges as applications, and several callers may need the graph at once.
 */
export interface AppEdges {
  readonly from: Uint32Array
  readonly to: Uint32Array
  readonly connections: Float64Array
}

/** A graph of distinct nodes with at most one edge per ordered pair. Edges from a node to itself are ignored (T11). */
export interface AppGraph {
  readonly nodes: readonly Application[]
  readonly edges: AppEdges
}

/** Returns the edges whose numbers `isKept` accepts. */
export function filterEdges({ from, to, connections }: AppEdges, isKept: (edge: number) => boolean): AppEdges {
  const kept = new Uint32Array(from.length)
  let count = 0
  for (let edge = 0; edge < from.length; edge++) if (isKept(edge)) kept[count++] = edge
  const numbers = kept.subarray(0, count)
  return {
    from: numbers.map((edge) => from[edge]!),
    to: numbers.map((edge) => to[edge]!),
    connections: Float64Array.from(numbers, (edge) => connections[edge]!),
  }
}

/**
 * A graph prepared for searches. Nodes are renumbered in the order of their keys. Algorithms that break ties by number
 * then give the same answer in whatever order the flow rows arrived.
 */
export interface GraphLayout {
  /** Nodes in the order of their keys. */
  readonly nodes: readonly Application[]
  /** For each node of this layout, its index in the caller's list. */
  readonly given: Uint32Array
  /** For each index in the caller's list, the node of this layout. */
  readonly placed: Uint32Array
  readonly outgoing: Adjacency
  readonly incoming: Adjacency
  /** The neighbours of each node, in either direction, each listed once. */
  readonly neighbours: Adjacency
}

/**
 * Lays out a graph. Nodes are sorted by key, in UTF-16 code units. If two different nodes have the same key, they are
 * sorted by app.
 */
export function layOutGraph({ nodes, edges }: AppGraph): GraphLayout {
  const keys = nodes.map(applicationKey)
  const given = Uint32Array.from(nodes.keys()).sort(
    (a, b) => compareTexts(keys[a]!, keys[b]!) || compareTexts(nodes[a]!.app, nodes[b]!.app),
  )
  const placed = new Uint32Array(nodes.length)
  given.forEach((place, node) => (placed[place] = node))

  const real = filterEdges(edges, (edge) => edges.from[edge] !== edges.to[edge])
  const outgoing = buildAdjacency(
    nodes.length,
    real.from.map((node) => placed[node]!),
    real.to.map((node) => placed[node]!),
  )
  const incoming = reverseAdjacency(outgoing)
  const neighbours = uniteAdjacency(outgoing, incoming)
  return { nodes: Array.from(given, (place) => nodes[place]!), given, placed, outgoing, incoming, neighbours }
}

/** Returns the number of neighbours of a node. */
export const degreeOf = ({ starts }: Adjacency, node: number): number => starts[node + 1]! - starts[node]!

/**
 * Adjacency lists of the nodes 0..n-1 in two flat arrays. The neighbours of node v are `targets[starts[v]]` to
 * `targets[starts[v + 1] - 1]`, in ascending order. `starts` has n + 1 entries.
 */
export interface Adjacency {
  readonly starts: Uint32Array
  readonly targets: Uint32Array
}

/** Builds the adjacency lists of the edges `from[i]` to `to[i]`. No edge may occur twice. */
export function buildAdjacency(count: number, from: Uint32Array, to: Uint32Array): Adjacency {
  // The edges are grouped by target and then reversed, which produces ascending lists without sorting.
  return reverseAdjacency(gather(count, to, from))
}

/** Returns the same graph with every edge reversed. */
export function reverseAdjacency({ starts, targets }: Adjacency): Adjacency {
  const sources = new Uint32Array(targets.length)
  for (let node = 0; node < starts.length - 1; node++) sources.fill(node, starts[node], starts[node + 1])
  return gather(starts.length - 1, targets, sources)
}

/** Merges the neighbours that nodes have in two graphs over the same nodes. Each neighbour is listed once. */
export function uniteAdjacency(one: Adjacency, other: Adjacency): Adjacency {
  const starts = new Uint32Array(one.starts.length)
  const targets = new Uint32Array(one.targets.length + other.targets.length)
  let length = 0
  for (let node = 0; node < starts.length - 1; node++) {
    let [a, b] = [one.starts[node]!, other.starts[node]!]
    const [endA, endB] = [one.starts[node + 1]!, other.starts[node + 1]!]
    while (a < endA || b < endB) {
      const nextA = a < endA ? one.targets[a]! : Infinity
      const nextB = b < endB ? other.targets[b]! : Infinity
      if (nextA <= nextB) a++
      if (nextB <= nextA) b++
      targets[length++] = Math.min(nextA, nextB)
    }
    starts[node + 1] = length
  }
  return { starts, targets: targets.slice(0, length) }
}

/** Groups the entries `values[i]` by `keys[i]`, keeping their order within each group. */
function gather(count: number, keys: Uint32Array, values: Uint32Array): Adjacency {
  const starts = new Uint32Array(count + 1)
  for (const key of keys) starts[key + 1]!++
  for (let node = 0; node < count; node++) starts[node + 1]! += starts[node]!
  const free = starts.slice()
  const targets = new Uint32Array(keys.length)
  for (let i = 0; i < keys.length; i++) targets[free[keys[i]!]!++] = values[i]!
  return { starts, targets }
}
