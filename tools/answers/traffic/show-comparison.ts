import { Type, type Static } from '@sinclair/typebox'
import type { DecidedTraffic } from '../../../domain/policy/decide-traffic.js'
import { roundHours, type ComparedWindow, type ComparedWindows } from '../../../domain/traffic/choose-windows.js'
import {
  DIFFERENCES,
  LEAST_CHANGE,
  LEAST_FACTOR,
  type ComparedPair,
  type Comparison,
  type Difference,
  type Doubt,
} from '../../../domain/traffic/compare-windows.js'
import { PUBLIC_ADDRESSES } from '../../../domain/traffic/fold-ends.js'
import { describeReading, Reading, type FlowsRead } from '../../../domain/traffic/read-flows.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { AssumesOut, showAssumed } from '../../../schemas/assumes.js'
import { Count, Counts, Text } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { showSections, Truncation } from '../byte-budget.js'

const Side = (description: string) =>
  Type.Object(
    {
      ...Reading,
      until: Text('End of what is compared: of the window, or now'),
      hours: Type.Number({ description: 'Length; hours to come do not count' }),
      connections: Count('Seen inside, or in rows that reach out of it'),
    },
    { description },
  )
const Rows = (description: string) =>
  Type.Array(Type.Array(Type.Union([Type.String(), Type.Number(), Type.Null()])), { description })

/** The answer of compare-traffic. */
export const ComparisonOutput = Type.Object({
  summary: Text('What differs, in a sentence'),
  totals: Counts('Pairs by what became of them; same and not_known are not listed'),
  by_policy: Type.Record(Type.String(), Type.Record(Type.String(), Type.Integer()), {
    description: 'Of each difference: pairs by the strictest decision about them',
  }),
  columns: Type.Array(Type.String(), {
    description:
      'Of the rows: the pair, decisions, connections before and now, seen (new, risen: first seen now; gone, fallen: last seen before), doubt',
  }),
  new: Rows('Seen now only. Blocked ones first, then potentially_blocked, unknown, allowed; each busiest first'),
  gone: Rows('Seen before only'),
  risen: Rows('More per hour'),
  fallen: Rows('Less per hour'),
  doubts: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'What a doubt of a row means, and how many have it' }),
  ),
  notes: Type.Array(Type.String(), { description: 'What to know before trusting a difference' }),
  grouped_by: Type.Optional(Type.Object({}, { description: 'Columns of what group_by calls otherwise' })),
  before: Side('The window compared with'),
  now: Side('The window asked about'),
  decided: Type.Object(
    {
      by: Text('active, or draft as if all of it were provisioned'),
      undecided_connections: Count('Shown as unknown, of both windows'),
      because: Type.Optional(Text('Why they are undecided')),
    },
    { description: 'Decisions are those of this policy in the modes of today, for both windows' },
  ),
  ...AssumesOut,
  ...Truncation,
})

/** The comparison that the answer shows, and the facts about it that the answer states. */
interface Shown {
  comparison: Comparison
  windows: ComparedWindows
  read: Record<'before' | 'now', FlowsRead>
  decided: DecidedTraffic | null
  /** The names of the columns by which traffic was compared. */
  names: readonly string[]
  groupedBy: Readonly<Record<string, readonly string[]>>
  /** The first port that is folded; null if the comparison has no ports. */
  foldFrom: number | null
  /** True if the traffic was compared by this tool's default columns. */
  isByDefault: boolean
  /** Sentences about agents that could not be read. */
  agentNotes: readonly string[]
}

/** Maximum size, in bytes, of an answer at detail `standard`. */
const STANDARD_BYTES = 6_000
const STANDARD_ROWS = 25

const DOUBT_MEANS: Readonly<Record<Doubt, string>> = {
  cut: 'the rows of the other window were cut, so it may have been there all the same',
  agents: 'no agent that could have reported it did so in the whole other window: offline since, or paired only later',
  agents_unknown: 'whether an agent reported in the other window is not known',
  idle: 'only agents in idle mode could have reported it in the other window, and they report a part',
  rare: 'so rare that chance may be the reason in the shorter window',
}

/**
 * Builds the answer: for each kind of difference, as many rows as fit into 6,000 bytes or, at detail `full`, into the
 * budget.
 */
export function showComparison(
  shown: Shown,
  detail: 'standard' | 'full',
  limits: Limits,
): Static<typeof ComparisonOutput> {
  const { comparison, windows, read, decided, names, groupedBy } = shown
  const { totals, pairs, doubts } = comparison
  const isDoubted = Object.keys(doubts).length > 0
  const rowOf = (kind: Difference) => (pair: ComparedPair) => [
    ...names.map((name) => pair.keys[name] ?? '-'),
    pair.policy.join('+'),
    pair.before,
    pair.now,
    kind === 'new' || kind === 'risen' ? pair.firstNow : pair.lastBefore,
    ...(isDoubted ? [pair.doubts.length === 0 ? null : pair.doubts.join('+')] : []),
  ]
  const side = (which: 'before' | 'now', { hours, until }: ComparedWindow) => ({
    ...describeReading(read[which]),
    until,
    hours: roundHours(hours),
    connections: comparison.connections[which],
  })
  const sections = Object.fromEntries(
    DIFFERENCES.map((kind) => [kind, { total: totals[kind], rows: pairs[kind].map(rowOf(kind)) }]),
  ) as Record<Difference, { total: number; rows: (string | number | null)[][] }>
  const most = detail === 'standard' ? Math.min(limits.responseBudgetBytes, STANDARD_BYTES) : limits.responseBudgetBytes
  return showSections(
    {
      summary: summarise(comparison, windows),
      totals,
      by_policy: comparison.byPolicy,
      columns: [...names, 'policy', 'before', 'now', 'seen', ...(isDoubted ? ['doubt'] : [])],
      ...(isDoubted && {
        doubts: Object.fromEntries(
          Object.entries(doubts).map(([doubt, many]) => [
            doubt,
            `${countOf(many, 'pair')}: ${DOUBT_MEANS[doubt as Doubt]}`,
          ]),
        ),
      }),
      notes: notesOf(shown),
      ...(Object.keys(groupedBy).length > 0 && { grouped_by: groupedBy }),
      before: side('before', windows.before),
      now: side('now', windows.now),
      decided: {
        by: decided?.by ?? 'active',
        undecided_connections: decided?.undecided.connections ?? 0,
        ...(decided !== null && decided.because !== '' && { because: decided.because }),
      },
      ...showAssumed(decided?.assumes ?? []),
    },
    sections,
    {
      detail,
      standard: STANDARD_ROWS,
      limits: { ...limits, responseBudgetBytes: most },
      hint: (longest) =>
        `At most ${longest} rows of a list are shown; totals counts all. ${detail === 'standard' ? 'detail_level full shows more.' : 'Filter, or group by fewer columns.'}`,
    },
  )
}

function summarise({ totals, byPolicy }: Comparison, { before, now }: ComparedWindows): string {
  const spanOf = ({ window, until }: ComparedWindow) => `${window.start} to ${until}`
  const words: Record<Difference, string> = { new: 'new', gone: 'gone', risen: 'risen', fallen: 'fallen' }
  const found = DIFFERENCES.map((kind) => {
    const { allowed: _allowed, ...others } = byPolicy[kind]
    const told = Object.entries(others).map(([word, many]) => `${many} ${word}`)
    return `${totals[kind]} ${words[kind]}${told.length === 0 ? '' : ` (${told.join(', ')})`}`
  })
  const all = Object.values(totals).reduce((sum, many) => sum + many, 0)
  const open = totals.not_known === 0 ? '' : `; not known of ${totals.not_known}`
  return `Of ${countOf(all, 'pair')}: ${found.join(', ')}, ${totals.same} as before${open}. Now is ${spanOf(now)}, before ${spanOf(before)}.`
}

function notesOf({ comparison, windows, read, decided, foldFrom, isByDefault, agentNotes }: Shown): string[] {
  const { totals, outside } = comparison
  const cut = (['before', 'now'] as const).filter((which) => read[which].truncated)
  return [
    ...cut.map((which) =>
      which === 'now'
        ? 'The rows of now were cut: what is gone may only be cut.'
        : 'The rows of before were cut: what is new may have been there.',
    ),
    ...windows.notes,
    ...agentNotes,
    ...(totals.not_known > 0
      ? [
          'not_known: rows reach out of a window (the PCE adds up before it cuts), so the change hangs on what is not told.',
        ]
      : []),
    ...(outside > 0 ? [`${countOf(outside, 'row')} lay outside of the window altogether and count in no pair.`] : []),
    `Risen and fallen: ${LEAST_FACTOR} times the connections per hour, and ${LEAST_CHANGE} more or less.`,
    ...(foldFrom === null ? [] : [`Ports from ${foldFrom} on count as one.`]),
    ...(isByDefault
      ? [`Sources outside the inventory count by IP list, otherwise as "${PUBLIC_ADDRESSES}" or by private address.`]
      : []),
    'Agents are known as they are now: one that was offline and came back is not seen.',
    ...(decided?.modes ?? []),
  ]
}
