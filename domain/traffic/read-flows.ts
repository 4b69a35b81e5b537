import { Type, type Static } from '@sinclair/typebox'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { MAX_TRAFFIC_ROWS, type PolicyDecision } from '../../schemas/pce/words.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import type { ToolContext } from '../call.js'
import { isReadableFlow, type FlowEncoder, type FlowRow } from './encode-flow.js'
import { createMeasures, type Measures } from './group-tables.js'
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

/** The outcome of a whole query: the basis of every statement about completeness. */
export interface FlowsRead {
  window: TrafficWindow
  /** Row limit the query was sent with. */
  rowLimit: number
  /** Rows the PCE returned, unreadable ones included. */
  pceFlows: number
  /** Rows that were analysed: readable, and kept by the filters applied here. */
  rows: number
  unparseable: number
  /** Every count is a lower bound: the row limit was reached, or one of the two below applies. */
  truncated: boolean
  /** Regions of a supercluster that did not answer, by the name of their PCE. */
  silentRegions: readonly string[]
  /** How many rows the PCE announced, if more than it sent; otherwise null. */
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
 */
export function createFlowReader(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits'>,
  encoder: FlowEncoder,
): FlowReader {
  let step = 0
  return async (request, take) => {
    const { filters, window } = request
    const rowLimit = request.maxResults ?? MAX_TRAFFIC_ROWS
    const sums = createMeasures()
    let rows = 0
    let misshapen = 0
    ctx.progress({ progress: step++, message: 'Starting the traffic query.' })
    const outcome = await ctx.pce.streamTrafficFlows(request.name, toQuery(request, rowLimit), {
      signal: ctx.signal,
      deadlineSeconds: ctx.limits.trafficQueryTimeoutSeconds,
      draftDecisions: request.draftDecisions ?? false,
      onFlows(flows) {
        for (const flow of flows) {
          if (!isReadableFlow(flow)) {
            misshapen++
            continue
          }
          if (filters?.keeps?.(flow.src.ip, flow.dst.ip) === false) continue
          const row = encoder.encode(flow)
          rows++
          sums.add(0, row)
          take(row)
        }
      },
      onProgress: ({ phase, status, elapsedMs, flows }) =>
        ctx.progress({
          progress: step++,
          message: `Traffic query ${status ?? phase} after ${Math.round(elapsedMs / 1000)} s${flows > 0 ? `, ${flows} rows read` : ''}.`,
        }),
    })
    const pceFlows = outcome.flows + outcome.unparseable
    const { regions, flows_count: count } = outcome.query
    const silentRegions = (regions ?? []).flatMap((region) => (region.responded ? [] : [region.pce_fqdn]))
    const announced = typeof count === 'number' && count > pceFlows ? count : null
    return {
      window,
      rowLimit,
      pceFlows,
      rows,
      unparseable: outcome.unparseable + misshapen,
      truncated: pceFlows >= rowLimit || silentRegions.length > 0 || announced !== null,
      silentRegions,
      announced,
      rawObservations: outcome.matchesCount,
      totals: sums.of(0).measures,
      appliedToRows: filters?.appliedToRows ?? [],
      draftUnavailable: outcome.draftUnavailable ?? null,
    }
  }
}

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
      ? `${silentRegions.join(', ')} did not answer: all counts are lower bounds, without the traffic there.`
      : '',
    announced === null
      ? ''
      : `The PCE counted ${announced} rows and sent ${read.pceFlows}: all counts are lower bounds.`,
    unparseable > 0 ? `${unparseable} rows could not be read and are not counted.` : '',
    appliedToRows.length > 0
      ? `The PCE cannot filter by network, so these filters were applied to its rows here: ${appliedToRows.join(', ')}. pce_flows counts the rows before that.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
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
