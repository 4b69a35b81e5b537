import { applicationColumns, type Application } from '../traffic/applications.js'
import { textColumn, type Column } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'
import type { AppEdge } from './lay-out-graph.js'

/** An edge with its connections by policy decision. */
export interface DecidedEdge extends AppEdge {
  decisions: Record<string, number>
}

/** Traffic between applications, row by row. */
export interface AppGraphCollector {
  /** The number of the edge that the row is part of; null unless both ends are applications, different ones. */
  readonly add: (row: FlowRow) => number | null
  /** The edges by number, each ordered pair once with its connections of every decision, and the nodes they join (tools contract, A11, B6). */
  finish(): { nodes: Application[]; edges: DecidedEdge[] }
}

export function collectAppGraph(encoder: FlowEncoder): AppGraphCollector {
  const { src, dst } = applicationColumns(encoder)
  const nodes: Application[] = []
  /** By the code of an application: its place in `nodes`. */
  const places: number[] = []
  const placeOf = (code: number) => (places[code] ??= nodes.push(src.value(code) as Application) - 1)
  // Of the row at hand, so that groups are made of numbers: no text is looked up before an answer shows it.
  const current = { from: 0, to: 0, edge: 0 }
  const numbers = (name: keyof typeof current): Column<number> => ({ code: () => current[name], value: (code) => code })
  const pairs = groupRows({ from: numbers('from'), to: numbers('to') })
  const decided = groupRows({ edge: numbers('edge'), decision: textColumn(encoder, 'decision') })
  return {
    add(row) {
      const [from, to] = [src.code(row), dst.code(row)]
      if (from === 0 || to === 0 || from === to) return null
      current.from = placeOf(from)
      current.to = placeOf(to)
      current.edge = pairs.add(row)
      decided.add(row)
      return current.edge
    },
    finish() {
      const edges = Array.from({ length: pairs.size }, (_, edge): DecidedEdge => ({
        from: pairs.value(edge, 'from'),
        to: pairs.value(edge, 'to'),
        connections: pairs.connections(edge),
        decisions: {},
      }))
      for (let number = 0; number < decided.size; number++) {
        const { decisions } = edges[decided.value(number, 'edge')] as DecidedEdge
        decisions[decided.value(number, 'decision') ?? 'unknown'] = decided.connections(number)
      }
      return { nodes, edges }
    },
  }
}
