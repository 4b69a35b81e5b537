import type { Static } from '@sinclair/typebox'
import type { Limits } from '../../../schemas/config.js'
import type { countModes } from '../../../domain/inventory/count-modes.js'
import type { Application } from '../../../domain/traffic/applications.js'
import { describeBothWays, type BothWays } from '../../../domain/traffic/read-both-ways.js'
import { showSections } from '../show-sections.js'
import type { ReadinessTraffic } from '../../../domain/readiness/collect-readiness.js'
import type { RingfenceState } from '../../../domain/readiness/describe-ringfence.js'
import type { ReadinessOutput } from './readiness-output.js'
import { recommendReadiness } from '../../../domain/readiness/recommend-readiness.js'
import { scoreReadiness } from '../../../domain/readiness/score-readiness.js'
import { coverage, judged } from '../../../domain/readiness/tally-decisions.js'

const LISTED_SOURCES = 20

interface Findings {
  application: Application
  days: number
  /** Of the application's workloads. */
  counts: ReturnType<typeof countModes>
  ringfence: RingfenceState
  traffic: ReadinessTraffic
  reads: BothWays
  limits: Limits
}

/** The answer of enforcement-readiness: figures of everything, and of the remote applications as many as fit. */
export function showReadiness(findings: Findings): Static<typeof ReadinessOutput> {
  const { application, counts, ringfence, reads } = findings
  const { uncovered, ...judgedTraffic } = findings.traffic
  const { decisions, remotes, weaklyAllowed } = judgedTraffic
  const { total_workloads: total, managed_only: managed, offline } = counts
  const fleet = { total, managed: managed.total, modes: managed.enforcement_modes, offline }
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
      policy_decisions: decisions.flows,
      coverage_percentage: coverage(decisions.flows),
      connection_coverage_percentage: coverage(decisions.connections),
      allowed_by_default_possible: weaklyAllowed.byDefault > 0,
    },
    uncovered_flows_total: uncovered.total,
    has_ringfence: ringfence.enabled === true,
    ringfence,
    recommendations: recommendReadiness(facts, readiness),
    ...describeBothWays(reads),
  }
  const { covered, uncovered: cut, partlyCovered: partly, unlabelled } = remotes
  const section = <T>(rows: readonly T[], most = Infinity) => ({ rows: rows.slice(0, most), total: rows.length })
  const shown = showSections(
    envelope,
    {
      uncovered_flows: uncovered,
      'remote_apps.covered': section(covered),
      'remote_apps.uncovered': section(cut),
      'remote_apps.partially_covered': section(partly),
      'unlabelled_sources.top': section(unlabelled, LISTED_SOURCES),
    },
    {
      // Short rows: all the remote applications there are fit as a rule.
      detail: 'full',
      limits: findings.limits,
      hint: () =>
        'The first of each list are shown; totals and the score count all. get-traffic-flows-summary shows more.',
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
      covered: shownCovered,
      uncovered: shownUncovered,
      partially_covered: shownPartly,
      totals: { covered: covered.length, uncovered: cut.length, partially_covered: partly.length },
    },
    unlabelled_sources: {
      total: unlabelled.length,
      half_labelled: unlabelled.filter(({ kind }) => kind === 'half_labelled').length,
      uncovered: unlabelled.filter(({ uncovered_flows: flows }) => flows > 0).length,
      top,
    },
  }
}
