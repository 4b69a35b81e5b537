import type { Steps } from '../text/pace-work.js'
import { findArticulationPoints, findStrongComponents } from './find-components.js'
import { degreeOf, type GraphLayout, type Adjacency } from './lay-out-graph.js'

export interface ReachRow {
  /** Index of the application in the caller's list of nodes. */
  node: number
  app: string
  env: string
  /**
   * True if removing the application would, or might, separate parts of the graph that only this application connects.
   */
  is_articulation_point: boolean
  /** True if it is not certain that the application is an articulation point. */
  isPerhapsOne: boolean
  /** Number of other applications that can be reached from this one along directed edges. */
  reachable_apps: number
  /** Number of applications in `reachable_apps` that cannot be reached along edges that are certain to be open. */
  reachedPerhaps: number
  /** Number of applications that are one hop away. It is not a number of network connections. */
  direct_connections_out: number
  direct_connections_in: number
  /**
   * Numbers of applications in `direct_connections_out` and `direct_connections_in` to which no edge leads that is
   * certain to be open.
   */
  directPerhaps: { out: number; in: number }
}

/**
 * Ranks nodes by the number of other nodes that an intruder could reach from them, highest first; nodes with equal
 * numbers are in the order of their keys (T18). `certain` has only the edges that are certain to be open; any other
 * edge may be open or not. A node may be an articulation point if, once it is removed, certain edges alone do not
 * connect all its neighbours. It certainly is one if, once it is removed, not even all edges together connect the
 * neighbours to which its certain edges lead.
 */
export function* rankReach(graph: GraphLayout, certain = graph): Steps<ReachRow[]> {
  const { nodes, given, outgoing, incoming, neighbours } = graph
  const isAll = certain === graph
  const cuts = yield* findArticulationPoints(certain.neighbours, neighbours)
  const sure = isAll ? cuts : yield* findArticulationPoints(neighbours, certain.neighbours)
  const reachable = yield* countReachable(outgoing)
  const known = isAll ? reachable : yield* countReachable(certain.outgoing)
  return nodes
    .map(({ app, env }, node) => ({
      node: given[node]!,
      app,
      env,
      is_articulation_point: cuts[node] === 1,
      isPerhapsOne: cuts[node] !== sure[node],
      reachable_apps: reachable[node]!,
      reachedPerhaps: reachable[node]! - known[node]!,
      direct_connections_out: degreeOf(outgoing, node),
      direct_connections_in: degreeOf(incoming, node),
      directPerhaps: {
        out: degreeOf(outgoing, node) - degreeOf(certain.outgoing, node),
        in: degreeOf(incoming, node) - degreeOf(certain.incoming, node),
      },
    }))
    .sort((a, b) => b.reachable_apps - a.reachable_apps)
}

/**
 * Number of 32-bit words in each component's row of bits. A row has one bit per target in the current batch, so a batch
 * has 32 * WORDS targets. Batches make memory grow with the number of nodes instead of its square.
 */
const WORDS = 32
const BATCH = WORDS * 32
const COMPONENTS_AT_ONCE = 128

/**
 * Counts the other nodes that each node can reach along directed edges (T18). All nodes of a strong component reach the
 * same nodes, and a component comes after all components to which it leads. So a single pass can combine the sets of
 * reached nodes, with one bit per target.
 */
export function* countReachable(outgoing: Adjacency): Steps<Uint32Array> {
  const { component, members, ends } = yield* findStrongComponents(outgoing)
  const { starts, targets } = outgoing
  const reached = new Uint32Array(ends.length)
  const bits = new Uint32Array(ends.length * WORDS)

  for (let first = 0, batch = 0; batch < members.length; batch += BATCH) {
    // A component that ends before this batch cannot lead to any node in the batch.
    while (ends[first]! <= batch) first++
    bits.fill(0, first * WORDS)
    for (let own = first; own < ends.length; own++) {
      const row = own * WORDS
      const start = own === 0 ? 0 : ends[own - 1]!
      for (let place = Math.max(start, batch); place < Math.min(ends[own]!, batch + BATCH); place++) {
        bits[row + ((place - batch) >>> 5)]! |= 1 << (place & 31)
      }
      for (let place = start; place < ends[own]!; place++) {
        const node = members[place]!
        for (let edge = starts[node]!; edge < starts[node + 1]!; edge++) {
          const other = component[targets[edge]!]!
          if (other === own || other < first) continue
          for (let word = 0; word < WORDS; word++) bits[row + word]! |= bits[other * WORDS + word]!
        }
      }
      for (let word = 0; word < WORDS; word++) reached[own]! += countBits(bits[row + word]!)
      if (own % COMPONENTS_AT_ONCE === 0) yield
    }
  }
  return component.map((own) => reached[own]! - 1)
}

/** Counts the bits set in a 32-bit word by adding up pairs, then groups of four, then bytes, in parallel. */
function countBits(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}
