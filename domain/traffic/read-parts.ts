import { PceError } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { countOf } from '../text/describe-numbers.js'
import { workInTurns } from '../text/pace-work.js'
import type { AskContext, FlowAsker, FlowQuestion, FlowsAsked } from './ask-flows.js'
import type { FlowRow } from './encode-flow.js'
import { createSeenRows, holdRows } from './hold-rows.js'
import { sampleTraffic } from './split-query.js'

/**
 * The units of time, in milliseconds, at whose boundaries windows are cut, largest first. Days come first, because PCEs
 * store traffic by day.
 */
const UNITS = [86_400_000, 3_600_000, 60_000, 1000] as const
/**
 * AIM: how much of the row limit a part of a query should use. LONGER: how many times longer a part of the window may
 * be than the part before it.
 */
const AIM = 0.85
const LONGER = 8
/** Number of rows in the sample that is used to find the best way to divide a query. */
const SAMPLE_ROWS = 10_000
/** Maximum number of days for which a PCE with default settings answers in one query (P25). */
export const LONGEST_QUERY_DAYS = 97
/** Maximum number of periods of LONGEST_QUERY_DAYS that one call reads. Together, they are more than 16 years. */
const MOST_PIECES = 64

/** A part of the query that has not been read yet: a window in milliseconds, both ends included. */
interface Slice {
  query: TrafficQuery
  start: number
  end: number
  /** The unit of time at whose boundaries the window is cut, as an index in UNITS. */
  unit: number
  /**
   * The length in milliseconds of the stretch to query next, which lies at the end of the window; null means the whole
   * window.
   */
  length: number | null
  /**
   * True if the query should be divided by filters rather than by time, because dividing by time would need more parts
   * than are still allowed.
   */
  byFilters: boolean
}

export interface PartsRead extends Omit<FlowsAsked, 'isFull'> {
  /** Number of queries whose rows make up the answer. */
  parts: number
  /** Number of these queries for which the PCE has more rows than it returned. */
  full: number
  /** Number of rows that occurred in more than one of these queries. */
  repeated: number
  /**
   * Number of rows that two queries may both have counted, because the rows' times cross a point at which the window
   * was cut.
   */
  overlapping: number
}

/** Returns true if the window of a query is longer than this number of days. */
export const isLonger = ({ start_date: start, end_date: end }: TrafficQuery, days: number): boolean =>
  Date.parse(end) - Date.parse(start) > days * UNITS[0]

/**
 * Cuts a window at midnights (UTC) into pieces of about equal length, each at most `longest` days long, in ascending
 * order of time.
 * @throws {ToolError} invalid_window if there would be more pieces than one call reads.
 */
function cutToQueries(start: number, end: number, longest: number): { start: number; end: number }[] {
  const [day] = UNITS
  const first = beginOf(start, day)
  const days = (beginOf(end, day) - first) / day + 1
  if (end - start <= longest * day) return [{ start, end }]
  const count = Math.ceil(days / longest)
  if (count > MOST_PIECES)
    throw new ToolError(
      'invalid_window',
      `The window has ${days} days; give a start_date at most ${MOST_PIECES * longest} days before its end.`,
      { argument: 'start_date', days, maximum_days: MOST_PIECES * longest },
    )
  const length = Math.ceil(days / count) * day
  return Array.from({ length: Math.ceil((days * day) / length) }, (_, at) => ({
    start: at === 0 ? start : first + at * length,
    end: Math.min(end, first + (at + 1) * length - 1),
  }))
}

/**
 * Runs a query that may cover more time, or have more rows, than the PCE returns for one query. A window of more than
 * `longestDays` is always cut. If `divides` is true, the query is divided further until every part is complete (D136):
 * first by time, then by filters that the PCE supports. The latest traffic is read first, and the rows of a part are
 * passed on as soon as the part is known to be complete. A row that occurs in several parts is passed on with each of
 * them, with its totals in that part, but is counted once (D137). All parts share the time limit of one query. The time
 * that `beforePart` takes does not count towards this limit.
 * @throws the errors of `ask`.
 */
export async function readInParts(
  ctx: AskContext,
  ask: FlowAsker,
  { query: whole, ...question }: FlowQuestion,
  take: (row: FlowRow) => void,
  {
    divides,
    longestDays,
    beforePart,
  }: { divides: boolean; longestDays: number; beforePart?: (() => Promise<void>) | undefined },
): Promise<PartsRead> {
  const { trafficMaxParts: most, trafficQueryTimeoutSeconds: seconds } = ctx.limits
  let startedAt = ctx.now()
  const held = holdRows()
  const seen = createSeenRows()
  const silent = new Set<string>()
  const result = { parts: 0, full: 0, repeated: 0, overlapping: 0, pceFlows: 0, unparseable: 0 }
  let rawObservations: number | null = 0
  let draftUnavailable: string | null = null
  /**
   * How many rows the PCE returns for one query. This starts as the row limit. If the PCE sends an incomplete answer
   * with fewer rows than the limit, it becomes the number of rows in that answer.
   */
  let capacity = whole.max_results
  /** True as long as this PCE has returned only rows within the requested window. */
  let isCutExact = true

  const wholeStart = Date.parse(whole.start_date)
  const left = cutToQueries(wholeStart, Date.parse(whole.end_date), longestDays).map((piece): Slice => ({
    query: whole,
    ...piece,
    unit: 0,
    length: null,
    byFilters: false,
  }))

  const askFor = async (query: TrafficQuery, from: number, to: number, more: Partial<FlowQuestion>) => {
    // Time that the caller spends on reading other data between two parts is excluded from the time limit of the
    // queries.
    const since = ctx.now()
    await beforePart?.()
    startedAt += ctx.now() - since
    const deadlineSeconds = seconds - (ctx.now() - startedAt) / 1000
    if (deadlineSeconds <= 0)
      throw new PceError(
        'traffic_query_timeout',
        `the traffic queries were given up after ${seconds} s and ${countOf(result.parts, 'part')}`,
      )
    let earliest = Infinity
    let earlier = 0
    held.clear()
    const window = { start_date: toTimestamp(from), end_date: toTimestamp(to) }
    const hold = (row: FlowRow, isWanted: boolean) => {
      held.add(row, isWanted)
      if (row.first < earliest) earliest = row.first
      if (row.first < from && isWanted) earlier += 1
    }
    // Rows that this server's own filters reject are stored as well. They are part of the PCE's row count, so repeated
    // rows must be recognised among them too.
    const drop = (row: FlowRow) => hold(row, false)
    const prefix = `Part ${result.parts + 1}, ${window.start_date} to ${window.end_date}: `
    const asked = await ask(
      { prefix, drop, ...question, ...more, query: { ...query, ...more.query, ...window }, deadlineSeconds },
      (row) => hold(row, true),
    )
    return { ...asked, isFull: asked.isFull || asked.announced !== null, earliest, earlier }
  }

  /**
   * Divides the stretch of a slice from `from` to the slice's end, because this stretch has too many rows. Returns the
   * slices to read instead, in reverse order of reading, or null if the stretch cannot be divided further.
   */
  const divide = async (slice: Slice, from: number, room: number): Promise<Slice[] | null> => {
    const { query, start, end, unit, length, byFilters } = slice
    const size = UNITS[unit]!
    const canCut = isCutExact && length === null && beginOf(end, size) > start
    if (canCut && !byFilters) return [{ ...slice, length: size }]
    if (isCutExact && length !== null && from < beginOf(end, size))
      return [{ ...slice, length: Math.max(Math.floor((end - from + 1) / 2 / size), 1) * size }]
    const sample = sampleTraffic()
    const sampled = { ...query, max_results: Math.min(SAMPLE_ROWS, query.max_results) }
    await askFor(query, start, end, { query: sampled, see: sample.add, draftDecisions: false })
    const queries = sample.divide(query, room)
    if (queries !== null)
      return queries.map((one) => ({ query: one, start, end, unit: 0, length: null, byFilters: false }))
    if (canCut) return [{ ...slice, length: size, byFilters: false }]
    const finer = UNITS.findIndex((one, at) => at > unit && beginOf(end, one) > start)
    return isCutExact && finer !== -1 ? [{ ...slice, unit: finer, length: UNITS[finer]! }] : null
  }

  for (let slice = left.pop(); slice !== undefined; slice = left.pop()) {
    ctx.signal.throwIfAborted()
    const { query, start, end, length } = slice
    const size = UNITS[slice.unit]!
    // The number of parts into which this slice may be divided while leaving at least one part for every other slice.
    const room = divides ? most - result.parts - left.length : 0
    const mayCut = room > 1 && isCutExact && length !== null
    const from = mayCut ? Math.max(start, beginOf(end, size) - length + size) : start
    let asked = await askFor(query, from, end, { skipFull: room > 1 })
    const reachesOver = from > start && asked.earliest < from
    if (reachesOver) isCutExact = false
    if (room > 1 && (asked.isFull || reachesOver)) {
      if (asked.pceFlows > 0 && asked.isFull) capacity = Math.min(capacity, asked.pceFlows)
      const instead = reachesOver ? [{ ...slice, length: null }] : await divide(slice, from, room)
      if (instead !== null) {
        left.push(...instead)
        continue
      }
      asked = await askFor(query, from, end, {})
    }

    result.parts += 1
    if (asked.isFull) result.full += 1
    if (from > wholeStart) result.overlapping += asked.earlier
    result.pceFlows += asked.pceFlows
    result.unparseable += asked.unparseable
    for (const region of asked.silentRegions) silent.add(region)
    draftUnavailable ??= asked.draftUnavailable
    rawObservations =
      rawObservations === null || asked.rawObservations === null ? null : rawObservations + asked.rawObservations
    // A query that is answered in one part cannot contain repeated rows, so its rows need not be remembered.
    const isAlone = result.parts === 1 && left.length === 0 && from === start
    const handOver = (row: FlowRow, isWanted: boolean) => {
      if (!isAlone) seen.mark(row, result.parts)
      if (row.count === 0) result.repeated += 1
      if (isWanted) take(row)
    }
    await workInTurns(held.replay(handOver), ctx.signal)
    if (from > start) {
      const fitting = Math.floor(((end - from + 1) * AIM * capacity) / Math.max(asked.pceFlows, 1) / size)
      const longest = Math.ceil((end - from + 1) / size) * LONGER
      const next = Math.min(Math.max(fitting, 1), longest) * size
      const share = (most - result.parts) / (left.length + 1)
      const byFilters = slice.unit === 0 && (from - start) / next > share
      left.push({ ...slice, end: from - 1, length: byFilters ? null : next, byFilters })
    }
  }
  return { ...result, silentRegions: [...silent], announced: null, rawObservations, draftUnavailable }
}

/** Returns the start (UTC) of the day, hour, minute or second that contains an instant. */
const beginOf = (instant: number, unit: number): number => Math.floor(instant / unit) * unit

const toTimestamp = (instant: number): string => new Date(instant).toISOString().replace('.000Z', 'Z')
