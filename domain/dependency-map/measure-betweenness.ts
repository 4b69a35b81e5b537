import type { Adjacency } from './lay-out-graph.js'
import type { Steps } from '../text/pace-work.js'

/**
 * The number of shortest paths grows exponentially with the distance. Past the first bound a whole level is scaled down; the second
 * keeps what is then negligible above zero, so that no share is ever 0/0.
 */
const TOO_MANY_PATHS = 2 ** 500
const TRACE_OF_PATHS = 2 ** -900

/** The working memory of a search, one entry per node, reused by the next. */
interface Scratch {
  /** Nodes level by level as the search reaches them, ascending within a level. One entry more than there are nodes. */
  order: Uint32Array
  /** Where each level begins in `order`; the last entry is where they all end. */
  levels: number[]
  /** The edges of each level's nodes, in both directions. */
  edges: number[]
  /** 1 for a node that is not reached yet, else 0. */
  unreached: Uint8Array
  /** One bit for a node, all 0 between uses. */
  bits: Uint32Array
  /** Sums in the making. Of no meaning once a level is done. */
  gathered: Float64Array
  /** Shortest paths that arrive at a node, in the unit of the level before it. */
  arriving: Float64Array
  /** The same paths in the unit of its own level. 0 for a node whose level is not done. */
  leaving: Float64Array
  /** 1 plus what depends on a node, per path that arrives there. 0 until its level is done. */
  perPath: Float64Array
}

/**
 * Betweenness of every node of an undirected, unweighted graph: the share of the shortest paths between two others that lead
 * through it, summed over all ordered pairs and divided by (n-1)(n-2), so 0..1; all 0 when n <= 2 (T17). After U. Brandes, "A
 * faster algorithm for betweenness centrality" (2001), with the steps between two levels taken from whichever side has fewer edges
 * (S. Beamer, K. Asanović, D. Patterson, "Direction-optimizing breadth-first search", 2012). Sums run over ascending nodes from
 * either side, so the choice changes no bit of a result. Written here because graphology's (metrics 2.4.2) blocks the event loop
 * until it is done, counts paths in 32 bits, so that a graph of 97 nodes can give NaN, and is wrong for exactly 128 edges.
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

/** Breadth first from the source: fills `order`, `levels`, `edges`, `arriving` and `leaving`. */
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
      // To find the nodes not reached, every node is looked at.
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

/** Settles the paths of a level's nodes and chooses its unit, which is free because shares compare paths of one level only. */
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
 * The next level, from the edges of the level before: appends its nodes to `order` and gathers their paths. Returns the end of the
 * level. Branch-free inside, because the branch would be unpredictable: what nodes already reached gather is not read again.
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

/** Sorts the nodes of a level: each sets its bit, and the bits are read in order, unless they are too few for that. */
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

/** The next level, from the edges of the nodes not reached yet: of all reached nodes they are next to the level before alone. */
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

/** The sum of a figure over a node's neighbours. */
function sumOver({ starts, targets }: Adjacency, node: number, figures: Float64Array): number {
  let sum = 0
  for (let edge = starts[node]!, last = starts[node + 1]!; edge < last; edge++) sum += figures[targets[edge]!]!
  return sum
}

/** From the farthest level back: each node passes its dependency on to its predecessors, by their share of the paths. */
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

/** Adds what depends on the nodes of a level to all their neighbours; only those of the level before read it. */
function pushDependencies(from: number, to: number, { starts, targets }: Adjacency, scratch: Scratch): void {
  const { order, gathered, perPath } = scratch
  for (let i = from; i < to; i++) {
    const node = order[i]!
    const share = perPath[node]!
    for (let edge = starts[node]!, last = starts[node + 1]!; edge < last; edge++) gathered[targets[edge]!]! += share
  }
}
