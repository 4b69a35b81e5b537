import type { Adjacency } from './lay-out-graph.js'
import type { Steps } from '../text/pace-work.js'

/**
 * The number of shortest paths grows exponentially with the distance. Past the first bound a whole level is scaled down; the second
 * keeps what is then negligible above zero, so that no share is ever 0/0.
 */
const TOO_MANY_PATHS = 2 ** 500
const TRACE_OF_PATHS = 2 ** -900

/** The working memory of a search, reused by the next. Arrays have one entry per node, `order` one more. */
interface Scratch {
  /** Nodes in the order the search reaches them, so level by level. */
  order: Uint32Array
  reached: Uint8Array
  /** Shortest paths that arrive at a node, in the unit of the level before it. */
  arriving: Float64Array
  /** The same paths in the unit of its own level. 0 for a node that is not reached yet. */
  leaving: Float64Array
  dependency: Float64Array
  /** 1 plus what depends on a node, per path that arrives there. 0 until its level is done. */
  perPath: Float64Array
}

/**
 * Betweenness of every node of an undirected, unweighted graph: the share of the shortest paths between two others that lead
 * through it, summed over all ordered pairs and divided by (n-1)(n-2), so 0..1; all 0 when n <= 2 (T17). After U. Brandes, "A
 * faster algorithm for betweenness centrality" (2001). Written here because graphology's (metrics 2.4.2) blocks the event loop
 * until it is done, counts paths in 32 bits, so that a graph of 97 nodes can give NaN, and is wrong for exactly 128 edges.
 */
export function* measureBetweenness(neighbours: Adjacency): Steps<Float64Array> {
  const count = neighbours.starts.length - 1
  const sums = new Float64Array(count)
  if (count <= 2) return sums
  const scratch: Scratch = {
    order: new Uint32Array(count + 1),
    reached: new Uint8Array(count),
    arriving: new Float64Array(count),
    leaving: new Float64Array(count),
    dependency: new Float64Array(count),
    perPath: new Float64Array(count),
  }
  for (let source = 0; source < count; source++) {
    const levels = countPaths(source, neighbours, scratch)
    addDependencies(levels, neighbours, scratch, sums)
    yield
  }
  const pairs = (count - 1) * (count - 2)
  return sums.map((sum) => sum / pairs)
}

/** Breadth first from the source. Returns where in `order` each level ends. */
function countPaths(source: number, neighbours: Adjacency, scratch: Scratch): number[] {
  const { order, reached, arriving, leaving } = scratch
  reached.fill(0)
  leaving.fill(0)
  order[0] = source
  reached[source] = arriving[source] = leaving[source] = 1
  const levels = [1]
  for (let from = 0, to = 1; from < to;) {
    const end = reachNext(from, to, neighbours, scratch)
    // Among the neighbours of these nodes only those of the previous level have paths.
    addUp(to, end, neighbours, order, leaving, arriving)
    rescale(order.subarray(to, end), arriving, leaving)
    from = to
    to = end
    levels.push(end)
  }
  return levels
}

/** Appends the nodes next to those of a level that are not reached yet. Branch-free, because the branch would be unpredictable. */
function reachNext(from: number, to: number, { starts, targets }: Adjacency, { order, reached }: Scratch): number {
  let end = to
  for (let i = from; i < to; i++) {
    const node = order[i]!
    for (let edge = starts[node]!, last = starts[node + 1]!; edge < last; edge++) {
      const other = targets[edge]!
      order[end] = other
      end += 1 - reached[other]!
      reached[other] = 1
    }
  }
  return end
}

/** For each node of a level: the sum of a figure over its neighbours. */
function addUp(
  from: number,
  to: number,
  { starts, targets }: Adjacency,
  order: Uint32Array,
  figures: Float64Array,
  sums: Float64Array,
): void {
  for (let i = from; i < to; i++) {
    const node = order[i]!
    let sum = 0
    for (let edge = starts[node]!, last = starts[node + 1]!; edge < last; edge++) sum += figures[targets[edge]!]!
    sums[node] = sum
  }
}

/** Chooses a level's unit, which is free because shares compare paths of one level only. */
function rescale(level: Uint32Array, arriving: Float64Array, leaving: Float64Array): void {
  let most = 0
  for (const node of level) most = Math.max(most, (leaving[node] = arriving[node]!))
  if (most < TOO_MANY_PATHS) return
  for (const node of level) leaving[node] = Math.max(arriving[node]! / most, TRACE_OF_PATHS)
}

/** From the farthest level back: each node passes its dependency on to its predecessors, by their share of the paths. */
function addDependencies(levels: readonly number[], neighbours: Adjacency, scratch: Scratch, sums: Float64Array): void {
  const { order, arriving, leaving, dependency, perPath } = scratch
  perPath.fill(0)
  for (let level = levels.length - 1; level > 0; level--) {
    const [from, to] = [levels[level - 1]!, levels[level]!]
    addUp(from, to, neighbours, order, perPath, dependency)
    for (let i = from; i < to; i++) {
      const node = order[i]!
      dependency[node]! *= leaving[node]!
      perPath[node] = (1 + dependency[node]!) / arriving[node]!
      sums[node]! += dependency[node]!
    }
  }
}
