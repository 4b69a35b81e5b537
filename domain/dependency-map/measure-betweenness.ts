import type { Adjacency } from './lay-out-graph.js'
import type { Steps } from '../text/pace-work.js'

/**
 * Limits that keep path counts within the floating-point range, because the number of shortest paths grows
 * exponentially with distance. If a count exceeds TOO_MANY_PATHS, all counts of its level are scaled down.
 * TRACE_OF_PATHS keeps negligible counts above zero, so that no share is ever 0/0.
 */
const TOO_MANY_PATHS = 2 ** 500
const TRACE_OF_PATHS = 2 ** -900

/** The working memory of a search, with one entry per node. The next search reuses it. */
interface Scratch {
  /**
   * The nodes in the order in which the search reaches them, level by level, and ascending within a level. The array is
   * one longer than the number of nodes.
   */
  order: Uint32Array
  /** For each level, the index in `order` at which it begins. The last entry is the end of the last level. */
  levels: number[]
  /** For each level, the number of edges of its nodes, in both directions. */
  edges: number[]
  /** 1 for a node that has not been reached yet, otherwise 0. */
  unreached: Uint8Array
  /** One bit per node; all bits are 0 between uses. */
  bits: Uint32Array
  /**
   * For each node, an accumulator of Brandes's algorithm: on the way forward, the number of shortest paths to the node;
   * on the way back, the node's dependency score. Its value is scratch once the node's level is finished.
   */
  gathered: Float64Array
  /** Number of shortest paths from the source to a node, on the scale of the previous level. */
  arriving: Float64Array
  /**
   * Number of shortest paths from the source to a node, on the scale of the node's own level; 0 until that level is
   * finished.
   */
  leaving: Float64Array
  /** 1 plus the dependency of a node, divided by the number of paths to it; 0 until its level is finished. */
  perPath: Float64Array
}

/**
 * Computes the betweenness of every node of an undirected, unweighted graph: the share of shortest paths between two
 * other nodes that pass through it, summed over all ordered pairs and divided by (n-1)(n-2), so that it is between 0
 * and 1. It is 0 for all nodes if n <= 2 (T17).
 *
 * The algorithm is U. Brandes, "A faster algorithm for betweenness centrality" (2001). Each step between two levels
 * runs from the side with fewer edges (S. Beamer, K. Asanović, D. Patterson, "Direction-optimizing breadth-first
 * search", 2012). From either side, sums are formed in ascending order of nodes, so results are identical to the last
 * bit. We do not use graphology (metrics 2.4.2): it blocks the event loop until it is done, counts paths in 32 bits, so
 * that a graph of 97 nodes can give NaN, and is wrong for graphs with exactly 128 edges.
 */
export function* measureBetweenness(neighbours: Adjacency): Steps<Float64Array> {
  const count = neighbours.starts.length - 1
  const sums = new Float64Array(count)
  if (count <= 2) return sums
  const scratch: Scratch = {
    order: new Uint32Array(count + 1),
    levels: [],
    edges: [],
    unreached: new Uint8Array(count),
    bits: new Uint32Array((count + 31) >>> 5),
    gathered: new Float64Array(count),
    arriving: new Float64Array(count),
    leaving: new Float64Array(count),
    perPath: new Float64Array(count),
  }
  for (let source = 0; source < count; source++) {
    countPaths(source, neighbours, scratch)
    addDependencies(neighbours, scratch, sums)
    yield
  }
  const pairs = (count - 1) * (count - 2)
  return sums.map((sum) => sum / pairs)
}

/** Runs a breadth-first search from the source. It fills `order`, `levels`, `edges`, `arriving` and `leaving`. */
function countPaths(source: number, neighbours: Adjacency, scratch: Scratch): void {
  const { order, levels, edges, unreached, gathered, leaving } = scratch
  unreached.fill(1)
  gathered.fill(0)
  leaving.fill(0)
  levels.length = edges.length = 0
  order[0] = source
  unreached[source] = 0
  gathered[source] = 1
  let edgesLeft = neighbours.targets.length
  let [from, to] = [0, 1]
  while (from < to) {
    const own = finishLevel(from, to, neighbours, scratch)
    levels.push(from)
    edges.push(own)
    edgesLeft -= own
    let end = to
    if (to < unreached.length) {
      // To come from the unreached nodes, every node must be examined to find them. Therefore the cost of this way
      // includes `unreached.length`.
      end =
        edgesLeft + unreached.length < own
          ? pullPaths(to, neighbours, scratch)
          : pushPaths(from, to, neighbours, scratch)
    }
    from = to
    to = end
  }
  levels.push(to)
}

/**
 * Finalises the path counts of a level, chooses their scale, and returns the number of edges of the level's nodes. Any
 * scale will do, because only path counts of the same level are compared.
 */
function finishLevel(from: number, to: number, { starts }: Adjacency, scratch: Scratch): number {
  const { order, gathered, arriving, leaving } = scratch
  let edges = 0
  let most = 0
  for (let i = from; i < to; i++) {
    const node = order[i]!
    const paths = gathered[node]!
    arriving[node] = leaving[node] = paths
    if (paths > most) most = paths
    edges += starts[node + 1]! - starts[node]!
  }
  if (most < TOO_MANY_PATHS) return edges
  for (let i = from; i < to; i++) {
    const node = order[i]!
    leaving[node] = Math.max(arriving[node]! / most, TRACE_OF_PATHS)
  }
  return edges
}

/**
 * Finds the next level by following the edges of the current one. Appends its nodes to `order`, adds up their path
 * counts, and returns the index in `order` at which it ends. The inner loop has no branch, which would be
 * unpredictable. So counts are also added up for nodes reached earlier, but these counts are never read again.
 */
function pushPaths(from: number, to: number, { starts, targets }: Adjacency, scratch: Scratch): number {
  const { order, bits, unreached, gathered, leaving } = scratch
  let end = to
  for (let i = from; i < to; i++) {
    const node = order[i]!
    const paths = leaving[node]!
    for (let edge = starts[node]!, last = starts[node + 1]!; edge < last; edge++) {
      const other = targets[edge]!
      gathered[other]! += paths
      order[end] = other
      end += unreached[other]!
      unreached[other] = 0
    }
  }
  putInOrder(order, to, end, bits)
  return end
}

/**
 * Sorts the nodes of a level: it sets one bit per node and reads the bits in order. A small level is sorted directly.
 */
function putInOrder(order: Uint32Array, from: number, to: number, bits: Uint32Array): void {
  if ((to - from) * 8 < bits.length) {
    if (to - from > 1) order.subarray(from, to).sort()
    return
  }
  for (let i = from; i < to; i++) bits[order[i]! >>> 5]! |= 1 << (order[i]! & 31)
  let next = from
  for (let word = 0; word < bits.length; word++) {
    for (let rest = bits[word]!; rest !== 0; rest &= rest - 1) order[next++] = word * 32 + 31 - Math.clz32(rest & -rest)
    bits[word] = 0
  }
}

/**
 * Finds the next level by following the edges of unreached nodes, whose reached neighbours are all in the current
 * level.
 */
function pullPaths(to: number, neighbours: Adjacency, { order, unreached, gathered, leaving }: Scratch): number {
  let end = to
  for (let node = 0; node < unreached.length; node++) {
    if (unreached[node] === 0) continue
    const paths = sumOver(neighbours, node, leaving)
    if (paths === 0) continue
    gathered[node] = paths
    unreached[node] = 0
    order[end++] = node
  }
  return end
}

/** Returns the sum of the values of a node's neighbours. */
function sumOver({ starts, targets }: Adjacency, node: number, figures: Float64Array): number {
  let sum = 0
  for (let edge = starts[node]!, last = starts[node + 1]!; edge < last; edge++) sum += figures[targets[edge]!]!
  return sum
}

/**
 * Goes back from the farthest level. Each node passes its dependency on to its predecessors, in proportion to their
 * numbers of paths.
 */
function addDependencies(neighbours: Adjacency, scratch: Scratch, sums: Float64Array): void {
  const { order, levels, edges, gathered, arriving, leaving, perPath } = scratch
  gathered.fill(0)
  perPath.fill(0)
  const farthest = edges.length - 1
  for (let level = farthest; level > 0; level--) {
    const [from, to] = [levels[level]!, levels[level + 1]!]
    if (level < farthest) {
      if (edges[level]! <= edges[level + 1]!) {
        for (let i = from; i < to; i++) gathered[order[i]!] = sumOver(neighbours, order[i]!, perPath)
      } else {
        pushDependencies(to, levels[level + 2]!, neighbours, scratch)
      }
    }
    for (let i = from; i < to; i++) {
      const node = order[i]!
      const dependency = gathered[node]! * leaving[node]!
      perPath[node] = (1 + dependency) / arriving[node]!
      sums[node]! += dependency
    }
  }
}

/**
 * Adds the dependencies of a level's nodes to all their neighbours. Only the sums for the previous level are read
 * afterwards.
 */
function pushDependencies(from: number, to: number, { starts, targets }: Adjacency, scratch: Scratch): void {
  const { order, gathered, perPath } = scratch
  for (let i = from; i < to; i++) {
    const node = order[i]!
    const share = perPath[node]!
    for (let edge = starts[node]!, last = starts[node + 1]!; edge < last; edge++) gathered[targets[edge]!]! += share
  }
}
