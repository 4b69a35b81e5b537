import { assumedOfIpTables } from '../../../domain/policy/ip-tables.js'
import { describeReasons } from '../../../domain/policy/three-valued.js'
import type { Peer } from '../../../domain/ringfence/discover-peers.js'
import { DENY_WITHHELD } from '../../../domain/ringfence/plan-ringfence.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import type { RingfenceWritten } from '../../../domain/ringfence/write-ringfence.js'
import { type Reading, describeReading } from '../../../domain/traffic/read-flows.js'
import { showAssumed } from '../../../schemas/assumes.js'
import type { Limits } from '../../../schemas/config.js'
import { showRecorded } from '../../../schemas/recorded-otherwise.js'
import type { RingfenceAnswer } from '../../../schemas/ringfence.js'
import { adviseOnRows, showSections } from '../byte-budget.js'
import { describeRule, listHrefs, listPlanned, listRequests, listWritten } from './describe-rules.js'
import { byLoss, groupLosses, listCut, listInfrastructure } from './list-losses.js'
import { describeCoverage, describeOutcome, describeTruncation } from './tell-outcome.js'
import { describeDeviations, deviationsOf, warnOfDeviations, warnOfPlan } from './warn-of-ringfence.js'

/** Maximum number of ports shown for each peer. */
const MOST_PORTS = { standard: 20, full: 200 }

/** The sentence that replaces the plan in the short answer of a real call. */
const WHERE_PLAN_IS = 'The plan and its warnings: dry_run or detail_level full shows them.'

type Detail = 'standard' | 'full'

/**
 * Builds the answer of a ringfence (T15). `written` is null for a dry run, whose answer has the plan. The answer of a
 * real call says what now exists, which sources are let in or cut, and what happened during the write. It only counts
 * the plan and its warnings, because the dry run has shown them (D257). For a batch, one sentence for all results says
 * where to see plans. At detail `full`, a dry run shows the requests instead of the rules in words, and a real call
 * includes the plan as well.
 */
export function showRingfence(
  prepared: Prepared,
  written: RingfenceWritten | null,
  { detail, limits, orgId, isOfBatch = false }: { detail: Detail; limits: Limits; orgId: string; isOfBatch?: boolean },
): RingfenceAnswer & Reading {
  const { plan, ranking, discovery } = prepared
  const { inbound, outbound } = discovery.reads
  const estate = typeof ranking === 'object' && ranking !== null && { estate: ranking.read }
  const truncation = describeTruncation({ inbound, outbound, ...estate })
  const deviations = deviationsOf(prepared, written)
  const found = warnOfDeviations(deviations)
  const unread = truncation.discovery_warning === undefined ? [] : [truncation.discovery_warning]
  const stored = written?.stored?.warning === undefined ? [] : [written.stored.warning]
  const planned = warnOfPlan(prepared, listCut(plan.sources), listInfrastructure(prepared))
  const isBrief = written !== null && detail === 'standard'
  const lists: Record<string, object[]> = {
    would_be_cut: groupLosses(plan.sources),
    ...(isBrief ? listWhatStands(prepared, written) : listPlan(prepared, written, detail, orgId)),
  }
  const { description, ...counts } = describeCoverage(prepared)
  const href = written?.href ?? prepared.ruleSet?.href
  const shown = showSections(
    {
      message: `${describeOutcome(prepared, written)}${describeDeviations(deviations)}`,
      ...(written === null && { dry_run: true }),
      warnings: isBrief ? [...found, ...unread, ...stored] : [...found, ...unread, ...planned, ...stored],
      ...(isBrief && planned.length > 0 && { warnings_of_plan: planned.length }),
      ...(isBrief && !isOfBatch && { left_out: WHERE_PLAN_IS }),
      ...describeOptions(prepared),
      ...(!isBrief && describeQuestion(prepared)),
      merged: prepared.ruleSet !== null,
      workloads: prepared.workloads,
      flows_analysed: { inbound: inbound.rows, outbound: outbound.rows },
      ...(prepared.denyWithheld && { deny_withheld: `Left out: ${DENY_WITHHELD}` }),
      ...(isBrief ? { discovery_truncated: truncation.discovery_truncated } : truncation),
      policy_coverage: isBrief ? counts : { ...counts, description },
      ...showRecorded(plan.recorded),
      ...showAssumed([...plan.assumes, ...assumedOfIpTables(prepared.iptables)]),
      section_totals: Object.fromEntries(Object.entries(lists).map(([name, rows]) => [name, rows.length])),
      ruleset: { ...(href !== undefined && { href }), name: prepared.name },
      ...describeReading(inbound, outbound),
    },
    Object.fromEntries(Object.entries(lists).map(([name, rows]) => [name, { rows, total: rows.length }])),
    {
      detail,
      limits,
      hint: (limit, isFull) =>
        `At most ${limit} rows per list are shown; section_totals counts all. ${adviseOnRows(detail, isFull, 'A shorter lookback_days has fewer.')}`,
    },
  )
  const { rules, section_totals: totals, ...answer } = shown as typeof shown & { rules?: object[] }
  const ruleset = { ...answer.ruleset, ...(rules !== undefined && { rules }) }
  // The total of each list is needed only if at least one list was cut.
  const isCut = shown.truncated_sections !== undefined
  return { ...answer, ...(isCut && { section_totals: totals }), ruleset } as unknown as RingfenceAnswer & Reading
}

/** Lists the rules that the ringfence now has, new ones and others, by href. */
const listWhatStands = (prepared: Prepared, written: RingfenceWritten): Record<string, object[]> => ({
  rules: listHrefs(prepared, written),
  skipped_existing_rules: prepared.plan.standingRules.map(({ type, remote, href }) => ({
    type,
    ...(remote !== undefined && { app: remote.app, env: remote.env }),
    href,
  })),
})

/** Lists the application's peers, and the rules in the form that this level of detail uses. */
function listPlan(
  prepared: Prepared,
  written: RingfenceWritten | null,
  detail: Detail,
  orgId: string,
): Record<string, object[]> {
  const { plan } = prepared
  const planned: Record<string, object[]> =
    detail === 'full' ? { requests: listRequests(prepared, orgId) } : { planned_rules: listPlanned(prepared) }
  return {
    infrastructure_sources: listInfrastructure(prepared),
    unlabelled_inbound: plan.sources.others.toSorted(byLoss).map((one) => showPorts(one, detail)),
    inbound_remote_apps: plan.remotes.map(({ allowedByDefaultPossible, ...remote }) => ({
      ...showPorts(remote, detail),
      ...(allowedByDefaultPossible && { allowed_by_default_possible: true }),
    })),
    ...(written === null ? planned : { rules: listWritten(prepared, written) }),
    skipped_existing_rules: plan.standingRules.map((rule) => ({ ...describeRule(rule), href: rule.href })),
    skipped_already_allowed: plan.skippedAllowed,
    outbound_remote_apps: plan.destinations.map((remote) => showPorts(remote, detail)),
  }
}

function showPorts<P extends Peer>({ ports, ...peer }: P, detail: Detail) {
  const shown = ports.slice(0, MOST_PORTS[detail]).map(({ dependsOn, ...port }) => ({
    ...port,
    ...(dependsOn !== undefined && { depends_on: describeReasons(dependsOn) }),
  }))
  return { ...peer, ports_total: ports.length, observed_ports: shown }
}

const describeQuestion = ({ application: [app, env], options, lookbackDays }: Prepared) => ({
  app_label_href: app.href,
  env_label_href: env.href,
  lookback_days: lookbackDays,
  skip_allowed: options.skip_allowed ?? false,
})

function describeOptions({ application, options, deny, existing }: Prepared) {
  const [app, env] = application
  return {
    app: app.value,
    env: env.value,
    selective: options.selective ?? false,
    ...(deny !== null && { deny_consumer: deny.mode, enforcement_mode: 'selective' }),
    ...(deny === null && options.deny_service !== undefined && { deny_service_ignored: true }),
    has_deny_all_inbound: existing.deniesAllInbound,
  }
}
