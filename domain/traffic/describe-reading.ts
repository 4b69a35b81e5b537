import { Type, type Static } from '@sinclair/typebox'
import type { FlowsRead } from './read-flows.js'

/** How much an answer about traffic rests on. Every tool that runs a query answers this (design decision 4). */
export const Reading = {
  window: Type.Object({ start: Type.String(), end: Type.String() }, { description: 'Queried, UTC' }),
  flows_truncated: Type.Boolean({ description: 'Row limit reached, or a region silent: counts are lower bounds' }),
  analysed: Type.Object(
    {
      pce_flows: Type.Integer({ description: 'Rows the PCE returned' }),
      rows: Type.Integer({ description: 'Rows analysed' }),
      unparseable: Type.Integer({ description: 'Rows left out' }),
      row_limit: Type.Integer({ description: 'Of the query' }),
      raw_observations: Type.Optional(Type.Integer({ description: 'Before aggregation' })),
      data_span: Type.Optional(
        Type.Object(
          { first_detected: Type.String(), last_detected: Type.String() },
          { description: 'When outside the window' },
        ),
      ),
      note: Type.Optional(Type.String()),
    },
    { description: 'What the answer rests on' },
  ),
}
export type Reading = { [K in keyof typeof Reading]: Static<(typeof Reading)[K]> }

/** The completeness of one query, or of several over the same window taken together. */
export function describeReading(...readings: readonly [FlowsRead, ...FlowsRead[]]): Reading {
  const [first] = readings
  const sum = (field: 'pceFlows' | 'rows' | 'unparseable') => readings.reduce((total, read) => total + read[field], 0)
  const raw = readings.map(({ rawObservations }) => rawObservations)
  const note = [...new Set(readings.map(coverageNote))].filter(Boolean).join(' ')
  const span = dataSpan(readings)
  return {
    window: first.window,
    flows_truncated: readings.some(({ truncated }) => truncated),
    analysed: {
      pce_flows: sum('pceFlows'),
      rows: sum('rows'),
      unparseable: sum('unparseable'),
      row_limit: first.rowLimit,
      ...(raw.every((count) => count !== null) && { raw_observations: raw.reduce((total, count) => total + count, 0) }),
      ...(span !== null && { data_span: span }),
      ...(note !== '' && { note }),
    },
  }
}

/** What the counts of a reading leave out, as sentences; empty when nothing. */
export function coverageNote(read: FlowsRead): string {
  const { unparseable, appliedToRows, silentRegions, announced } = read
  return [
    read.pceFlows >= read.rowLimit
      ? 'The row limit was reached, so all counts are lower bounds; narrow the window or the filters.'
      : '',
    silentRegions.length > 0
      ? `No answer came from ${silentRegions.join(', ')}: all counts are lower bounds, without the traffic there.`
      : '',
    announced === null
      ? ''
      : `The PCE counted ${announced} rows and sent ${read.pceFlows}: all counts are lower bounds.`,
    unparseable > 0 ? `${unparseable} rows could not be read and are not counted.` : '',
    appliedToRows.length > 0
      ? `The PCE cannot filter by network; applied to its rows here: ${appliedToRows.join(', ')}. pce_flows counts before that.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

/** The PCE aggregates before it cuts to the window, so a row's times may lie outside it; null when none does. */
export function dataSpan(readings: readonly FlowsRead[]): { first_detected: string; last_detected: string } | null {
  const first = extreme(
    readings.map(({ totals }) => totals.first_detected),
    -1,
  )
  const last = extreme(
    readings.map(({ totals }) => totals.last_detected),
    1,
  )
  const window = readings[0]?.window
  if (first === null || last === null || window === undefined) return null
  const outside = Date.parse(first) < Date.parse(window.start) || Date.parse(last) > Date.parse(window.end)
  return outside ? { first_detected: first, last_detected: last } : null
}

function extreme(times: readonly (string | null)[], sign: 1 | -1): string | null {
  return times.reduce(
    (best, time) =>
      time !== null && (best === null || sign * (Date.parse(time) - Date.parse(best)) > 0) ? time : best,
    null,
  )
}
