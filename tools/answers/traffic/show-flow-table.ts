import type { Limits } from '../../../schemas/config.js'
import { countRowsThatFit, toSplitRows } from '../split-format.js'
import { coverageNote, dataSpan, type FlowsRead } from '../../../domain/traffic/read-flows.js'
import type { Group } from '../../../domain/traffic/group-rows.js'

type Keys = Record<string, string | number | null>

export interface FlowTable {
  read: FlowsRead
  /** Names of the group keys, in order. */
  names: readonly string[]
  /** Busiest first. */
  groups: readonly Group<Keys>[]
  /** Groups there are. */
  total: number
  /** Whether a column in which no shown group has a value is shown. */
  keepsEmpty: boolean
}

const SUMS = ['num_connections', 'bytes_in', 'bytes_out', 'first_detected', 'last_detected']

/** Groups in split format (T9), as many as fit the budget. Missing keys are `-` (T8), missing times null. */
export function showFlowTable({ read, names, groups, total, keepsEmpty }: FlowTable, limits: Limits) {
  const used = keepsEmpty ? names : names.filter((name) => groups.some(({ keys }) => keys[name] !== null))
  const columns = [...used, ...SUMS]
  const rows = toSplitRows(
    columns,
    groups.map(({ keys, measures: { connections, ...sums } }) => ({
      ...Object.fromEntries(used.map((name) => [name, keys[name] ?? '-'])),
      num_connections: connections,
      ...sums,
    })),
  ) as (string | number | null)[][]
  const note = coverageNote(read)
  const span = dataSpan([read])
  const envelope = {
    total_pce_flows: read.pceFlows,
    total_rows: total,
    returned_rows: rows.length,
    truncated: false,
    flows_truncated: read.truncated,
    columns,
    rows_analysed: read.rows,
    unparseable: read.unparseable,
    ...(read.rawObservations !== null && { raw_observations: read.rawObservations }),
    ...(note !== '' && { coverage_note: note }),
    window: read.window,
    ...(span !== null && { data_span: span }),
    ...(total === 0 && { message: 'No flows in the window.' }),
  }
  const fitting = rows.slice(0, countRowsThatFit(rows, envelope, limits))
  return { ...envelope, returned_rows: fitting.length, truncated: fitting.length < total, data: fitting }
}
