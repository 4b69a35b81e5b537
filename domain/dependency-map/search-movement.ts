import type { Application } from '../traffic/applications.js'
import type { DecidedEdge } from './collect-app-graph.js'
import { findPaths, type FoundPath } from './find-paths.js'
import { layOutGraph } from './lay-out-graph.js'
import { rankReach, type ReachRow } from './rank-reach.js'
import { workInTurns } from '../text/work-in-turns.js'

/** Where to start: one application, all of an app or of an env label, or nowhere. */
export interface MovementScope {
  app?: string
  env?: string
}

export interface Movement {
  nodes: readonly Application[]
  /** All edges, by number. */
  edges: readonly DecidedEdge[]
  /** Edges whose every flow is blocked; no path uses them. */
  blockedEdges: number
  /** Of the whole graph, the farthest reach first. */
  reach: ReachRow[]
  /** Null when no start was asked for. */
  paths: { starts: number[]; found: FoundPath[]; total: number } | null
}

/** What can be reached from where, over edges that are not blocked. Rejects with the signal's reason when cancelled. */
export async function searchMovement(
  { nodes, edges }: { nodes: Application[]; edges: DecidedEdge[] },
  scope: MovementScope,
  maxHops: number,
  signal: AbortSignal,
): Promise<Movement> {
  const usable = edges.filter(({ decisions }) => Object.keys(decisions).some((decision) => decision !== 'blocked'))
  const layout = layOutGraph({ nodes, edges: usable })
  const reach = await workInTurns(rankReach(layout), signal)
  const base = { nodes, edges, blockedEdges: edges.length - usable.length, reach }
  if (scope.app === undefined && scope.env === undefined) return { ...base, paths: null }
  const starts = nodes.flatMap((node, at) => (isInScope(node, scope) ? [at] : []))
  const { paths, total } = await workInTurns(findPaths(layout, starts, maxHops), signal)
  return { ...base, paths: { starts, found: paths, total } }
}

export const isInScope = (node: Application, { app, env }: MovementScope): boolean =>
  (app === undefined || node.app === app) && (env === undefined || node.env === env)
