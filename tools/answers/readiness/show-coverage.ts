import { AssumesOut, showAssumed } from '../../../schemas/assumes.js'
import { RecordedOut, showRecorded } from '../../../schemas/recorded-otherwise.js'
import { Type, type Static } from '@sinclair/typebox'
import type { Limits } from '../../../schemas/config.js'
import { SectionsOutput } from '../../../schemas/sections.js'
import { Count, Flag, Nullable, Text, Total } from '../../../schemas/common.js'
import type { Coverage, PathCoverage } from '../../../domain/readiness/collect-coverage.js'
import { recommendCoverage } from '../../../domain/readiness/recommend-next-steps.js'
import { coverage, judged, type Reliance } from '../../../domain/readiness/tally-decisions.js'
import type { Application } from '../../../domain/traffic/applications.js'
import { Reading } from '../../../domain/traffic/read-flows.js'
import { describeBothWays, type BothWays } from '../../../domain/traffic/read-both-ways.js'
import { adviseOnRows, Truncation } from '../byte-budget.js'
import { showChosen, type Sections } from '../choose-sections.js'
import {
  ByDecision,
  Covered,
  CoveredConnections,
  Judged,
  NoApplication,
  Percent,
  showDecisions,
} from './judged-output.js'

const Plain = Type.String()
const Port = Nullable(Type.Integer())
const CoveredByDraft = Percent('Percent of rows the draft would allow; null: none judged, or not assessed')

const Figures = {
  total_flows: Count('Rows judged'),
  total_connections: Count('Of these rows'),
  by_decision: ByDecision,
  coverage_percentage: Covered,
  connection_coverage_percentage: CoveredConnections,
  draft_coverage_percentage: CoveredByDraft,
}
const uncovered = {
  flows: Count('Rows not known to be allowed'),
  connections: Type.Integer(),
  draft_allowed_connections: Nullable(
    Count('Of these the draft would allow, undecided ones aside; null: not assessed'),
  ),
}
const Direction = Type.Object(
  {
    ...Figures,
    uncovered_services: Type.Optional(
      Type.Array(
        Type.Object({
          port: Port,
          proto: Port,
          processes: Type.Array(Plain, { description: 'At most 5' }),
          ...uncovered,
        }),
        { description: 'By port; busiest first' },
      ),
    ),
    uncovered_apps: Type.Optional(
      Type.Array(Type.Object({ app: Plain, env: Plain, ...uncovered }), {
        description: 'By the other application; busiest first',
      }),
    ),
    uncovered_unlabelled: Type.Optional(
      Type.Array(Type.Object({ ...NoApplication, ...uncovered }), {
        description: 'By the other end without app, env or both; busiest first',
      }),
    ),
    totals: Type.Object(
      { uncovered_services: Total, uncovered_apps: Total, uncovered_unlabelled: Total },
      { description: 'Entries of each list' },
    ),
  },
  { description: 'Intra rows included' },
)
const Draft = Type.Object(
  {
    assessed: Flag('false: reason says why'),
    reason: Type.Optional(Text('Why the draft, or only the list of its rules, is missing')),
    overall_coverage_percentage: CoveredByDraft,
    would_allow_flows: Nullable(Count('Of the rows that are not allowed now')),
    rules: Type.Optional(
      Type.Array(
        Type.Object({
          rule: Text('Href or essential service'),
          flows: Count('Rows it would allow that are not allowed now'),
          connections: Type.Integer(),
        }),
        { description: 'Draft rules that match them' },
      ),
    ),
  },
  { description: 'What the draft policy would decide on the same rows' },
)

/**
 * The parts of get-policy-coverage-report's answer from which a caller can choose. The draft is read only if `draft` is
 * chosen.
 */
export const COVERAGE_PARTS = ['inbound', 'outbound', 'draft'] as const

/** The answer of get-policy-coverage-report (T21). */
export const CoverageOutput = Type.Object({
  app: Plain,
  env: Plain,
  lookback_days: Type.Integer(),
  overall_coverage_percentage: Covered,
  overall_connection_coverage_percentage: CoveredConnections,
  ...Judged,
  total_allowed: Count('Rows allowed'),
  inbound: Direction,
  outbound: Direction,
  intra: Type.Object(Figures, { description: 'Inside the application' }),
  draft: Draft,
  recommendation: Text('What the figures mean and what to do next'),
  ...RecordedOut,
  ...AssumesOut,
  ...SectionsOutput,
  ...Reading,
  ...Truncation,
})

/** Maximum number of rows of each list at detail `standard`. */
const STANDARD_ROWS = 10

interface Findings {
  application: Application
  days: number
  found: Coverage
  reliance: Reliance
  /** The reason why the draft could not be read, or why its rules could not be listed; null if neither failed. */
  draftUnavailable: string | null
  reads: BothWays
  chosen: Sections<(typeof COVERAGE_PARTS)[number]>
  detail: 'standard' | 'full'
  limits: Limits
}

/**
 * Builds the answer of get-policy-coverage-report. The figures cover all traffic rows; the lists contain as many
 * entries as fit.
 */
export function showCoverage(findings: Findings): Static<typeof CoverageOutput> {
  const { application, found, reliance, draftUnavailable, reads, chosen, detail, limits } = findings
  const { inbound, outbound, intra, overall, rules } = found
  const { decisions, draft } = overall
  const envelope = {
    ...application,
    lookback_days: findings.days,
    overall_coverage_percentage: coverage(decisions.flows),
    overall_connection_coverage_percentage: coverage(decisions.connections),
    total_flows: judged(decisions.flows),
    total_connections: judged(decisions.connections),
    total_allowed: decisions.flows.allowed,
    allowed_by_default_possible: reliance.byDefault > 0,
    inbound: { ...figures(inbound), totals: totals(inbound) },
    outbound: { ...figures(outbound), totals: totals(outbound) },
    intra: figures(intra),
    draft: {
      assessed: draft !== null,
      ...(draftUnavailable !== null && { reason: draftUnavailable }),
      overall_coverage_percentage: draft === null ? null : coverage(draft.flows),
      would_allow_flows: draft === null ? null : found.wouldAllow,
    },
    recommendation: recommendCoverage(found, reliance),
    ...showRecorded(reliance.recorded),
    ...showAssumed(reliance.assumes),
    ...describeBothWays(reads),
  }
  const section = <T>(rows: readonly T[]) => ({ rows, total: rows.length })
  const shown = showChosen(
    chosen,
    envelope,
    {
      'inbound.uncovered_services': section(inbound.uncovered.services),
      'inbound.uncovered_apps': section(inbound.uncovered.apps),
      'inbound.uncovered_unlabelled': section(inbound.uncovered.ends),
      'outbound.uncovered_services': section(outbound.uncovered.services),
      'outbound.uncovered_apps': section(outbound.uncovered.apps),
      'outbound.uncovered_unlabelled': section(outbound.uncovered.ends),
      'draft.rules': section(rules),
    },
    {
      detail,
      limits,
      standard: STANDARD_ROWS,
      hint: (limit, isFull) =>
        `At most ${limit} rows per list are shown, busiest first; totals and percentages count all. ${adviseOnRows(detail, isFull, 'A shorter window has fewer.')}`,
    },
  )
  const {
    'inbound.uncovered_services': inboundServices,
    'inbound.uncovered_apps': inboundApps,
    'inbound.uncovered_unlabelled': inboundUnlabelled,
    'outbound.uncovered_services': outboundServices,
    'outbound.uncovered_apps': outboundApps,
    'outbound.uncovered_unlabelled': outboundUnlabelled,
    'draft.rules': draftRules,
    ...rest
  } = shown
  return {
    ...rest,
    inbound: {
      ...rest.inbound,
      ...(inboundServices && { uncovered_services: inboundServices }),
      ...(inboundApps && { uncovered_apps: inboundApps }),
      ...(inboundUnlabelled && { uncovered_unlabelled: inboundUnlabelled }),
    },
    outbound: {
      ...rest.outbound,
      ...(outboundServices && { uncovered_services: outboundServices }),
      ...(outboundApps && { uncovered_apps: outboundApps }),
      ...(outboundUnlabelled && { uncovered_unlabelled: outboundUnlabelled }),
    },
    draft: { ...rest.draft, ...(draftRules && { rules: draftRules }) },
  }
}

function figures({ decisions, draft }: PathCoverage) {
  return {
    total_flows: judged(decisions.flows),
    total_connections: judged(decisions.connections),
    by_decision: showDecisions(decisions.flows),
    coverage_percentage: coverage(decisions.flows),
    connection_coverage_percentage: coverage(decisions.connections),
    draft_coverage_percentage: draft === null ? null : coverage(draft.flows),
  }
}

const totals = ({ uncovered: { services, apps, ends } }: PathCoverage) => ({
  uncovered_services: services.length,
  uncovered_apps: apps.length,
  uncovered_unlabelled: ends.length,
})
