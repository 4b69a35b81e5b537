import { Type } from '@sinclair/typebox'
import { PagingOutput } from '../../../schemas/paging.js'
import { TrafficCounts } from '../../../schemas/traffic-counts.js'
import { DecidedOut } from '../../../schemas/decided-traffic.js'
import type { Limits } from '../../../schemas/config.js'
import { countRowsThatFit, rowsByColumn } from '../byte-budget.js'
import { type showTotals, totalsOut } from '../tally-list.js'
import { SUM_COLUMNS } from '../../../domain/traffic/dimensions.js'
import type { DecidedTraffic } from '../../../domain/policy/decide-traffic.js'
import { showDecided } from './show-decided.js'
import { coverageNote, dataSpan, type FlowsRead } from '../../../domain/traffic/read-flows.js'
import { outsideWindow } from '../../../domain/traffic/outside-window.js'
import type { Group } from '../../../domain/traffic/group-rows.js'

/** The answer of get-traffic-flows (T23), with rows as arrays in the order of `columns` (T9). */
export const FlowTableOutput = Type.Object({
  total_pce_flows: TrafficCounts.pce_flows,
  total_rows: Type.Integer({ description: 'Groups there are: rows of data, shown or not' }),
  returned_rows: Type.Integer({ description: 'Groups shown, busiest first' }),
  truncated: Type.Boolean({ description: 'Groups are not shown, or flows_truncated' }),
  flows_truncated: TrafficCounts.flows_truncated,
  columns: Type.Array(Type.String(), {
    description:
      'What group_by asked for, then sums, and outside_window (before, after, both) where a row reaches out of it',
  }),
  in_every_row: Type.Optional(Type.Object({}, { description: 'Columns that the filters fix, left out of data' })),
  totals: totalsOut('Connections of all groups, where more follow'),
  grouped_by: Type.Optional(Type.Object({}, { description: 'Columns of what group_by calls otherwise' })),
  empty_columns: Type.Optional(Type.Array(Type.String(), { description: 'Asked for, but no row shown has a value' })),
  data: Type.Array(Type.Array(Type.Union([Type.String(), Type.Number(), Type.Null()])), {
    description: 'By columns; "-" is a missing key',
  }),
  rows_analysed: TrafficCounts.rows,
  unparseable: TrafficCounts.unparseable,
  parts: TrafficCounts.parts,
  raw_observations: TrafficCounts.raw_observations,
  coverage_note: TrafficCounts.coverage_note,
  window: TrafficCounts.window,
  data_span: TrafficCounts.data_span,
  ...DecidedOut,
  next_cursor: PagingOutput.next_cursor,
  message: Type.Optional(Type.String()),
})

type Keys = Record<string, string | number | null>

interface FlowTable {
  read: FlowsRead
  /**
   * The decisions that were derived from the rules of a policy version; null if rows show the decisions that the PCE
   * recorded.
   */
  decided: DecidedTraffic | null
  /** The grouping keys that are columns, in order. They are the same on every page. */
  names: readonly string[]
  /** The columns that have one value because of the filters, with this value. */
  fixed: Readonly<Record<string, string | number>>
  /** The connections of all groups, summed by single columns; empty on pages that need no totals. */
  totals: ReturnType<typeof showTotals>
  /** The groups for this page, busiest first. Not all of them may fit. */
  groups: readonly Group<Keys>[]
  /** Total number of groups on all pages. */
  total: number
  /** For each requested dimension that has no column of its own name, the names of its columns. */
  groupedBy: Readonly<Record<string, readonly string[]>>
  /** Number of groups on earlier pages. */
  offset: number
  /** True if the traffic has changed since the previous page. */
  hasMoved: boolean
}

const MOVED =
  'The traffic has changed since the page before, and with it the order: groups may be missing or repeated across pages. An end_date in the past keeps the order.'

/**
 * Builds the answer of get-traffic-flows. It has as many groups as fit into the budget next to a cursor as long as
 * `cursor`, and says how many groups are on this page and on earlier ones. Missing keys are shown as `-` (T8), missing
 * times as null.
 */
export function showFlowTable(
  { read, decided, names, fixed, totals, groups, total, groupedBy, offset, hasMoved }: FlowTable,
  cursor: string,
  limits: Limits,
) {
  const empty = names.filter((name) => groups.length > 0 && groups.every(({ keys }) => keys[name] === null))
  const span = dataSpan([read])
  // The column `outside_window` depends on all traffic, not on the groups of one page, so all pages have the same
  // columns.
  const columns = [...names, ...SUM_COLUMNS, ...(span === null ? [] : ['outside_window'])]
  const rows = rowsByColumn(
    columns,
    groups.map(({ keys, measures: { connections, ...sums } }) => ({
      ...Object.fromEntries(names.map((name) => [name, keys[name] ?? '-'])),
      num_connections: connections,
      ...sums,
      outside_window: outsideWindow(read.window, sums),
    })),
  ) as (string | number | null)[][]
  const moved = decided === null ? MOVED : MOVED.replace('traffic has', 'traffic or what decides about it has')
  const note = [hasMoved ? moved : '', coverageNote(read)].filter(Boolean).join(' ')
  const envelope = {
    total_pce_flows: read.pceFlows,
    total_rows: total,
    returned_rows: rows.length,
    truncated: read.truncated,
    flows_truncated: read.truncated,
    columns,
    ...(Object.keys(fixed).length > 0 && { in_every_row: fixed }),
    ...totals,
    ...(Object.keys(groupedBy).length > 0 && { grouped_by: groupedBy }),
    ...(empty.length > 0 && { empty_columns: empty }),
    rows_analysed: read.rows,
    unparseable: read.unparseable,
    ...(read.parts !== null && { parts: read.parts }),
    ...(read.rawObservations !== null && { raw_observations: read.rawObservations }),
    ...(note !== '' && { coverage_note: note }),
    window: read.window,
    ...(span !== null && { data_span: span }),
    ...showDecided(decided),
    ...(total === 0 && {
      message: read.pceFlows > 0 ? 'No flow that the PCE returned passes the filters.' : 'No flows in the window.',
    }),
  }
  const fitting = rows.slice(0, countRowsThatFit(rows, { ...envelope, data: [], next_cursor: cursor }, limits))
  const shown = offset + fitting.length
  const truncated = read.truncated || shown < total
  return { shown, answer: { ...envelope, returned_rows: fitting.length, truncated, data: fitting } }
}
