import type { GraphLayout } from './lay-out-graph.js'
import type { Steps } from '../text/work-in-turns.js'

/** Paths that one answer names (tools contract, B7). */
export const MOST_PATHS = 50

export interface FoundPath {
  /** From its start to its end, as places in the caller's list of nodes. */
  path: number[]
  hops: number
}

export interface FoundPaths {
  /** The longest first; of one length in the order of the keys of their first nodes, then of their second ones, and so on. */
  paths: FoundPath[]
  /** All there are. */
  total: number
}

/**
 * From every start one shortest path to every node at 1 to `maxHops` hops along directed edges; of several shortest ones the first
 * in the order of `paths`. `starts` are places in the caller's list of nodes.
 */
export function* findPaths(graph: GraphLayout, starts: readonly number[], maxHops: number): Steps<FoundPaths> {
  const search = createSearch(graph, maxHops)
  let total = 0
  let paths: FoundPath[] = []
  for (const start of [...new Set(starts)].map((place) => graph.placed[place]!).sort((a, b) => a - b)) {
    const { found, longest } = search(start)
    total += found
    // Sorting is stable and both lists are in order, so equal lengths stay in the order of their keys.
    paths = [...paths, ...longest].sort((a, b) => b.hops - a.hops).slice(0, MOST_PATHS)
    yield
  }
  return { paths, total }
}

interface SearchResult {
  /** Paths from this start. */
  found: number
  /** The first `MOST_PATHS` of them in the order of an answer. */
  longest: FoundPath[]
}

/** A search breadth first. Neighbours are in the order of their keys, so the nodes of a level are in the order of their paths. */
function createSearch({ outgoing, given }: GraphLayout, maxHops: number): (start: number) => SearchResult {
  const { starts, targets } = outgoing
  const order = new Uint32Array(given.length)
  const parent = new Uint32Array(given.length)
  const seen = new Uint8Array(given.length)

  const pathTo = (end: number, hops: number): FoundPath => {
    const path = new Array<number>(hops + 1)
    for (let hop = hops, node = end; hop >= 0; hop--, node = parent[node]!) path[hop] = given[node]!
    return { path, hops }
  }

  return (start) => {
    seen.fill(0)
    seen[start] = 1
    order[0] = start
    let reached = 1
    /** Where the nodes at 0, 1, 2... hops begin in `order`. */
    const levels = [0]
    while (levels.length <= maxHops && levels.at(-1)! < reached) {
      const [from, to] = [levels.at(-1)!, reached]
      levels.push(to)
      for (let i = from; i < to; i++) {
        const node = order[i]!
        for (let edge = starts[node]!; edge < starts[node + 1]!; edge++) {
          const other = targets[edge]!
          if (seen[other] === 1) continue
          seen[other] = 1
          parent[other] = node
          order[reached++] = other
        }
      }
    }
    const longest: FoundPath[] = []
    for (let hops = levels.length - 1; hops > 0; hops--) {
      const end = levels[hops + 1] ?? reached
      for (let i = levels[hops]!; i < end && longest.length < MOST_PATHS; i++) longest.push(pathTo(order[i]!, hops))
    }
    return { found: reached - 1, longest }
  }
}
