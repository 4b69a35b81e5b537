import { buildAdjacency, reverseAdjacency, uniteAdjacency, type Adjacency } from './adjacency.js'

/** An application: the values of its two labels (tools contract, A11). */
export interface AppNode {
  app: string
  env: string
}

/** Traffic from one node to another, both as places in the list of nodes. */
export interface AppEdge {
  from: number
  to: number
  connections: number
}

/** Distinct nodes, and at most one edge for an ordered pair of them. Edges of a node to itself are ignored (A11). */
export interface AppGraph {
  nodes: readonly AppNode[]
  edges: readonly AppEdge[]
}

/**
 * A graph made ready for searches. Nodes are renumbered in the order of their keys, so that whoever takes the lower number at a
 * tie answers alike for any order of the rows that the graph came from.
 */
export interface GraphLayout {
  /** In the order of their keys. */
  readonly nodes: readonly AppNode[]
  /** The place in the caller's list, of a node here. */
  readonly given: Uint32Array
  /** The node here, of a place in the caller's list. */
  readonly placed: Uint32Array
  readonly outgoing: Adjacency
  readonly incoming: Adjacency
  /** Neighbours in either direction, each once. */
  readonly neighbours: Adjacency
}

/** How a node is shown. Not unique, for label values may contain the bar; code identifies a node by its number. */
export const nodeKey = ({ app, env }: AppNode): string => `${app}|${env}`

/** Puts nodes in the order of their keys (UTF-16 units, as everywhere); nodes that only look alike, in the order of their apps. */
export function layOutGraph({ nodes, edges }: AppGraph): GraphLayout {
  const keys = nodes.map(nodeKey)
  const given = Uint32Array.from(nodes.keys()).sort(
    (a, b) => compare(keys[a]!, keys[b]!) || compare(nodes[a]!.app, nodes[b]!.app),
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

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
