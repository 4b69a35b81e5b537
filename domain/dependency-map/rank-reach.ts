import type { Steps } from '../text/pace-work.js'
import { findArticulationPoints, findStrongComponents } from './find-components.js'
import { degreeOf, type GraphLayout, type Adjacency } from './lay-out-graph.js'

export interface ReachRow {
  /** Index in the caller's list of nodes. */
  node: number
  app: string
  env: string
  /** True if the application connects, or perhaps connects, parts of the graph that would otherwise be separate. */
  is_articulation_point: boolean
  /** True if it is not certain that the application is an articulation point. */
  isPerhapsOne: boolean
  /** Number of other nodes that can be reached along directed edges. */
  reachable_apps: number
  /** Number of nodes counted in `reachable_apps` that cannot be reached along certain edges alone. */
  reachedPerhaps: number
  /** Number of nodes that are one hop away; this is not the number of connections. */
  direct_connections_out: number
  direct_connections_in: number
  /**
   * Numbers of nodes counted in `direct_connections_out` and `direct_connections_in` to which no certain edge leads.
   */
  directPerhaps: { out: number; in: number }
}

/**
 * Ranks nodes by how many others an intruder could reach from them, most first; ties are in the order of the keys
 * (T18). `certain` has only the edges of the graph that are certain to be open; any of the other edges may be open.
 * Therefore a node is perhaps an articulation point if certain edges alone do not connect its neighbours without it. It
 * certainly is one if even all edges together do not connect its certain neighbours without it.
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
 * Size of one row of bits in 32-bit words. Targets are handled in batches of 32 * WORDS, so that memory grows with n,
 * not n².
 */
const WORDS = 32
const BATCH = WORDS * 32
const COMPONENTS_AT_ONCE = 128

/**
 * Counts the other nodes that each node reaches along directed edges (T18). All nodes of a strong component reach the
 * same nodes. Each component comes after the components that it leads to, so a single pass can combine the sets of
 * reached nodes, with one bit per target.
 */
export function* countReachable(outgoing: Adjacency): Steps<Uint32Array> {
  const { component, members, ends } = yield* findStrongComponents(outgoing)
  const { starts, targets } = outgoing
  const reached = new Uint32Array(ends.length)
  const bits = new Uint32Array(ends.length * WORDS)

  for (let first = 0, batch = 0; batch < members.length; batch += BATCH) {
    // Components that end before this batch cannot lead to any of its nodes.
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
