import { AssumesOut, showAssumed } from '../../../schemas/assumes.js'
import { RecordedOut, showRecorded } from '../../../schemas/recorded-otherwise.js'
import { Type, type Static } from '@sinclair/typebox'
import type { Limits } from '../../../schemas/config.js'
import { Count, Counts, Flag, Nullable, StringEnum, Text, Total } from '../../../schemas/common.js'
import { SectionsOutput } from '../../../schemas/sections.js'
import type { countModes } from '../../../domain/inventory/workloads.js'
import type { ReadinessTraffic } from '../../../domain/readiness/collect-readiness.js'
import type { Workloads } from '../../../domain/inventory/kubernetes-workloads.js'
import { recommendReadiness } from '../../../domain/readiness/recommend-next-steps.js'
import { scoreReadiness, type RingfenceState } from '../../../domain/readiness/score-readiness.js'
import { coverage, judged, type Reliance } from '../../../domain/readiness/tally-decisions.js'
import type { Application } from '../../../domain/traffic/applications.js'
import { Reading } from '../../../domain/traffic/read-flows.js'
import { describeBothWays, type BothWays } from '../../../domain/traffic/read-both-ways.js'
import { Truncation } from '../byte-budget.js'
import { showChosen, type Sections } from '../choose-sections.js'
import { ByDecision, Covered, CoveredConnections, Judged, NoApplication, showDecisions } from './judged-output.js'

const Plain = Type.String()
const Port = Nullable(Type.Integer())
const Applications = (description: string) =>
  Type.Optional(Type.Array(Type.Object({ app: Plain, env: Plain }), { description }))

/** The parts of enforcement-readiness's answer from which a caller can choose. */
export const READINESS_PARTS = ['uncovered_flows', 'remote_apps', 'unlabelled_sources'] as const

/** The answer of enforcement-readiness (T20). */
export const ReadinessOutput = Type.Object({
  app: Plain,
  env: Plain,
  readiness_score: Nullable(Type.Number({ description: 'Of 100; null: no traffic, or nothing to enforce' })),
  readiness_level: StringEnum(['ready', 'partially_ready', 'not_ready', 'unknown'] as const, {
    description:
      'ready from 80, unless a stricter mode could block more than is known; partially_ready from 50; unknown: no score',
  }),
  factors: Type.Array(
    Type.Object({
      factor: Text('policy_coverage, ringfence, enforcement_mode, no_blocked_traffic or no_uncovered_remote_apps'),
      points: Type.Number({ description: 'Reached' }),
      max: Count('Points available'),
      reason: Text('What was found'),
    }),
    { description: 'What the score adds up; empty without score' },
  ),
  workloads: Type.Object(
    {
      total: Count('Managed or not'),
      enforcement_modes: Counts('All of them by mode'),
      managed_only: Type.Object(
        { total: Count('With a VEN or in Kubernetes'), enforcement_modes: Counts('These by mode') },
        { description: 'Without unmanaged ones' },
      ),
      offline: Count('Whose VEN is offline'),
      not_enforceable: Count('Idle or without a VEN'),
    },
    { description: 'With both labels' },
  ),
  traffic_analysis: Type.Object(
    {
      lookback_days: Type.Integer(),
      ...Judged,
      policy_decisions: ByDecision,
      coverage_percentage: Covered,
      connection_coverage_percentage: CoveredConnections,
    },
    { description: 'Into, out of and inside the application' },
  ),
  remote_apps: Type.Object(
    {
      covered: Applications('All judged rows are allowed'),
      uncovered: Applications('None is allowed'),
      partially_covered: Applications('Some are allowed'),
      totals: Type.Object(
        { covered: Total, uncovered: Total, partially_covered: Total },
        { description: 'Entries of each list' },
      ),
    },
    { description: 'Source applications by what is allowed of their inbound rows' },
  ),
  unlabelled_sources: Type.Object(
    {
      total: Total,
      half_labelled: Count('With one of the two'),
      uncovered: Count('With uncovered flows'),
      top: Type.Optional(
        Type.Array(
          Type.Object({
            ...NoApplication,
            flows: Count('Rows judged'),
            connections: Type.Integer(),
            uncovered_flows: Count('Rows not known to be allowed'),
            uncovered_connections: Count('Connections of these rows'),
          }),
          { description: 'Most uncovered connections first, at most 10, 20 where no other part is shown' },
        ),
      ),
    },
    { description: 'Without app, env or both' },
  ),
  uncovered_flows: Type.Optional(
    Type.Array(
      Type.Object({
        path: StringEnum(['inbound', 'outbound', 'intra'] as const),
        remote: Text('Other end (intra: the source): app (env), else as endpoint'),
        port: Port,
        proto: Port,
        process: Nullable(Plain),
        decision: Text('As in policy_decisions'),
        connections: Type.Integer(),
      }),
      { description: 'At most 10, 20 where no other part is shown' },
    ),
  ),
  uncovered_flows_total: Total,
  has_ringfence: Flag('In the draft, enabled'),
  ringfence: Type.Object(
    {
      name: Plain,
      href: Type.Optional(Plain),
      enabled: Type.Optional(Type.Boolean()),
      rules: Type.Optional(Count('Enabled ones')),
      provisioned: Flag('In the active policy, enabled'),
      pending_changes: Flag('Draft changes are not provisioned'),
      conflicts: Type.Array(
        Type.Object({
          href: Plain,
          why: StringEnum(['other_scope', 'pending_deletion', 'same_scope'] as const, {
            description: 'other_scope: not exactly these two labels; same_scope: a second one',
          }),
        }),
        { description: 'Other draft rule sets of this name' },
      ),
    },
    { description: 'Draft rule set RF-<app>-<env>; without href there is none' },
  ),
  recommendations: Type.Array(Plain, { description: 'What to do next, most pressing first' }),
  ...RecordedOut,
  ...AssumesOut,
  ...SectionsOutput,
  ...Reading,
  ...Truncation,
})

/**
 * Maximum numbers of uncovered flows and of unlabelled sources: if the answer has other parts as well, and if it has
 * none.
 */
const LISTED = { together: 10, alone: 20 }

interface Findings {
  application: Application
  days: number
  /** Counts of the application's workloads. */
  counts: ReturnType<typeof countModes>
  /** The number of the application's Kubernetes workloads, or the reason why they could not be read. */
  pods: Pick<Workloads, 'kubernetes' | 'unread'>
  ringfence: RingfenceState
  traffic: ReadinessTraffic & { reliance: Reliance }
  reads: BothWays
  chosen: Sections<(typeof READINESS_PARTS)[number]>
  limits: Limits
}

/**
 * Builds the answer of enforcement-readiness. The figures cover all traffic rows; the answer contains as many remote
 * applications as fit.
 */
export function showReadiness(findings: Findings): Static<typeof ReadinessOutput> {
  const { application, counts, ringfence, reads, chosen } = findings
  const { uncovered, ...judgedTraffic } = findings.traffic
  const { decisions, remotes, reliance } = judgedTraffic
  const { total_workloads: total, managed_only: managed, offline, online_not_known: onlineUnknown = 0 } = counts
  const fleet = {
    total,
    managed: managed.total,
    modes: managed.enforcement_modes,
    offline,
    onlineUnknown,
    ...findings.pods,
  }
  const facts = { ...judgedTraffic, fleet, ringfence }
  const readiness = scoreReadiness(facts)
  const envelope = {
    ...application,
    readiness_score: readiness.score,
    readiness_level: readiness.level,
    factors: readiness.factors,
    workloads: {
      total,
      enforcement_modes: counts.global_enforcement_modes,
      managed_only: managed,
      offline,
      not_enforceable: total - managed.total + (managed.enforcement_modes.idle ?? 0),
    },
    traffic_analysis: {
      lookback_days: findings.days,
      total_flows: judged(decisions.flows),
      total_connections: judged(decisions.connections),
      policy_decisions: showDecisions(decisions.flows),
      coverage_percentage: coverage(decisions.flows),
      connection_coverage_percentage: coverage(decisions.connections),
      allowed_by_default_possible: reliance.byDefault > 0,
    },
    uncovered_flows_total: uncovered.total,
    has_ringfence: ringfence.enabled === true,
    ringfence,
    recommendations: recommendReadiness(facts, readiness),
    ...showRecorded(reliance.recorded),
    ...showAssumed(reliance.assumes),
    ...describeBothWays(reads),
  }
  const { covered, uncovered: cut, partlyCovered: partly, unlabelled } = remotes
  const section = <T>(rows: readonly T[], most = Infinity) => ({ rows: rows.slice(0, most), total: rows.length })
  const most = chosen.isAlone ? LISTED.alone : LISTED.together
  const shown = showChosen(
    chosen,
    envelope,
    {
      uncovered_flows: { rows: uncovered.rows.slice(0, most), total: uncovered.total },
      'remote_apps.covered': section(covered),
      'remote_apps.uncovered': section(cut),
      'remote_apps.partially_covered': section(partly),
      'unlabelled_sources.top': section(unlabelled, most),
    },
    {
      // Detail `full` is used because rows are short, so all remote applications usually fit.
      detail: 'full',
      limits: findings.limits,
      hint: () =>
        'Only the first rows of each list are shown; totals and the score count all. sections with one name shows more of it, get-traffic-flows-summary all.',
    },
  )
  const {
    'remote_apps.covered': shownCovered,
    'remote_apps.uncovered': shownUncovered,
    'remote_apps.partially_covered': shownPartly,
    'unlabelled_sources.top': top,
    ...rest
  } = shown
  return {
    ...rest,
    remote_apps: {
      ...(shownCovered && { covered: shownCovered }),
      ...(shownUncovered && { uncovered: shownUncovered }),
      ...(shownPartly && { partially_covered: shownPartly }),
      totals: { covered: covered.length, uncovered: cut.length, partially_covered: partly.length },
    },
    unlabelled_sources: {
      total: unlabelled.length,
      half_labelled: unlabelled.filter(({ kind }) => kind === 'half_labelled').length,
      uncovered: unlabelled.filter(({ uncovered_flows: flows }) => flows > 0).length,
      ...(top && { top }),
    },
  }
}
