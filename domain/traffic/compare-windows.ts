import { POLICY_DECISIONS, type PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { compareValues } from '../text/compare-texts.js'
import type { Steps } from '../text/pace-work.js'
import { areEquallyLong, type ComparedWindows } from './choose-windows.js'
import type { Columns } from './dimensions.js'
import { DECISIONS_BY_CONCERN } from './decisions-by-concern.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'
import { createTupleTable, pickTop, toTime } from './group-tables.js'
import { growingBlocks, placeInBlock } from './growing-blocks.js'

/** The four kinds of difference between two windows, in the order in which answers list them. */
export const DIFFERENCES = ['new', 'gone', 'risen', 'fallen'] as const
export type Difference = (typeof DIFFERENCES)[number]

/**
 * What happened to a pair (the same traffic in both windows): one of the differences, `same`, or `not_known` if the
 * PCE's data about a window is not exact enough to decide.
 */
const KINDS = [...DIFFERENCES, 'same', 'not_known'] as const
export type Kind = (typeof KINDS)[number]

/** The reasons why a difference may come from the data rather than from the traffic itself. */
export const DOUBTS = ['cut', 'agents', 'agents_unknown', 'idle', 'rare'] as const
export type Doubt = (typeof DOUBTS)[number]

export type WindowName = 'before' | 'now'

/**
 * A pair: one combination of values in the compared columns (by default source, destination, port and protocol), with
 * its number of connections in each of the two windows.
 */
export interface ComparedPair {
  keys: Record<string, string | number | null>
  /** The policy decisions on the pair's traffic, strictest first. */
  policy: readonly PolicyDecision[]
  before: number
  now: number
  /** When the pair was first seen in the present window; null if it was not seen there or the time is not known. */
  firstNow: string | null
  /** When the pair was last seen in the earlier window; null if it was not seen there or the time is not known. */
  lastBefore: string | null
  doubts: readonly Doubt[]
}

export interface Comparison {
  /** The number of pairs of each kind. */
  totals: Record<Kind, number>
  /** For each kind of difference, the number of pairs by the strictest policy decision on their traffic. */
  byPolicy: Record<Difference, Partial<Record<PolicyDecision, number>>>
  /** For each doubt, the number of pairs whose difference is subject to it. */
  doubts: Partial<Record<Doubt, number>>
  /**
   * For each kind of difference, the pairs to show: those with the strictest decision first, then those that changed
   * most.
   */
  pairs: Record<Difference, ComparedPair[]>
  /** For each window, the number of connections in all rows that lie inside the window at least in part. */
  connections: Record<WindowName, number>
  /** Number of rows whose times are entirely outside their window. They are not counted in any pair. */
  outside: number
}

/** What a comparison needs in addition to the rows. */
export interface ComparisonSource {
  encoder: FlowEncoder
  columns: Columns
  windows: ComparedWindows
  /**
   * Returns whether the agent at an end could report traffic during the whole of the given window; null if that is not
   * known. It is called only for ends that have an agent.
   */
  reportedIn: (end: FlowEnd, window: WindowName) => boolean | null
  /** Returns true if the agent at an end reports only some of its traffic. */
  isIdle: (end: FlowEnd) => boolean
}

/** A pair counts as risen (or fallen) only if its connections per hour grew (or shrank) at least by this factor. */
export const LEAST_FACTOR = 2

/**
 * A pair counts as risen or fallen only if its number of connections, scaled to the shorter window, differs at least by
 * this much.
 */
export const LEAST_CHANGE = 10

/**
 * If a pair is missing in the shorter window, its absence means something only if at least this many connections were
 * to be expected there. With fewer, it would be missing by chance in more than one of twenty cases.
 */
const LEAST_EXPECTED = 3

const [BEFORE, NOW] = [0, 1] as const
const WINDOWS: readonly WindowName[] = ['before', 'now']

/**
 * Number of values stored for each pair: for each window, the least and the greatest possible number of connections;
 * then the time of the first observation in the present window and of the last one in the earlier window.
 */
const SUMS = 6
const [LEAST, MOST] = [0, 2]
const [FIRST_NOW, LAST_BEFORE] = [4, 5]

/** The flags that a pair has in each window. They are stored as bits, after the bits for the policy decisions. */
const MARKS = ['seen', 'perhaps', 'agents', 'agents_unknown', 'idle'] as const
type Mark = (typeof MARKS)[number]
const bitOf = (window: number, mark: Mark): number =>
  1 << (POLICY_DECISIONS.length + window * MARKS.length + MARKS.indexOf(mark))

/**
 * Creates a comparison of the traffic of two windows. Rows are added in any order, each with the name of its window,
 * after their decisions have been replaced by those of the policy. If the times of a row extend beyond its window, it
 * is not known how many of its connections were inside (P85). Each pair therefore has a least and a greatest number of
 * connections, and is `not_known` if its kind depends on which of them is right. `finish` returns at most `limit` pairs
 * for each kind of difference.
 *
 * @param isCut whether the rows of each window are incomplete
 */
export function compareWindows({ encoder, columns, windows, reportedIn, isIdle }: ComparisonSource): {
  add(window: WindowName, row: FlowRow): void
  finish(limit: number, isCut: Readonly<Record<WindowName, boolean>>): Steps<Comparison>
} {
  const names = Object.keys(columns)
  const list = names.map((name) => columns[name]!)
  const table = createTupleTable(list.length)
  const tuple = new Int32Array(list.length)
  const sumsOf = growingBlocks((places) => new Float64Array(places * SUMS))
  const marksOf = growingBlocks((places) => new Int32Array(places))
  const bounds = WINDOWS.map((name) => {
    const { window } = windows[name]
    return { start: Date.parse(window.start), end: Date.parse(window.end) }
  })
  const hours = WINDOWS.map((name) => windows[name].hours)
  const bitOfDecision = new Map(
    POLICY_DECISIONS.map((word, bit) => [encoder.dictionaries.decision.code(word), 1 << bit]),
  )
  const reporters = createReporterMarks(encoder, { reportedIn, isIdle })
  const connections = { before: 0, now: 0 }
  let outside = 0

  const sum = (pair: number, field: number) => sumsOf.of(pair)[placeInBlock(pair) * SUMS + field] as number
  const marks = (pair: number) => marksOf.of(pair)[placeInBlock(pair)] as number
  const has = (pair: number, window: number, mark: Mark) => (marks(pair) & bitOf(window, mark)) !== 0

  const kindOf = (pair: number): Kind => {
    const seen = [BEFORE, NOW].map((window) => has(pair, window, 'seen'))
    const perhaps = [BEFORE, NOW].some((window) => !seen[window] && has(pair, window, 'perhaps'))
    // The times of a row may reach into the other window, although the PCE returned no such row for that window.
    const contradicts = seen[BEFORE]
      ? sum(pair, LAST_BEFORE) >= bounds[NOW]!.start
      : sum(pair, FIRST_NOW) <= bounds[BEFORE]!.end
    if (perhaps) return 'not_known'
    if (!seen[BEFORE] || !seen[NOW]) return contradicts ? 'not_known' : seen[NOW] ? 'new' : 'gone'
    const most = (window: number) => sum(pair, MOST + window)
    const least = (window: number) => sum(pair, LEAST + window)
    const risen = changeOf(least(BEFORE), most(NOW))
    return risen === changeOf(most(BEFORE), least(NOW)) ? risen : 'not_known'
  }
  /**
   * Compares a pair's numbers of connections in both windows, after scaling each to the length of the shorter window.
   */
  const changeOf = (before: number, now: number): 'risen' | 'fallen' | 'same' => {
    const shorter = Math.min(...hours)
    const [was, is] = [(before * shorter) / hours[BEFORE]!, (now * shorter) / hours[NOW]!]
    const isChange = (low: number, high: number) => high >= LEAST_FACTOR * low && high - low >= LEAST_CHANGE
    return isChange(was, is) ? 'risen' : isChange(is, was) ? 'fallen' : 'same'
  }
  /** Returns how many connections a pair would have had in the shorter window at the rate seen in the longer one. */
  const expected = (pair: number, window: number) =>
    (sum(pair, MOST + window) * hours[1 - window]!) / (hours[window] as number)
  const isShorter = (window: number) =>
    !areEquallyLong(hours[BEFORE]!, hours[NOW]!) && hours[window]! < hours[1 - window]!

  const doubtsOf = (pair: number, kind: Difference, isCut: Readonly<Record<WindowName, boolean>>): Doubt[] => {
    // The window in which the pair has more traffic. The question is whether data is merely missing in the other
    // window.
    const fuller = kind === 'new' || kind === 'risen' ? NOW : BEFORE
    const other = 1 - fuller
    const isOneSided = kind === 'new' || kind === 'gone'
    const cut = isCut[WINDOWS[other]!] || (!isOneSided && isCut[WINDOWS[fuller]!])
    return DOUBTS.filter((doubt) => {
      if (doubt === 'cut') return cut
      if (doubt === 'rare') return isOneSided && isShorter(other) && expected(pair, fuller) < LEAST_EXPECTED
      return has(pair, fuller, doubt)
    })
  }
  const policyOf = (pair: number): PolicyDecision[] =>
    DECISIONS_BY_CONCERN.filter((word) => (marks(pair) & (1 << POLICY_DECISIONS.indexOf(word))) !== 0)

  return {
    add(name, row) {
      const window = name === 'before' ? BEFORE : NOW
      const { start, end } = bounds[window]!
      // Comparisons with NaN are false, so a row without times counts as inside its window.
      if (row.last < start || row.first > end) {
        outside += row.count
        return
      }
      const reaches = row.first < start || row.last > end
      const reachesBoth = row.first < start && row.last > end
      for (const [at, column] of list.entries()) tuple[at] = column.code(row)
      const pair = table.slot(tuple)
      const sums = sumsOf.upTo(pair)
      const at = placeInBlock(pair) * SUMS
      const before = marksOf.upTo(pair)[placeInBlock(pair)]!
      if (before === 0) sums[at + FIRST_NOW] = sums[at + LAST_BEFORE] = NaN
      connections[name] += row.connections
      sums[at + MOST + window]! += row.connections
      // If one time of a row lies inside the window, at least one of its connections was inside, too.
      sums[at + LEAST + window]! += !reaches ? row.connections : reachesBoth ? 0 : Math.min(1, row.connections)
      const isUnset = (field: number) => Number.isNaN(sums[at + field])
      if (window === NOW && (isUnset(FIRST_NOW) || row.first < sums[at + FIRST_NOW]!)) sums[at + FIRST_NOW] = row.first
      if (window === BEFORE && (isUnset(LAST_BEFORE) || row.last > sums[at + LAST_BEFORE]!))
        sums[at + LAST_BEFORE] = row.last
      marksOf.of(pair)[placeInBlock(pair)] =
        before |
        (bitOfDecision.get(row.decision) ?? bitOfDecision.get(encoder.dictionaries.decision.code('unknown'))!) |
        bitOf(window, reachesBoth ? 'perhaps' : 'seen') |
        reporters(row, window)
    },
    *finish(limit, isCut) {
      const kinds = new Uint8Array(table.size)
      const ranks = new Float64Array(table.size)
      const totals = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>
      const byPolicy: Comparison['byPolicy'] = { new: {}, gone: {}, risen: {}, fallen: {} }
      const doubts: Comparison['doubts'] = {}
      for (let pair = 0; pair < table.size; pair++) {
        if (pair % 1024 === 1023) yield
        const kind = kindOf(pair)
        kinds[pair] = KINDS.indexOf(kind)
        totals[kind] += 1
        if (kind === 'same' || kind === 'not_known') continue
        const [strictest = 'unknown'] = policyOf(pair)
        byPolicy[kind][strictest] = (byPolicy[kind][strictest] ?? 0) + 1
        for (const doubt of doubtsOf(pair, kind, isCut)) doubts[doubt] = (doubts[doubt] ?? 0) + 1
        const change = Math.abs(sum(pair, MOST + NOW) / hours[NOW]! - sum(pair, MOST + BEFORE) / hours[BEFORE]!)
        ranks[pair] =
          (DECISIONS_BY_CONCERN.length - DECISIONS_BY_CONCERN.indexOf(strictest)) * SPREAD +
          Math.min(change, SPREAD - 1)
      }
      const compareKeys = (a: number, b: number) => {
        for (const [at, column] of list.entries()) {
          const order = compareValues(column.value(table.at(a, at)), column.value(table.at(b, at)))
          if (order !== 0) return order
        }
        return 0
      }
      const show = (pair: number, kind: Difference): ComparedPair => ({
        keys: Object.fromEntries(names.map((name, at) => [name, list[at]!.value(table.at(pair, at))])),
        policy: policyOf(pair),
        before: sum(pair, MOST + BEFORE),
        now: sum(pair, MOST + NOW),
        firstNow: toTime(sum(pair, FIRST_NOW)),
        lastBefore: toTime(sum(pair, LAST_BEFORE)),
        doubts: doubtsOf(pair, kind, isCut),
      })
      const pairs = {} as Comparison['pairs']
      for (const [code, kind] of DIFFERENCES.entries()) {
        yield
        const { top } = pickTop(
          table.size,
          limit,
          0,
          (pair) => (kinds[pair] === code ? (ranks[pair] as number) : -1),
          compareKeys,
        )
        pairs[kind] = top.map((pair) => show(pair, kind))
      }
      const inOrder = (counts: Partial<Record<PolicyDecision, number>>) =>
        Object.fromEntries(
          DECISIONS_BY_CONCERN.flatMap((word) => (counts[word] === undefined ? [] : [[word, counts[word]]])),
        )
      for (const kind of DIFFERENCES) byPolicy[kind] = inOrder(byPolicy[kind])
      return { totals, byPolicy, doubts, pairs, connections, outside }
    },
  }
}

/**
 * A number greater than any possible change in connections per hour. Multiples of it rank pairs by decision first, and
 * only then by change.
 */
const SPREAD = 1e12

/**
 * Creates a function that returns the flags of a row that result from its agents: could the agents at its ends have
 * reported this traffic in the other window, too? If at least one of them could, no flag is set.
 */
function createReporterMarks(
  { ends }: FlowEncoder,
  { reportedIn, isIdle }: Pick<ComparisonSource, 'reportedIn' | 'isIdle'>,
): (row: FlowRow, window: number) => number {
  // For each window and each end seen in it: whether the end's agent reported in the other window.
  const known = WINDOWS.map(() => new Map<number, boolean | null | 'idle'>())
  const stateOf = (code: number, window: number) => {
    const states = known[window]!
    let state = states.get(code)
    if (state === undefined) {
      const end = ends.end(code)
      const reported = reportedIn(end, WINDOWS[1 - window]!)
      state = reported === true && isIdle(end) ? 'idle' : reported
      states.set(code, state)
    }
    return state
  }
  return (row, window) => {
    const states = [row.src, row.dst].filter((code) => ends.end(code).managed).map((code) => stateOf(code, window))
    if (states.length === 0 || states.includes(true)) return 0
    if (states.includes('idle')) return bitOf(window, 'idle')
    return bitOf(window, states.includes(null) ? 'agents_unknown' : 'agents')
  }
}
