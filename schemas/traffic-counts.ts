import { Type } from '@sinclair/typebox'
import { Count, Nullable } from './common.js'

/** The output properties that say how complete an answer about traffic is. They are the same in every tool (D4). */
export const TrafficCounts = {
  window: Type.Object(
    { start: Type.String(), end: Type.String() },
    { description: 'What the PCE was asked for: UTC, both ends included' },
  ),
  pce_flows: Count('Rows the PCE returned; each adds up the connections of one pair of ends on one port'),
  rows: Count(
    'Rows counted, whatever their decision: pce_flows without unparseable ones and those a filter leaves out here',
  ),
  unparseable: Count('Rows in a form that the PCE does not document: counted nowhere else'),
  row_limit: Count('Most rows that a query could return'),
  parts: Type.Optional(Count('Queries it was read in; rows of several of them count once')),
  raw_observations: Type.Optional(
    Count('Observations that the PCE added up to its rows; a number of neither rows nor connections'),
  ),
  coverage_note: Type.Optional(Type.String({ description: 'What the counts leave out, and why' })),
  data_span: Type.Optional(
    Type.Unsafe<{ first_detected: string; last_detected: string }>({
      type: 'object',
      description:
        '{first_detected, last_detected} of all rows, where outside the window: the PCE adds up before it cuts to it',
    }),
  ),
  flows_truncated: Type.Boolean({
    description: 'Row limit reached, rows missing or a region silent: all counts are lower bounds',
  }),
}

/**
 * The output properties for the connections and bytes that a row of an answer adds up. They are the same for all types
 * of rows.
 */
export const TrafficSums = {
  connections: Count('Sum of the connections of its rows'),
  bytes_in: Count('Into the destination'),
  bytes_out: Count('Out of the destination'),
}

/**
 * The output properties for the times at which the traffic of a group was seen; they are the same for all types of
 * groups. Times are in UTC.
 */
export const TrafficTimes = {
  first_detected: Nullable(Type.String()),
  last_detected: Nullable(Type.String()),
  outside_window: Type.Optional(
    Type.String({ description: 'before, after, both: where its times, and maybe counts, reach out of the window' }),
  ),
}
