import { Type, type Static } from '@sinclair/typebox'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { MAX_TRAFFIC_ROWS, type PolicyDecision } from '../../schemas/pce/words.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { countOf } from '../text/describe-numbers.js'
import { createFlowAsker, type AskContext, type FlowsAsked } from './ask-flows.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { createMeasures, type Measures } from './group-tables.js'
import { readInParts } from './read-parts.js'
import type { TrafficFilters } from './resolve-filters.js'
import type { TrafficWindow } from './traffic-window.js'

/** What to ask the PCE for. */
export interface FlowRequest {
  /** Name of the PCE's job. */
  name: string
  window: TrafficWindow
  /** Absent: all traffic. */
  filters?: Pick<TrafficFilters, 'sources' | 'destinations'> & Partial<TrafficFilters>
  services?: TrafficQuery['services']
  /** Absent or empty: every decision. */
  decisions?: readonly PolicyDecision[] | undefined
  /** Whether IP list filters leave out the addresses of workloads. Default true. */
  excludeWorkloadsFromIpListQuery?: boolean | undefined
  /** Rows the PCE may return; default and maximum 200,000. */
  maxResults?: number | undefined
  /** Also ask what the draft policy would decide (`draftDecision` and `rules` of rows). Takes some 10 s longer. */
  draftDecisions?: boolean
}

/** The outcome of a whole query, or of its parts: the basis of every statement about completeness. */
export interface FlowsRead {
  window: TrafficWindow
  /** Row limit each query was sent with. */
  rowLimit: number
  /** Queries whose rows make the answer, where it was to be complete (D136); otherwise null. */
  parts: number | null
  /** Rows the PCE returned, unreadable ones included; a row of several parts once. */
  pceFlows: number
  /** Rows that were analysed: readable, and kept by the filters applied here. */
  rows: number
  unparseable: number
  /** Every count is a lower bound: the row limit was reached, or one of the two below applies. */
  truncated: boolean
  /** Queries among these that reached it and were not divided any further. */
  full: number
  /** Regions of a supercluster that did not answer, by the name of their PCE. */
  silentRegions: readonly string[]
  /** How many rows the PCE announced, if more than it sent; otherwise null. Of parts: they count as full. */
  announced: number | null
  /** Observations before the PCE aggregated them into rows; null when it did not say. */
  rawObservations: number | null
  /** Of all analysed rows. */
  totals: Measures
  /** Filters that the PCE cannot apply and that were applied to its rows here. */
  appliedToRows: readonly string[]
  /** Why rows have no draft decisions although they were requested; otherwise null. */
  draftUnavailable: string | null
}

const EVERYTHING = { include: [[]], exclude: [] }

/** Reads flows row by row; the rows themselves are never held. */
export interface FlowReader {
  (request: FlowRequest, take: (row: FlowRow) => void): Promise<FlowsRead>
}

/**
 * A reader for the queries of one call. Progress is reported at the start and after every poll and batch, rising by one each time
 * across its queries, because how long the PCE will take is unknown. Cancelling the call stops the reading and deletes the PCE's
 * query. The reader throws what the client's streamTrafficFlows throws.
 *
 * @param complete divide a query that reaches its row limit until every part is whole (D136).
 */
export function createFlowReader(ctx: AskContext, encoder: FlowEncoder, complete = false): FlowReader {
  const ask = createFlowAsker(ctx, encoder)
  return async (request, take) => {
    const { filters, window } = request
    const rowLimit = request.maxResults ?? MAX_TRAFFIC_ROWS
    const sums = createMeasures()
    let rows = 0
    const count = (row: FlowRow) => {
      rows += row.count
      sums.add(0, row)
      take(row)
    }
    const { name, draftDecisions } = request
    const asked = { name, query: toQuery(request, rowLimit), keeps: filters?.keeps, draftDecisions }
    const { parts, full, repeated, ...read } = complete
      ? await readInParts(ctx, ask, asked, count)
      : readWhole(await ask(asked, count))
    return {
      window,
      rowLimit,
      parts,
      full,
      rows,
      pceFlows: read.pceFlows - repeated,
      unparseable: read.unparseable,
      truncated: full > 0 || read.silentRegions.length > 0 || read.announced !== null,
      silentRegions: read.silentRegions,
      announced: read.announced,
      rawObservations: read.rawObservations,
      totals: sums.of(0).measures,
      appliedToRows: filters?.appliedToRows ?? [],
      draftUnavailable: read.draftUnavailable,
    }
  }
}

const readWhole = (asked: FlowsAsked) => ({ ...asked, parts: null, full: asked.isFull ? 1 : 0, repeated: 0 })

function toQuery(request: FlowRequest, rowLimit: number): TrafficQuery {
  const { window, filters, services, decisions } = request
  return {
    start_date: window.start,
    end_date: window.end,
    sources: filters?.sources ?? EVERYTHING,
    destinations: filters?.destinations ?? EVERYTHING,
    services: services ?? { include: [], exclude: [] },
    sources_destinations_query_op: 'and',
    policy_decisions: [...(decisions ?? [])],
    exclude_workloads_from_ip_list_query: request.excludeWorkloadsFromIpListQuery ?? true,
    max_results: rowLimit,
  }
}

/** How complete an answer about traffic is. Every tool that runs a traffic query answers this (D4). */
export const Reading = {
  window: TrafficCounts.window,
  flows_truncated: TrafficCounts.flows_truncated,
  analysed: Type.Object(
    {
      pce_flows: TrafficCounts.pce_flows,
      rows: TrafficCounts.rows,
      unparseable: TrafficCounts.unparseable,
      row_limit: TrafficCounts.row_limit,
      parts: TrafficCounts.parts,
      raw_observations: TrafficCounts.raw_observations,
      data_span: TrafficCounts.data_span,
      note: TrafficCounts.coverage_note,
    },
    { description: 'Basis of the answer; several queries together' },
  ),
}
export type Reading = { [K in keyof typeof Reading]: Static<(typeof Reading)[K]> }

/** The completeness of one query, or of several over the same window taken together. */
export function describeReading(...readings: readonly [FlowsRead, ...FlowsRead[]]): Reading {
  const [first] = readings
  const sum = (field: 'pceFlows' | 'rows' | 'unparseable') => readings.reduce((total, read) => total + read[field], 0)
  const parts = readings.map((read) => read.parts)
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
      ...(parts.every((count) => count !== null) && { parts: parts.reduce((total, count) => total + count, 0) }),
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
    describeLimit(read),
    silentRegions.length > 0
      ? `${silentRegions.join(', ')} did not answer: all counts are lower bounds, without the traffic there.`
      : '',
    announced === null
      ? ''
      : `The PCE counted ${announced} rows and sent ${read.pceFlows}: all counts are lower bounds; complete: true divides the query.`,
    unparseable > 0 ? `${unparseable} rows could not be read and are not counted.` : '',
    appliedToRows.length > 0
      ? `The PCE cannot filter by network, so these filters were applied to its rows here: ${appliedToRows.join(', ')}. pce_flows counts the rows before that.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

function describeLimit({ full, parts }: FlowsRead): string {
  if (full === 0) return ''
  return parts === null
    ? 'The row limit was reached, so all counts are lower bounds; complete: true reads the rest, or narrow the window or the filters.'
    : `The row limit was reached in ${full} of ${countOf(parts, 'part')}, so all counts are lower bounds; narrow the window or the filters.`
}

/**
 * The first and last time of all rows when they reach outside the window, otherwise null. The PCE aggregates before it cuts to
 * the window.
 */
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
