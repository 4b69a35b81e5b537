import type { Steps } from '../text/pace-work.js'
import type { Adjacency } from './lay-out-graph.js'

const NONE = -1
const STEPS_AT_ONCE = 4096

interface StrongComponents {
  /** Component number of every node. An edge never leads to a component with a higher number. */
  readonly component: Uint32Array
  /** All nodes, sorted by component: those of component 0 first, then those of component 1, and so on. */
  readonly members: Uint32Array
  /** For every component, the index in `members` just past its last node. */
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
  /** For every node, the earliest entered node that it reaches within an unfinished component. */
  const earliest = new Uint32Array(count)
  const finished = new Uint8Array(count)
  const parent = new Int32Array(count).fill(NONE)
  const nextEdge = starts.slice()
  /** Stack of the entered nodes whose component is not finished. */
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
 * Returns 1 for every node whose removal splits its component, else 0 (T18). It is a depth-first search with an
 * explicit stack, because a chain of applications can be longer than the call stack is deep (J. Hopcroft, R. Tarjan,
 * "Efficient algorithms for graph manipulation", 1973).
 */
export function* findArticulationPoints({ starts, targets }: Adjacency): Steps<Uint8Array> {
  const count = starts.length - 1
  const cuts = new Uint8Array(count)
  /** When each node was entered, counted from 1; 0 if it has not been entered yet. */
  const entered = new Uint32Array(count)
  /**
   * For every node, the earliest entered node adjacent to it or to one of its descendants. The parent of the node may
   * be included, because that never hides an articulation point.
   */
  const earliest = new Uint32Array(count)
  const parent = new Int32Array(count).fill(NONE)
  const nextEdge = starts.slice()
  let clock = 0
  let steps = 0

  for (let root = 0; root < count; root++) {
    if (entered[root] !== 0) continue
    let branches = 0
    entered[root] = earliest[root] = ++clock
    for (let node = root; node !== NONE;) {
      if (++steps % STEPS_AT_ONCE === 0) yield
      const above = parent[node]!
      if (nextEdge[node]! < starts[node + 1]!) {
        const other = targets[nextEdge[node]!++]!
        if (entered[other] === 0) {
          entered[other] = earliest[other] = ++clock
          parent[other] = node
          if (node === root) branches++
          node = other
        } else {
          earliest[node] = Math.min(earliest[node]!, entered[other]!)
        }
        continue
      }
      if (above !== NONE) {
        earliest[above] = Math.min(earliest[above]!, earliest[node]!)
        if (above !== root && earliest[node]! >= entered[above]!) cuts[above] = 1
      }
      node = above
    }
    if (branches > 1) cuts[root] = 1
  }
  return cuts
}
