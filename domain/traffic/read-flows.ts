import { PceApiError, PceError } from '../../pce-client/index.js'
import { Type, type Static } from '@sinclair/typebox'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import type { PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { EXTERNAL_NETWORK, MAX_TRAFFIC_ROWS } from '../../schemas/pce/words.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { countOf } from '../text/describe-numbers.js'
import { workInTurns } from '../text/pace-work.js'
import { createFlowAsker, type AskContext, type FlowsAsked } from './ask-flows.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'
import { createMeasures, type Measures } from './group-tables.js'
import { describeReach, watchReach, type ReachingOut } from './outside-window.js'
import { countReports, mergeReports } from './pair-reports.js'
import { takeFromOutside, type SeenFromOutside } from './seen-from-outside.js'
import { isLonger, LONGEST_QUERY_DAYS, readInParts } from './read-parts.js'
import type { TrafficFilters } from './resolve-filters.js'
import type { TrafficWindow } from './traffic-window.js'
import { waitForEnds } from './wait-for-ends.js'

/** Which traffic to read from the PCE, and what to do with each row. */
export interface FlowRequest {
  /** The name under which the PCE lists the query. */
  name: string
  window: TrafficWindow
  /** The filters; if absent, all traffic is read. */
  filters?: Pick<TrafficFilters, 'sources' | 'destinations'> & Partial<TrafficFilters>
  services?: TrafficQuery['services']
  /** The decisions to read; if absent or empty, rows with any decision are read. */
  decisions?: readonly PolicyDecision[] | undefined
  /** Whether filters by IP list leave out the addresses of workloads; the default is true. */
  excludeWorkloadsFromIpListQuery?: boolean | undefined
  /** Maximum number of rows that the PCE may return; 200,000 is both the default and the upper limit. */
  maxResults?: number | undefined
  /**
   * If true, the decisions of the draft policy are also requested (`draftDecision` and `rules` of rows). This takes
   * about 10 s longer.
   */
  draftDecisions?: boolean
  /** The caller's function that replaces rows. It is applied to each row before the row is counted. */
  replace?: RowReplacement
  /**
   * Called before the first row is passed on, with the sources and destinations of all rows, or with no argument if
   * there are too many rows to hold. No row is passed on before this call has finished.
   */
  prepare?: (ends?: Iterable<FlowEnd>) => Promise<void>
}

/** A way to replace each row from the PCE with another row, for example with a row that has a different decision. */
export interface RowReplacement {
  /** Returns the row to count and pass on instead of the given one, or null to drop the row. */
  row: (row: FlowRow) => FlowRow | null
  /** The names of those filters of the caller that `row` applies by dropping rows. */
  filters: readonly string[]
}

/**
 * The outcome of a whole query, even if it was read in parts. Every statement about completeness is based on this
 * outcome.
 */
export interface FlowsRead {
  window: TrafficWindow
  /** The row limit that was sent with each query. */
  rowLimit: number
  /**
   * The number of queries whose rows make up the answer, if the caller requested a complete answer (D136) or the window
   * is longer than one query may cover; otherwise null.
   */
  parts: number | null
  /** True if every query that reached the row limit was divided into smaller ones. */
  divides: boolean
  /**
   * Number of rows that two of the queries may both have counted, because their times cross the boundary between the
   * queries' windows (P85).
   */
  overlapping: number
  /**
   * Number of rows that the PCE returned, including unreadable ones. A row that occurred in several parts counts once.
   */
  pceFlows: number
  /** Number of rows that were analysed: readable, and accepted by the filters that this server applies. */
  rows: number
  unparseable: number
  /**
   * True if all counts are only lower bounds, because a row limit was reached, a region did not answer, or the PCE sent
   * fewer rows than it announced.
   */
  truncated: boolean
  /** Number of queries that reached the row limit and were not divided further. */
  full: number
  /** The regions of a supercluster that did not answer, by the FQDN of their PCE. */
  silentRegions: readonly string[]
  /**
   * The number of rows that the PCE announced, if it sent fewer; otherwise null. For a query in parts it is always
   * null, because a part that has fewer rows than announced is treated like a part that reached the row limit.
   */
  announced: number | null
  /** The number of raw observations that the PCE aggregated into rows; null if it did not say. */
  rawObservations: number | null
  /**
   * `reports` if rows are passed on as the PCE sent them; `conversations` if each conversation is passed on only once.
   */
  counts: 'reports' | 'conversations'
  /** Number of connections that the rows contain twice, because both ends of a conversation reported them. */
  repeatedConnections: number
  /** The totals of all analysed rows. */
  totals: Measures
  /** The filters that the PCE cannot apply and that this server therefore applied to the rows. */
  appliedToRows: readonly string[]
  seenFromOutside: SeenFromOutside
  /** The numbers of analysed rows, and of their connections, whose times extend beyond the window. */
  reachingOut: ReachingOut
  /** The reason why rows have no draft decisions although they were requested; otherwise null. */
  draftUnavailable: string | null
}

const EVERYTHING = { include: [[]], exclude: [] }

/** A function that reads flows and passes each row to `take`. */
export interface FlowReader {
  /** @param eachReport receives every row as the PCE sent it, before conversations are merged. */
  (request: FlowRequest, take: (row: FlowRow) => void, eachReport?: (row: FlowRow) => void): Promise<FlowsRead>
}

/**
 * Creates the reader for the queries of one call whose answer shows what the PCE recorded. A conversation that both
 * ends reported is passed on as two rows, and the reader counts the connections that occur twice. Progress is reported
 * at the start and after every poll and batch. The number in a progress report increases by one each time, because it
 * is not known how long the PCE will take. Cancelling the call stops reading and deletes the query on the PCE. The
 * reader throws the errors of the PCE client's streamTrafficFlows.
 * @param complete if true, a query that reaches its row limit is divided until every part is complete (D136).
 */
export const createFlowReader = (ctx: AskContext, encoder: FlowEncoder, complete = false): FlowReader =>
  createReader(ctx, encoder, complete, 'reports')

/**
 * Creates a reader like `createFlowReader` for answers that evaluate traffic: a conversation that both ends reported is
 * passed on once, with the greater number of connections. If the decisions of the two ends differ, the stricter
 * decision counts first.
 */
export const createConversationReader = (ctx: AskContext, encoder: FlowEncoder, complete = false): FlowReader =>
  createReader(ctx, encoder, complete, 'conversations')

function createReader(
  ctx: AskContext,
  encoder: FlowEncoder,
  complete: boolean,
  counts: FlowsRead['counts'],
): FlowReader {
  const ask = createFlowAsker(ctx, encoder)
  const sinkFor = { reports: countReports, conversations: mergeReports }[counts]
  return async (request, take, eachReport) => {
    const { filters, window, replace, prepare } = request
    const rowLimit = request.maxResults ?? MAX_TRAFFIC_ROWS
    const sums = createMeasures()
    const sink = sinkFor(encoder, take)
    const reach = watchReach(window)
    let received = 0
    let rows = 0
    const add = (row: FlowRow) => {
      rows += row.count
      sums.add(0, row)
      reach.see(row)
    }
    // A row may have to wait until its source and destination have been looked up. It is therefore replaced only when
    // it is about to be passed on.
    const pass = (row: FlowRow) => {
      const counted = replace === undefined ? row : replace.row(row)
      if (counted === null) return
      if (replace !== undefined) add(counted)
      sink.add(counted)
    }
    const waiting = prepare && waitForEnds(encoder, { most: rowLimit, prepare, pass, signal: ctx.signal })
    const outside = takeFromOutside(ctx, encoder, waiting?.add ?? pass)
    const count = (row: FlowRow) => {
      received += 1
      if (replace === undefined) add(row)
      eachReport?.(row)
      outside.add(row)
    }
    const { name, draftDecisions } = request
    const asked = { name, query: toQuery(request, rowLimit), keeps: filters?.keeps, draftDecisions }
    const readAtMost = async (longestDays: number) =>
      complete || isLonger(asked.query, longestDays)
        ? readInParts(ctx, ask, asked, count, { divides: complete, longestDays, beforePart: waiting?.beforePart })
        : readWhole(await ask(asked, count))
    const { parts, full, repeated, overlapping, ...read } = await readAtMost(LONGEST_QUERY_DAYS).catch(
      async (error: unknown) => {
        // A PCE that accepts only shorter windows refuses the query before it sends any rows.
        if (!(error instanceof PceApiError) || error.status !== 406 || received > 0) throw error
        const days = await readLongestDays(ctx)
        if (days === null || days >= LONGEST_QUERY_DAYS || !isLonger(asked.query, days)) throw error
        return readAtMost(days)
      },
    )
    const seenFromOutside = await outside.finish()
    await waiting?.finish()
    await workInTurns(sink.finish(), ctx.signal)
    return {
      window,
      rowLimit,
      parts,
      divides: complete,
      overlapping,
      full,
      rows,
      pceFlows: read.pceFlows - repeated,
      unparseable: read.unparseable,
      truncated: full > 0 || read.silentRegions.length > 0 || read.announced !== null,
      silentRegions: read.silentRegions,
      announced: read.announced,
      rawObservations: read.rawObservations,
      counts,
      repeatedConnections: sink.repeated(),
      totals: sums.of(0).measures,
      appliedToRows: [...(filters?.appliedToRows ?? []), ...(replace?.filters ?? [])],
      draftUnavailable: read.draftUnavailable,
      seenFromOutside,
      reachingOut: reach.found,
    }
  }
}

/**
 * Returns the maximum number of days that one traffic query may cover according to the settings of this PCE (P25); null
 * if the settings do not say so.
 */
async function readLongestDays({ pce, signal }: AskContext): Promise<number | null> {
  const settings = await pce.orgSettings.get('draft', null, { signal }).catch((error: unknown) => {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return []
  })
  const days = settings[0]?.max_explorer_query_timespan_days
  return typeof days === 'number' && days >= 1 ? Math.floor(days) : null
}

const readWhole = (asked: FlowsAsked) => ({
  ...asked,
  parts: null,
  full: asked.isFull ? 1 : 0,
  repeated: 0,
  overlapping: 0,
})

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

/**
 * The output schema for the completeness of an answer about traffic. The output of every tool that runs a traffic query
 * includes it (D4).
 */
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

/** Describes how complete the answer to one query is, or the combined answer to several queries for the same window. */
export function describeReading(...readings: readonly [FlowsRead, ...FlowsRead[]]): Reading {
  const [first] = readings
  const sum = (field: 'pceFlows' | 'rows' | 'unparseable') => readings.reduce((total, read) => total + read[field], 0)
  const parts = readings.map((read) => read.parts)
  const raw = readings.map(({ rawObservations }) => rawObservations)
  const note = coverageNote(...readings)
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

/**
 * Returns sentences that say what the counts of one or several queries for the same window include and leave out.
 * Returns an empty string if the counts are complete.
 */
export function coverageNote(...readings: readonly FlowsRead[]): string {
  return [...new Set(readings.map(noteOne)), describeReach(readings.map(({ reachingOut }) => reachingOut))]
    .filter(Boolean)
    .join(' ')
}

function noteOne(read: FlowsRead): string {
  const { unparseable, appliedToRows, silentRegions, announced, seenFromOutside } = read
  return [
    describeLimit(read),
    describeOverlap(read),
    silentRegions.length > 0
      ? `${silentRegions.join(', ')} did not answer: all counts are lower bounds, without the traffic there.`
      : '',
    announced === null
      ? ''
      : `The PCE counted ${announced} rows and sent ${read.pceFlows}: all counts are lower bounds; complete: true divides the query.`,
    unparseable > 0 ? `${unparseable} rows could not be read and are not counted.` : '',
    appliedToRows.length > 0
      ? `The PCE cannot apply these filters, so they were applied to its rows here: ${appliedToRows.join(', ')}. pce_flows counts the rows before that.`
      : '',
    describeOutside(seenFromOutside),
    describeRepetition(read),
  ]
    .filter(Boolean)
    .join(' ')
}

function describeOutside({ rows, unread }: SeenFromOutside): string {
  if (rows === 0) return ''
  const those = `${countOf(rows, 'row')} reported off the corporate network (${EXTERNAL_NETWORK})`
  return unread === null
    ? `${those}: the address is a managed workload's, but may be another machine's there; not counted as external.`
    : `${those}: addresses there may be those of managed workloads, which could not be read: ${unread}`
}

/**
 * Returns a sentence that says whether the reported sums of connections count conversations once or twice if both ends
 * reported them. Returns an empty string if no conversation was reported by both ends.
 */
function describeRepetition({ counts, repeatedConnections: repeated }: FlowsRead): string {
  if (repeated === 0) return ''
  return counts === 'reports'
    ? `Both ends report: ${countOf(repeated, 'connection')} ${repeated === 1 ? 'is' : 'are'} in the sums twice, once for each end (flow_direction tells which).`
    : 'Conversations that both ends reported count once, with the greater number of connections.'
}

function describeLimit({ full, parts, divides }: FlowsRead): string {
  if (full === 0) return ''
  return !divides
    ? 'The row limit was reached, so all counts are lower bounds; complete: true reads the rest, or narrow the window or the filters.'
    : `The row limit was reached in ${full} of ${countOf(parts ?? 1, 'part')}, so all counts are lower bounds; narrow the window or the filters.`
}

function describeOverlap({ overlapping }: FlowsRead): string {
  return overlapping === 0
    ? ''
    : `${countOf(overlapping, 'row')} reached over a time at which the window was cut, because a PCE answers for a limited time at once: two queries may have counted ${overlapping === 1 ? 'it' : 'them'}.`
}

/**
 * Returns the earliest and the latest time in all rows if at least one of them is outside the window, otherwise null.
 * Times outside the window occur because the PCE aggregates flows before it selects those in the window.
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
