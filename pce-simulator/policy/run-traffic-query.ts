import type { Label } from '../../schemas/pce/label.js'
import type { TrafficFlow, TrafficQuery } from '../../schemas/pce/traffic.js'
import type { Workload } from '../../schemas/pce/workload.js'
import type { Conversation, PolicyView } from '../model.js'
import {
  boundaryDecision,
  clientType,
  createNodeDescriber,
  describeFlow,
  type Row,
  type RowForm,
} from './describe-flow.js'
import { createEvaluator } from './evaluate.js'
import { DEFAULT_REALITY } from '../options.js'
import type { Verdict } from './judge-end.js'
import { foldWindow, type Occurrences } from './fold-window.js'
import { createResolver, type Resolved } from './resolve-observations.js'
import { compileFilters } from './select-flows.js'

export interface TrafficState extends RowForm {
  conversations: Iterable<Conversation>
  /** The workloads of the estate, by href. */
  workloads: ReadonlyMap<string, Workload>
  /** The labels of the estate, by href. */
  labels: ReadonlyMap<string, Label>
  active: PolicyView
  /** The draft policy. If it is given, rows contain draft_policy_decision and rules, as after update_rules. */
  draft?: PolicyView
  /** The range of rows that contain draft decisions; by default, all rows do. */
  draftRows?: { offset: number; limit: number }
  /** The current time in milliseconds since the epoch. Traffic after this time has not been observed yet. */
  now: number
  /** Maximum number of rows, even if the query requests more; undefined for no limit. */
  rowLimit?: number
  /** True if rows are aggregated before they are limited to the window (P85). */
  addsUpFirst?: boolean
}

/** The body of an asynchronous traffic query. Some clients omit the last two fields. */
export type TrafficQueryBody = TrafficQuery & {
  query_name?: string
  boundary_decisions?: readonly string[]
  data_sources?: { include: readonly string[]; exclude: readonly string[] }
}

export interface TrafficResult {
  /**
   * The rows of the result, at most `max_results`, in the order of the estate's conversations. Equal sources or
   * destinations in several rows are the same object.
   */
  flows: TrafficFlow[]
  /** The number of observations before they are aggregated into rows, whatever `max_results` is. */
  matchesCount: number
}

/** A result whose rows are generated one by one, so that up to 200,000 rows are never in memory together. */
export interface TrafficRows {
  rows: Iterable<TrafficFlow>
  /** The number of rows that the query would return without the PCE's own row limit. */
  rowsCount: number
  matchesCount: number
}

/**
 * Maximum number of times that a VEN reports a conversation in a day: once an hour. A conversation with fewer
 * connections than this is reported once for each connection.
 */
const REPORTS_PER_DAY = 24

/**
 * Answers a traffic query. Observations inside the window are filtered, evaluated against the current active policy
 * (unless the conversation has a recorded decision), and aggregated: those with equal source, destination, service,
 * process, user, direction and decision make one row with summed connections and bytes (P25). The caller must have
 * validated the dates; a window with an invalid date contains no traffic.
 */
export function runTrafficQuery(query: TrafficQueryBody, state: TrafficState): TrafficResult {
  const { rows, matchesCount } = collectTraffic(query, state)
  return { flows: [...rows], matchesCount }
}

/** Answers a traffic query without generating its rows yet. `rows` can be iterated more than once. */
export function collectTraffic(query: TrafficQueryBody, state: TrafficState): TrafficRows {
  const start = Date.parse(query.start_date)
  const end = Math.min(Date.parse(query.end_date), state.now)
  const resolve = createResolver(state.workloads)
  const selects = compileFilters(query, state.active)
  const byDefault = (state.reality ?? DEFAULT_REALITY) === 'core-25.2' ? 'potentially_blocked' : 'allowed'
  const evaluatorOf = (view: PolicyView) => createEvaluator(view, state.workloads, state.labels, byDefault)
  const judge = evaluatorOf(state.active)
  const wanted = compileOutcome(query)
  const rows = new Map<string, Row>()
  const { rowLimit = Infinity } = state
  // No more rows are created than the query requests.
  const most = query.max_results
  let matchesCount = 0

  for (const conversation of state.conversations) {
    const { recorded } = conversation
    const inWindow = foldWindow(conversation, start, end)
    if (inWindow === null) continue
    const seen = state.addsUpFirst === true ? (foldWindow(conversation, 0, state.now) ?? inWindow) : inWindow
    const resolved = resolve(conversation)
    if (!selects(conversation, resolved.src, resolved.dst)) continue
    const verdict = { ...judge(conversation, resolved), ...(recorded !== undefined && { decision: recorded }) }
    if (!wanted(verdict, clientType(conversation, resolved))) continue
    matchesCount += seen.count * Math.min(conversation.connectionsPerDay, REPORTS_PER_DAY)
    // A decision is part of the row's key only if it was recorded with the conversation. Any other decision follows
    // from the other parts of the key.
    const key = `${resolved.src.id} ${resolved.dst.id} ${resolved.row} ${recorded ?? ''}`
    const row = rows.get(key)
    if (row === undefined) {
      if (rows.size < most) rows.set(key, startRow(conversation, resolved, verdict, seen))
    } else addToRow(row, conversation, seen)
  }

  const node = createNodeDescriber(state.active, state.labels, state.reality)
  const judgeDraft = state.draft === undefined ? null : evaluatorOf(state.draft)
  const { offset, limit } = state.draftRows ?? { offset: 0, limit: Infinity }
  const kept = [...rows.values()].slice(0, rowLimit)
  const describe = (row: Row, index: number) => {
    const judged = index >= offset && index < offset + limit ? judgeDraft?.(row.conversation, row.resolved) : null
    return describeFlow(row, node, judged ?? null, state)
  }
  return { rows: { [Symbol.iterator]: () => mapLazily(kept, describe) }, rowsCount: rows.size, matchesCount }
}

function* mapLazily<T, U>(items: readonly T[], map: (item: T, index: number) => U): Generator<U> {
  for (const [index, item] of items.entries()) yield map(item, index)
}

function compileOutcome(query: TrafficQueryBody): (verdict: Verdict, source: string) => boolean {
  const decisions = new Set<string>(query.policy_decisions)
  const boundaries = new Set(query.boundary_decisions)
  const { include = [], exclude = [] } = query.data_sources ?? {}
  return (verdict, source) =>
    (decisions.size === 0 || decisions.has(verdict.decision)) &&
    (boundaries.size === 0 || boundaries.has(boundaryDecision(verdict) ?? '')) &&
    (include.length === 0 || include.includes(source)) &&
    !exclude.includes(source)
}

const startRow = (
  conversation: Conversation,
  resolved: Resolved,
  verdict: Verdict,
  { count, first, last }: Occurrences,
): Row => ({
  conversation,
  resolved,
  verdict,
  connections: count * conversation.connectionsPerDay,
  bytesIn: count * conversation.bytesIn,
  bytesOut: count * conversation.bytesOut,
  first,
  last,
  state: conversation.state,
})

function addToRow(row: Row, conversation: Conversation, { count, first, last }: Occurrences): void {
  row.connections += count * conversation.connectionsPerDay
  row.bytesIn += count * conversation.bytesIn
  row.bytesOut += count * conversation.bytesOut
  if (last > row.last) row.state = conversation.state
  row.first = Math.min(row.first, first)
  row.last = Math.max(row.last, last)
}
