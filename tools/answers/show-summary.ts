import type { Static } from '@sinclair/typebox'
import type { Limits } from '../../schemas/config.js'
import type { TrafficSummaryOutput } from '../../schemas/traffic-summary.js'
import { coverageNote, dataSpan } from '../../domain/traffic/describe-reading.js'
import type { FlowsRead } from '../../domain/traffic/read-flows.js'
import {
  SECTION_NAMES,
  type FlowSummary,
  type SectionName,
  type Sections,
} from '../../domain/traffic/summarize-flows.js'
import { showSections } from './show-sections.js'

export type TrafficSummary = Static<typeof TrafficSummaryOutput>

export interface SummaryFacts {
  summary: FlowSummary
  read: FlowsRead
  identityLabels: readonly string[]
}

/**
 * The answer of a traffic summary: totals of everything, and of each section as many rows as fit. Totals are the same for both
 * detail levels; only the rows shown differ, and `truncated_sections` says where.
 */
export function showSummary(facts: SummaryFacts, detail: 'standard' | 'full', limits: Limits): TrafficSummary {
  const { summary, read, identityLabels } = facts
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
  }
  const sections = {} as { [K in SectionName]: { rows: Sections[K]; total: number } }
  for (const name of SECTION_NAMES)
    Object.assign(sections, { [name]: { rows: summary.sections[name], total: summary.sectionTotals[name] } })
  return showSections(envelope, sections, {
    detail,
    limits,
    hint: (limit) =>
      `At most ${limit} rows a section are shown, the busiest first; section_totals and totals count all. Narrow the filters to see the rest.`,
  })
}
