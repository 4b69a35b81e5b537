import type { Static } from '@sinclair/typebox'
import type { Limits } from '../../schemas/config.js'
import type { TrafficSummaryOutput } from '../../schemas/traffic-summary.js'
import { cleanDeep } from './clean-text.js'
import { widestLimit } from './fit-sections.js'
import type { QueryFacts } from './run-traffic-query.js'
import { answerBudget, jsonBytes } from './split-format.js'
import { SECTION_NAMES, type FlowSummary, type Sections } from './summarize-flows.js'
import type { TrafficWindow } from './traffic-window.js'

export type TrafficSummary = Static<typeof TrafficSummaryOutput>

export interface SummaryFacts {
  summary: FlowSummary
  query: QueryFacts
  window: TrafficWindow
  /** Row limit the query was sent with. */
  cap: number
  identityLabels: readonly string[]
  /** Filters the PCE could not apply. */
  appliedToRows: readonly string[]
}

/**
 * The answer of a traffic summary: totals of everything, and of each section as many rows as fit. Totals are the same for both
 * detail levels; only the rows shown differ, and `truncated_sections` says where.
 */
export function showSummary(facts: SummaryFacts, detail: 'standard' | 'full', limits: Limits): TrafficSummary {
  const cache = new Map<number, TrafficSummary>()
  const at = (limit: number) => {
    const shown = cache.get(limit) ?? cleanDeep(answer(facts, limit))
    cache.set(limit, shown)
    return shown
  }
  return at(widestLimit(detail, answerBudget(limits), (limit) => jsonBytes(at(limit))))
}

function answer(facts: SummaryFacts, limit: number): TrafficSummary {
  const { summary, query, window } = facts
  const sections = Object.fromEntries(
    SECTION_NAMES.map((name) => [name, summary.sections[name].slice(0, limit)]),
  ) as unknown as Sections
  const shortened = SECTION_NAMES.filter((name) => summary.sectionTotals[name] > limit)
  const note = coverageNote(facts)
  return {
    totals: {
      rows: summary.rows,
      connections: summary.measures.connections,
      bytes_in: summary.measures.bytes_in,
      bytes_out: summary.measures.bytes_out,
      distinct_processes: summary.distinctProcesses,
      pce_flows: query.pceFlows,
      unparseable: query.unparseable,
      truncated_at: facts.cap,
      truncated: query.truncated,
      ...(query.rawObservations !== null && { raw_observations: query.rawObservations }),
      ...(note !== '' && { coverage_note: note }),
    },
    section_totals: summary.sectionTotals,
    ...sections,
    ...(summary.rows === 0 && { note: 'no flows in window' }),
    ...(summary.sectionTotals.by_process === 0 && { note_process: 'No row names a process.' }),
    identity_labels: [...facts.identityLabels],
    available_dimensions: summary.dimensions,
    window,
    ...dataSpan(facts),
    ...(shortened.length > 0 && {
      truncated_sections: [...shortened],
      truncation_note: `At most ${limit} rows a section are shown, the busiest first; section_totals and totals count all. Narrow the filters to see the rest.`,
    }),
  }
}

function coverageNote({ query, appliedToRows }: SummaryFacts): string {
  return [
    query.truncated
      ? 'The row limit was reached, so all counts are lower bounds; narrow the window or the filters.'
      : '',
    query.unparseable > 0 ? `${query.unparseable} rows could not be read and are not counted.` : '',
    appliedToRows.length > 0
      ? `The PCE cannot filter by network; applied to its rows here: ${appliedToRows.join(', ')}. pce_flows counts before that.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

/** The PCE aggregates before it cuts to the window, so a row's times may lie outside it. */
function dataSpan({ summary, window }: SummaryFacts): Pick<TrafficSummary, 'data_span'> {
  const { first_detected: first, last_detected: last } = summary.measures
  if (first === null || last === null) return {}
  const outside = Date.parse(first) < Date.parse(window.start) || Date.parse(last) > Date.parse(window.end)
  return outside ? { data_span: { first_detected: first, last_detected: last } } : {}
}
