import type { Steps } from '../text/pace-work.js'
import type { Adjacency } from './lay-out-graph.js'

const NONE = -1
const STEPS_AT_ONCE = 4096

interface StrongComponents {
  /** For every node, the number of its component. Edges never lead to a component with a higher number. */
  readonly component: Uint32Array
  /** All nodes, sorted by component: first the nodes of component 0, then the nodes of component 1, and so on. */
  readonly members: Uint32Array
  /** For every component, the index in `members` directly after its last node. */
  readonly ends: readonly number[]
}

/**
 * Finds the strong components: groups of nodes that all reach each other along directed edges. It is a depth-first
 * search with an explicit stack (R. Tarjan, "Depth-first search and linear graph algorithms", 1972).
 */
export function* findStrongComponents({ starts, targets }: Adjacency): Steps<StrongComponents> {
  const count = starts.length - 1
  const component = new Uint32Array(count)
  const members = new Uint32Array(count)
  const ends: number[] = []
  const entered = new Uint32Array(count)
  /** For every node, the lowest entry step among the nodes that it can reach within an unfinished component. */
  const earliest = new Uint32Array(count)
  const finished = new Uint8Array(count)
  const parent = new Int32Array(count).fill(NONE)
  const nextEdge = starts.slice()
  /** A stack of the entered nodes whose component is not finished yet. */
  const open = new Uint32Array(count)
  let opened = 0
  let clock = 0
  let closed = 0
  let steps = 0

  const enter = (node: number) => {
    entered[node] = earliest[node] = ++clock
    open[opened++] = node
  }
  const closeComponent = (first: number) => {
    let node: number
    do {
      node = open[--opened]!
      component[node] = ends.length
      finished[node] = 1
      members[closed++] = node
    } while (node !== first)
    ends.push(closed)
  }

  for (let root = 0; root < count; root++) {
    if (entered[root] !== 0) continue
    enter(root)
    for (let node = root; node !== NONE;) {
      if (++steps % STEPS_AT_ONCE === 0) yield
      if (nextEdge[node]! < starts[node + 1]!) {
        const other = targets[nextEdge[node]!++]!
        if (entered[other] === 0) {
          enter(other)
          parent[other] = node
          node = other
        } else if (finished[other] === 0) {
          earliest[node] = Math.min(earliest[node]!, entered[other]!)
        }
        continue
      }
      if (earliest[node] === entered[node]) closeComponent(node)
      const above = parent[node]!
      if (above !== NONE) earliest[above] = Math.min(earliest[above]!, earliest[node]!)
      node = above
    }
  }
  return { component, members, ends }
}

/**
 * Returns 1 for every node whose removal from `graph` separates some of its neighbours from each other, and 0 for all
 * other nodes (T18). `neighbours` may be taken from another graph over the same nodes. It is a depth-first search with
 * an explicit stack, because a chain of applications can be longer than the call stack is deep (J. Hopcroft, R. Tarjan,
 * "Efficient algorithms for graph manipulation", 1973).
 */
export function* findArticulationPoints(graph: Adjacency, neighbours = graph): Steps<Uint8Array> {
  const { starts, targets } = graph
  const count = starts.length - 1
  /** The step at which each node was entered, counted from 1; 0 if the node has not been entered yet. */
  const entered = new Uint32Array(count)
  /** For every node, the step at which its last descendant was entered. */
  const last = new Uint32Array(count)
  /**
   * For every node, the lowest entry step among the nodes adjacent to it or to its descendants. The node's parent may
   * be included, because that never hides an articulation point.
   */
  const earliest = new Uint32Array(count)
  const parent = new Int32Array(count).fill(NONE)
  /** For every node, the root of the tree to which it belongs. */
  const tree = new Uint32Array(count)
  const order = new Uint32Array(count)
  const nextEdge = starts.slice()
  let clock = 0
  let steps = 0

  for (let root = 0; root < count; root++) {
    if (entered[root] !== 0) continue
    for (let node = root; node !== NONE;) {
      if (++steps % STEPS_AT_ONCE === 0) yield
      if (entered[node] === 0) {
        order[clock] = node
        entered[node] = earliest[node] = ++clock
        tree[node] = root
      }
      if (nextEdge[node]! < starts[node + 1]!) {
        const other = targets[nextEdge[node]!++]!
        if (entered[other] === 0) {
          parent[other] = node
          node = other
        } else {
          earliest[node] = Math.min(earliest[node]!, entered[other]!)
        }
        continue
      }
      last[node] = clock
      const above = parent[node]!
      if (above !== NONE) earliest[above] = Math.min(earliest[above]!, earliest[node]!)
      node = above
    }
  }

  const children = groupChildren(order, parent)
  /**
   * Returns the part of the graph that contains `other` after the removal of `node`. A part below `node` in the search
   * tree is identified by the child of `node` in it, any other part by the root of the tree.
   */
  const partOf = (other: number, node: number): number => {
    const isBelow = entered[other]! > entered[node]! && entered[other]! <= last[node]!
    if (!isBelow) return tree[other]!
    let [low, high] = [children.starts[node]!, children.starts[node + 1]! - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (entered[children.targets[middle]!]! <= entered[other]!) low = middle
      else high = middle - 1
    }
    const child = children.targets[low]!
    return earliest[child]! >= entered[node]! ? child : tree[node]!
  }
  const cuts = new Uint8Array(count)
  for (let node = 0; node < count; node++) {
    const [first, end] = [neighbours.starts[node]!, neighbours.starts[node + 1]!]
    for (let edge = first; edge < end && cuts[node] === 0; edge++) {
      if (++steps % STEPS_AT_ONCE === 0) yield
      if (partOf(neighbours.targets[edge]!, node) !== partOf(neighbours.targets[first]!, node)) cuts[node] = 1
    }
  }
  return cuts
}

/** Groups nodes by their parents. `order` lists the nodes in the order in which they were entered. */
function groupChildren(order: Uint32Array, parent: Int32Array): Adjacency {
  const starts = new Uint32Array(order.length + 1)
  for (const above of parent) if (above !== NONE) starts[above + 1]!++
  for (let node = 0; node < order.length; node++) starts[node + 1]! += starts[node]!
  const free = starts.slice()
  const targets = new Uint32Array(order.length)
  for (const node of order) if (parent[node] !== NONE) targets[free[parent[node]!]!++] = node
  return { starts, targets }
}
