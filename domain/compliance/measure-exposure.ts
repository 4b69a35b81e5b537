import { mayBeAllowedByDefault, endpointLabel, type FlowEnd } from '../traffic/flow-ends.js'
import { applicationColumns } from '../traffic/applications.js'
import { endColumn, endColumns, portColumn, protocolNameColumn, textColumn, type Column } from '../traffic/columns.js'
import type { FlowEncoder, FlowRow } from '../traffic/encode-flow.js'
import { groupRows } from '../traffic/group-rows.js'
import { createTupleTable } from '../traffic/group-tables.js'
import { TCP, UDP } from '../inventory/protocols.js'
import type { EndClass } from './classify-end.js'
import type { Cell, Exposure } from './exposure.js'

type Way = Pick<Cell, 'inbound' | 'outbound'>

interface ExposureMeter {
  /** `way` undefined: told by which ends are in scope. */
  add(row: FlowRow, way?: Way): void
  finish(truncated: boolean): Exposure
}

/** Takes rows in; what stays of them is one group per pair of ends and service, never the rows. */
export function createExposureMeter(
  encoder: FlowEncoder,
  classify: (end: FlowEnd) => EndClass,
  ports: ReadonlySet<number>,
): ExposureMeter {
  const texts = endColumns(encoder, (end) => JSON.stringify(classify(end)))
  const classes: EndClass[] = []
  const classAt = (code: number) => (classes[code] ??= JSON.parse(texts.src.value(code) as string) as EndClass)
  const applications = applicationColumns(encoder)
  const decisions = textColumn(encoder, 'decision')

  const table = createTupleTable(5)
  const cells: Cell[] = []
  const tuple = new Int32Array(5)
  let current = 0
  const cell: Column<Cell> = { code: () => current, value: (code) => cells[code] as Cell }
  const sums = groupRows({ cell })
  const flows = groupRows({
    cell,
    from: endColumn(encoder, 'src', endpointLabel),
    to: endColumn(encoder, 'dst', endpointLabel),
    port: portColumn,
    proto: protocolNameColumn,
  })
  let [rows, inside] = [0, 0]

  const cellOf = (row: FlowRow, { inbound, outbound }: Way): number => {
    const isWatched = (row.proto === TCP || row.proto === UDP) && ports.has(row.port)
    tuple[0] = texts.src.code(row)
    tuple[1] = texts.dst.code(row)
    tuple[2] = isWatched ? row.port : -1
    tuple[3] = decisions.code(row)
    tuple[4] = (inbound ? 1 : 0) + (outbound ? 2 : 0)
    const slot = table.slot(tuple)
    if (slot === cells.length) {
      const [source, target] = [classAt(tuple[0]), classAt(tuple[1])]
      const decision = decisions.value(tuple[3]) ?? 'unknown'
      const byDefault = decision === 'allowed' && mayBeDefault(source, target)
      cells.push({ source, target, inbound, outbound, port: isWatched ? row.port : null, decision, byDefault })
    }
    return slot
  }

  return {
    add(row, way) {
      rows += 1
      const application = applications.src.code(row)
      if (application !== 0 && application === applications.dst.code(row)) {
        inside += 1
        return
      }
      current = cellOf(
        row,
        way ?? { inbound: classAt(texts.dst.code(row)).inScope, outbound: classAt(texts.src.code(row)).inScope },
      )
      sums.add(row)
      flows.add(row)
    },
    finish(truncated) {
      const counts = [...sums].map(({ keys, rows: of, measures }) => ({ cell: keys.cell, rows: of, ...measures }))
      return {
        rows,
        inside,
        truncated,
        count(test) {
          const total = { rows: 0, connections: 0 }
          for (const one of counts) {
            if (!test(one.cell)) continue
            total.rows += one.rows
            total.connections += one.connections
          }
          return total
        },
        busiest(test, limit) {
          const wanted = new Set(cells.filter(test))
          return [...flows.busiestWithin('cell', wanted, limit).values()]
            .flatMap(({ groups }) => groups)
            .map(({ keys, measures }) => ({
              from: keys.from ?? 'unknown',
              to: keys.to ?? 'unknown',
              port: keys.port,
              proto: keys.proto,
              decision: keys.cell.decision,
              connections: measures.connections,
            }))
            .sort((a, b) => b.connections - a.connections || (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
            .slice(0, limit)
        },
      }
    },
  }
}

/** Unless a ringfence's deny rule covers the target: what is allowed all the same has an allow rule. */
function mayBeDefault(source: EndClass, target: EndClass): boolean {
  if (!mayBeAllowedByDefault(source.mode, target.mode)) return false
  const { inboundDenied } = target
  return !(inboundDenied === 'any' || (inboundDenied === 'ams' && source.managed))
}
