import { applicationKey } from '../traffic/applications.js'
import { compareTexts } from '../text/compare-values.js'
import { pickTop } from '../traffic/pick-top.js'
import { isInScope, type Movement, type MovementScope } from './search-movement.js'

/** Of edges and their connections on high-risk ports the busiest that start or end in the scope, and how many do. Ties go by the keys of their ends. */
export function riskiestEdges(
  { nodes, edges }: Movement,
  scope: MovementScope,
  connections: ReadonlyMap<number, number>,
  limit: number,
): { total: number; edges: number[] } {
  const risky = [...connections].filter(([number]) => {
    const { from, to } = edges[number]!
    return isInScope(nodes[from]!, scope) || isInScope(nodes[to]!, scope)
  })
  const keyAt = (node: number) => applicationKey(nodes[node]!)
  const compareEdges = (a: number, b: number) => {
    const [one, other] = [edges[risky[a]![0]]!, edges[risky[b]![0]]!]
    return compareTexts(keyAt(one.from), keyAt(other.from)) || compareTexts(keyAt(one.to), keyAt(other.to))
  }
  const { total, top } = pickTop(risky.length, limit, 0, (at) => risky[at]![1], compareEdges)
  return { total, edges: top.map((at) => risky[at]![0]) }
}

/** The numbers of the edges of the paths that were found, each once, in order of appearance. */
export function edgesOfPaths({ nodes, edges, paths }: Movement): number[] {
  const idOf = (from: number, to: number) => from * nodes.length + to
  /** The number of each edge wanted, -1 until it is known. */
  const wanted = new Map<number, number>()
  for (const { path } of paths?.found ?? [])
    for (let hop = 1; hop < path.length; hop++) wanted.set(idOf(path[hop - 1]!, path[hop]!), -1)
  if (wanted.size === 0) return []
  for (const [number, { from, to }] of edges.entries()) {
    const id = idOf(from, to)
    if (wanted.has(id)) wanted.set(id, number)
  }
  return [...wanted.values()]
}
