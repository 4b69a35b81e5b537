import { applicationKey, type Application } from '../traffic/applications.js'
import { compareTexts } from '../text/compare-values.js'
import { buildAdjacency, reverseAdjacency, uniteAdjacency, type Adjacency } from './adjacency.js'

/** Traffic from one node to another, both as places in the list of nodes. */
export interface AppEdge {
  from: number
  to: number
  connections: number
}

/** Distinct nodes, and at most one edge for an ordered pair of them. Edges of a node to itself are ignored (A11). */
export interface AppGraph {
  nodes: readonly Application[]
  edges: readonly AppEdge[]
}

/**
 * A graph made ready for searches. Nodes are renumbered in the order of their keys, so that whoever takes the lower number at a
 * tie answers alike for any order of the rows that the graph came from.
 */
export interface GraphLayout {
  /** In the order of their keys. */
  readonly nodes: readonly Application[]
  /** The place in the caller's list, of a node here. */
  readonly given: Uint32Array
  /** The node here, of a place in the caller's list. */
  readonly placed: Uint32Array
  readonly outgoing: Adjacency
  readonly incoming: Adjacency
  /** Neighbours in either direction, each once. */
  readonly neighbours: Adjacency
}

/** Puts nodes in the order of their keys (UTF-16 units, as everywhere); nodes that only look alike, in the order of their apps. */
export function layOutGraph({ nodes, edges }: AppGraph): GraphLayout {
  const keys = nodes.map(applicationKey)
  const given = Uint32Array.from(nodes.keys()).sort(
    (a, b) => compareTexts(keys[a]!, keys[b]!) || compareTexts(nodes[a]!.app, nodes[b]!.app),
  )
  const placed = new Uint32Array(nodes.length)
  given.forEach((place, node) => (placed[place] = node))

  const real = edges.filter(({ from, to }) => from !== to)
  const outgoing = buildAdjacency(
    nodes.length,
    Uint32Array.from(real, ({ from }) => placed[from]!),
    Uint32Array.from(real, ({ to }) => placed[to]!),
  )
  const incoming = reverseAdjacency(outgoing)
  const neighbours = uniteAdjacency(outgoing, incoming)
  return { nodes: Array.from(given, (place) => nodes[place]!), given, placed, outgoing, incoming, neighbours }
}

/** Edges that start at, or lead to, a node. */
export const degreeOf = ({ starts }: Adjacency, node: number): number => starts[node + 1]! - starts[node]!
