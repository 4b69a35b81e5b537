import { applicationColumns, applicationId } from '../flows/applications.js'
import { textColumn } from '../flows/columns.js'
import type { FlowEncoder, FlowRow } from '../flows/encode-flow.js'
import { groupRows } from '../flows/group-rows.js'
import type { AppEdge, AppNode } from './lay-out-graph.js'

/** An edge with its connections by policy decision. */
export interface DecidedEdge extends AppEdge {
  decisions: Record<string, number>
}

/** Traffic between applications, row by row. */
export interface AppGraphCollector {
  /** True when both ends are applications, different ones: the row is part of an edge. */
  readonly add: (row: FlowRow) => boolean
  /** The edges with connections of every decision, each ordered pair once, and the nodes they join (tools contract, A11, B6). */
  finish(): { nodes: AppNode[]; edges: DecidedEdge[] }
}

export function collectAppGraph(encoder: FlowEncoder): AppGraphCollector {
  const { src, dst } = applicationColumns(encoder)
  const groups = groupRows({ src, dst, decision: textColumn(encoder, 'decision') })
  return {
    add(row) {
      const [from, to] = [src.code(row), dst.code(row)]
      if (from === 0 || to === 0 || from === to) return false
      groups.add(row)
      return true
    },
    finish() {
      const nodes: AppNode[] = []
      const places = new Map<string, number>()
      const placeOf = (node: AppNode) => {
        const id = applicationId(node)
        const known = places.get(id) ?? nodes.push(node) - 1
        places.set(id, known)
        return known
      }
      const edges = new Map<string, DecidedEdge>()
      for (const { keys, measures } of groups) {
        if (keys.src === null || keys.dst === null) continue
        const [from, to] = [placeOf(keys.src), placeOf(keys.dst)]
        const id = `${from} ${to}`
        const edge = edges.get(id) ?? { from, to, connections: 0, decisions: {} }
        edges.set(id, edge)
        edge.connections += measures.connections
        const decision = keys.decision ?? 'unknown'
        edge.decisions[decision] = (edge.decisions[decision] ?? 0) + measures.connections
      }
      return { nodes, edges: [...edges.values()] }
    },
  }
}
