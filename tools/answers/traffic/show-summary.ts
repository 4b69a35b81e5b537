import { Type, type Static } from '@sinclair/typebox'
import { markOutside } from '../../../domain/traffic/outside-window.js'
import type { DecidedTraffic } from '../../../domain/policy/decide-traffic.js'
import { showDecided } from './show-decided.js'
import { coverageNote, dataSpan, type FlowsRead } from '../../../domain/traffic/read-flows.js'
import {
  SECTION_NAMES,
  type FlowSummary,
  type SectionName,
  type Sections,
} from '../../../domain/traffic/summarize-flows.js'
import { DecidedOut } from '../../../schemas/decided-traffic.js'
import { Nullable } from '../../../schemas/common.js'
import { SectionsOutput } from '../../../schemas/sections.js'
import { TrafficCounts, TrafficSums, TrafficTimes } from '../../../schemas/traffic-counts.js'
import type { Limits } from '../../../schemas/config.js'
import { adviseOnRows, OVERVIEW_BYTES } from '../byte-budget.js'
import { showChosen, type Sections as Parts } from '../choose-sections.js'

const integer = (description: string) => Type.Integer({ description })
const string = (description: string) => Type.String({ description })

const Policy = string('policy_decision of its rows')
const Endpoint = string('FQDN, else host name, else address with its IP lists')
const Identity = string('Its identity_labels, as app (env); external: or unlabelled without')

const service = {
  port: Nullable(Type.Integer()),
  proto: Type.String(),
  policy: Policy,
}
const measures = { ...TrafficSums, ...TrafficTimes }

/** The answer of get-traffic-flows-summary (T12). */
export const TrafficSummaryOutput = Type.Object({
  totals: Type.Object(
    {
      rows: TrafficCounts.rows,
      ...TrafficSums,
      distinct_processes: Type.Integer(),
      pce_flows: TrafficCounts.pce_flows,
      unparseable: TrafficCounts.unparseable,
      truncated_at: TrafficCounts.row_limit,
      truncated: TrafficCounts.flows_truncated,
      parts: TrafficCounts.parts,
      raw_observations: TrafficCounts.raw_observations,
      coverage_note: TrafficCounts.coverage_note,
    },
    { description: 'Of the whole result, shown or not' },
  ),
  section_totals: Type.Object(
    {
      by_process: Type.Integer(),
      external_destinations: Type.Integer(),
      blocked: Type.Integer(),
      app_to_app: Type.Integer(),
    },
    { description: 'All rows of each section' },
  ),
  by_process: Type.Optional(
    Type.Array(
      Type.Object({
        process: string('Path or name'),
        ...measures,
        destination_count: Type.Integer(),
        destinations_total: integer('All rows of destinations'),
        destinations: Type.Array(
          Type.Object({
            to: Endpoint,
            ...service,
            connections: Type.Integer(),
            process_runs_on: string('destination or source'),
          }),
          { description: 'Top 3; with full or one section 10' },
        ),
        user_count: Type.Integer(),
        users: Type.Array(Type.String(), { description: 'At most 5' }),
      }),
      { description: 'Most connections first, as all sections' },
    ),
  ),
  external_destinations: Type.Optional(
    Type.Array(Type.Object({ process: Type.String(), to: Endpoint, ...service, ...measures }), {
      description: 'Destinations this PCE does not manage',
    }),
  ),
  blocked: Type.Optional(
    Type.Array(
      Type.Object({
        process: Type.String(),
        from: Endpoint,
        to: Endpoint,
        ...service,
        ...measures,
      }),
      { description: 'blocked and potentially_blocked' },
    ),
  ),
  app_to_app: Type.Optional(
    Type.Array(
      Type.Object({
        from: Identity,
        to: Identity,
        policy: Policy,
        ...measures,
      }),
      { description: 'Between identities; inside one is left out' },
    ),
  ),
  note: Type.Optional(string('When there are no flows')),
  note_process: Type.Optional(string('Why by_process is empty')),
  identity_labels: Type.Array(Type.String(), { description: 'Keys of an identity' }),
  available_dimensions: Type.Object(
    {
      named: Type.Array(Type.String(), { description: 'With data' }),
      labels: Type.Array(Type.String(), { description: 'Label keys seen' }),
      usage: string('How to use them'),
    },
    { description: 'What traffic can be grouped by' },
  ),
  window: TrafficCounts.window,
  data_span: TrafficCounts.data_span,
  ...DecidedOut,
  ...SectionsOutput,
  truncated_sections: Type.Optional(Type.Array(Type.String(), { description: 'Shown shorter than section_totals' })),
  truncation_note: Type.Optional(string('How to see more')),
})

/** Maximum number of destinations listed for a process in an overview; `destinations_total` counts all. */
const OVERVIEW_DESTINATIONS = 3

export type TrafficSummary = Static<typeof TrafficSummaryOutput>

interface SummaryFacts {
  summary: FlowSummary
  read: FlowsRead
  /**
   * The decisions that were derived from the rules of a policy version; null if rows are counted by the decisions that
   * the PCE recorded.
   */
  decided: DecidedTraffic | null
  identityLabels: readonly string[]
  /** The requested sections. */
  sections: Parts<SectionName>
}

/**
 * Builds the answer of get-traffic-flows-summary: the totals of all rows, and as many rows per section as fit. Both
 * levels of detail have the same totals and differ only in the number of rows. `truncated_sections` names the sections
 * that were cut.
 */
export function showSummary(facts: SummaryFacts, detail: 'standard' | 'full', limits: Limits): TrafficSummary {
  const { summary, read, decided, identityLabels, sections: asked } = facts
  const note = coverageNote(read)
  const span = dataSpan([read])
  const { connections, bytes_in: bytesIn, bytes_out: bytesOut } = read.totals
  const envelope = {
    totals: {
      rows: read.rows,
      connections,
      bytes_in: bytesIn,
      bytes_out: bytesOut,
      distinct_processes: summary.distinctProcesses,
      pce_flows: read.pceFlows,
      unparseable: read.unparseable,
      truncated_at: read.rowLimit,
      truncated: read.truncated,
      ...(read.parts !== null && { parts: read.parts }),
      ...(read.rawObservations !== null && { raw_observations: read.rawObservations }),
      ...(note !== '' && { coverage_note: note }),
    },
    section_totals: summary.sectionTotals,
    ...(read.rows === 0 && { note: 'no flows in window' }),
    ...(summary.sectionTotals.by_process === 0 && { note_process: 'No row names a process.' }),
    identity_labels: [...identityLabels],
    available_dimensions: summary.dimensions,
    window: read.window,
    ...(span !== null && { data_span: span }),
    ...showDecided(decided),
  }
  const isOverview = detail === 'standard' && !asked.isAlone
  const brief = <R extends object>(row: R): R =>
    isOverview && 'destinations' in row && Array.isArray(row.destinations)
      ? { ...row, destinations: row.destinations.slice(0, OVERVIEW_DESTINATIONS) }
      : row
  const lists = Object.fromEntries(
    SECTION_NAMES.map((name) => [
      name,
      {
        rows: summary.sections[name].map((row) => brief(markOutside(read.window, row))),
        total: summary.sectionTotals[name],
      },
    ]),
  ) as { [K in SectionName]: { rows: Sections[K]; total: number } }
  return showChosen(asked, envelope, lists, {
    detail,
    limits,
    isAlone: asked.isAlone,
    aim: isOverview ? OVERVIEW_BYTES : undefined,
    hint: (limit, isFull) =>
      `At most ${limit} rows per section are shown, busiest first; section_totals and totals count all. ${adviseOnRows(detail, isFull, !asked.isAlone ? 'sections with one name shows more of it.' : 'Narrow the filters to see the rest.')}`,
  })
}
