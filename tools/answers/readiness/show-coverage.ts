import type { Static } from '@sinclair/typebox'
import type { Limits } from '../../../schemas/config.js'
import type { Application } from '../../../domain/traffic/applications.js'
import { describeBothWays, type BothWays } from '../../../domain/traffic/read-both-ways.js'
import { showSections } from '../show-sections.js'
import type { Coverage, PathCoverage } from '../../../domain/readiness/collect-coverage.js'
import type { WeaklyAllowed } from '../../../domain/readiness/count-allowed-by-default.js'
import type { CoverageOutput } from './coverage-output.js'
import { recommendCoverage } from '../../../domain/readiness/recommend-coverage.js'
import { coverage, judged } from '../../../domain/readiness/tally-decisions.js'

interface Findings {
  application: Application
  days: number
  found: Coverage
  weaklyAllowed: WeaklyAllowed
  /** Why the PCE did not say what the draft decides; null when it did. */
  draftUnavailable: string | null
  reads: BothWays
  detail: 'standard' | 'full'
  limits: Limits
}

/** The answer of get-policy-coverage-report: figures of everything, and as many rows of each list as fit. */
export function showCoverage(findings: Findings): Static<typeof CoverageOutput> {
  const { application, found, weaklyAllowed, draftUnavailable, reads, detail, limits } = findings
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
    allowed_by_default_possible: weaklyAllowed.byDefault > 0,
    inbound: { ...figures(inbound), totals: totals(inbound) },
    outbound: { ...figures(outbound), totals: totals(outbound) },
    intra: figures(intra),
    draft: {
      assessed: draft !== null,
      ...(draftUnavailable !== null && { reason: draftUnavailable }),
      overall_coverage_percentage: draft === null ? null : coverage(draft.flows),
      would_allow_flows: draft === null ? null : found.wouldAllow,
    },
    recommendation: recommendCoverage(found, weaklyAllowed),
    ...describeBothWays(reads),
  }
  const section = <T>(rows: readonly T[]) => ({ rows, total: rows.length })
  const shown = showSections(
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
      hint: (limit) => `At most ${limit} rows a list are shown, the busiest first; totals and percentages count all.`,
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
      uncovered_services: inboundServices,
      uncovered_apps: inboundApps,
      uncovered_unlabelled: inboundUnlabelled,
    },
    outbound: {
      ...rest.outbound,
      uncovered_services: outboundServices,
      uncovered_apps: outboundApps,
      uncovered_unlabelled: outboundUnlabelled,
    },
    draft: { ...rest.draft, rules: draftRules },
  }
}

function figures({ decisions, draft }: PathCoverage) {
  return {
    total_flows: judged(decisions.flows),
    total_connections: judged(decisions.connections),
    by_decision: decisions.flows,
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
