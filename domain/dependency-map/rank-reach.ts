import { countReachable } from './count-reachable.js'
import { findArticulationPoints } from './find-articulation-points.js'
import { degreeOf, type GraphLayout } from './lay-out-graph.js'
import type { Steps } from '../text/work-in-turns.js'

export interface ReachRow {
  /** The place in the caller's list of nodes. */
  node: number
  app: string
  env: string
  is_articulation_point: boolean
  /** Other nodes that can be reached along directed edges. */
  reachable_apps: number
  /** Nodes at one hop, not connections. */
  direct_connections_out: number
  direct_connections_in: number
}

/** Every node, by how far an intruder gets from it: the farthest first, ties in the order of the keys (tools contract, B7). */
export function* rankReach({ nodes, given, outgoing, incoming, neighbours }: GraphLayout): Steps<ReachRow[]> {
  const cuts = yield* findArticulationPoints(neighbours)
  const reachable = yield* countReachable(outgoing)
  return nodes
    .map(({ app, env }, node) => ({
      node: given[node]!,
      app,
      env,
      is_articulation_point: cuts[node] === 1,
      reachable_apps: reachable[node]!,
      direct_connections_out: degreeOf(outgoing, node),
      direct_connections_in: degreeOf(incoming, node),
    }))
    .sort((a, b) => b.reachable_apps - a.reachable_apps)
}
