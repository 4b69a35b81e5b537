import type { Adjacency } from './adjacency.js'
import type { Steps } from '../text/work-in-turns.js'

const NONE = -1
const STEPS_AT_ONCE = 4096

/**
 * 1 for every node whose removal splits its component, else 0 (tools contract, B7). Depth first with its own stack, because a
 * chain of applications is not bounded by the call stack (J. Hopcroft, R. Tarjan, "Efficient algorithms for graph manipulation", 1973).
 */
export function* findArticulationPoints({ starts, targets }: Adjacency): Steps<Uint8Array> {
  const count = starts.length - 1
  const cuts = new Uint8Array(count)
  /** When a node was entered, from 1; 0 before that. */
  const entered = new Uint32Array(count)
  /** The earliest entered node that is next to a node or to one below it, its parent included: that never hides a cut. */
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
