import { assumedOfIpTables } from '../../../domain/policy/ip-tables.js'
import { showAssumed } from '../../../schemas/assumes.js'
import { showRecorded } from '../../../schemas/recorded-otherwise.js'
import { type PlannedRule, showResolved } from '../../../domain/drafts/plan-rules.js'
import type { ResolvedService } from '../../../domain/drafts/resolve-services.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { protocolName } from '../../../domain/inventory/protocols.js'
import { describeReasons } from '../../../domain/policy/three-valued.js'
import { listDifferences } from '../../../domain/policy/compare-stored.js'
import type { Peer } from '../../../domain/ringfence/discover-peers.js'
import type { RingfenceRule } from '../../../domain/ringfence/plan-ringfence.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import { DENY_WITHHELD } from '../../../domain/ringfence/plan-ringfence.js'
import { type RingfenceWritten, bodyOf } from '../../../domain/ringfence/write-ringfence.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { type Reading, describeReading } from '../../../domain/traffic/read-flows.js'
import type { Limits } from '../../../schemas/config.js'
import type { PlannedRequest } from '../../../schemas/dry-run.js'
import type { Actor } from '../../../schemas/pce/rule-set.js'
import type { RingfenceAnswer } from '../../../schemas/ringfence.js'
import { adviseOnRows, showSections } from '../byte-budget.js'
import { describeDeviations, deviationsOf, warnOfDeviations } from './warn-of-ringfence.js'
import { byLoss, groupLosses, listCut, listInfrastructure } from './list-losses.js'
import { warnOfPlan } from './warn-of-ringfence.js'

/** Maximum number of ports shown for each peer. */
const MOST_PORTS = { standard: 20, full: 200 }

type Detail = 'standard' | 'full'

/** Builds the answer of a ringfence: the plan and its result. `written` is null for a dry run (T15). */
export function showRingfence(
  prepared: Prepared,
  written: RingfenceWritten | null,
  { detail, limits, orgId }: { detail: Detail; limits: Limits; orgId: string },
): RingfenceAnswer & Reading {
  const { plan, ranking } = prepared
  const ranked = ranking === null || typeof ranking === 'string' ? null : ranking
  const cut = listCut(plan.sources)
  const infrastructure = ranked === null ? [] : listInfrastructure(plan, ranked)
  const lists: Record<string, object[]> = {
    would_be_cut: groupLosses(plan.sources),
    infrastructure_sources: infrastructure,
    unlabelled_inbound: plan.sources.others.toSorted(byLoss).map((one) => showPorts(one, detail)),
    inbound_remote_apps: plan.remotes.map(({ allowedByDefaultPossible, ...remote }) => ({
      ...showPorts(remote, detail),
      ...(allowedByDefaultPossible && { allowed_by_default_possible: true }),
    })),
    ...(written === null
      ? { planned_rules: listPlanned(prepared), requests: listRequests(prepared, orgId) }
      : { rules: listWritten(prepared, written) }),
    skipped_existing_rules: plan.standingRules.map((rule) => ({ ...describeRule(rule), href: rule.href })),
    skipped_already_allowed: plan.skippedAllowed,
    outbound_remote_apps: plan.destinations.map((remote) => showPorts(remote, detail)),
  }
  const href = written?.href ?? prepared.ruleSet?.href
  const { inbound, outbound } = prepared.discovery.reads
  const truncation = describeTruncation({ inbound, outbound, ...(ranked !== null && { estate: ranked.read }) })
  const deviations = deviationsOf(prepared, written)
  const warnings = [
    ...warnOfDeviations(deviations),
    ...(truncation.discovery_warning === undefined ? [] : [truncation.discovery_warning]),
    ...warnOfPlan(prepared, cut, infrastructure),
    ...(written?.stored?.warning === undefined ? [] : [written.stored.warning]),
  ]
  const shown = showSections(
    {
      message: `${describeOutcome(prepared, written)}${describeDeviations(deviations)}`,
      ...(written === null && { dry_run: true }),
      warnings,
      ...describeOptions(prepared),
      merged: prepared.ruleSet !== null,
      workloads: prepared.workloads,
      flows_analysed: { inbound: inbound.rows, outbound: outbound.rows },
      ...(prepared.denyWithheld && { deny_withheld: `Left out: ${DENY_WITHHELD}` }),
      ...truncation,
      policy_coverage: describeCoverage(prepared),
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
  // The total of each list is needed only if a list was cut.
  const isCut = shown.truncated_sections !== undefined
  return { ...answer, ...(isCut && { section_totals: totals }), ruleset } as unknown as RingfenceAnswer & Reading
}

/**
 * Lists the rules that a real run would add, in the order in which it would write them. The requests in the answer
 * contain further details.
 */
const listPlanned = (prepared: Prepared): object[] =>
  prepared.plan.newRules.map((rule: RingfenceRule, at) => {
    const planned = prepared.rules[at] as PlannedRule
    return { type: rule.type, ...describePlanned(planned), ...describeDeny(rule, planned, prepared) }
  })

const listWritten = (prepared: Prepared, written: RingfenceWritten): object[] =>
  prepared.plan.newRules.map((rule: RingfenceRule, at) => {
    const planned = prepared.rules[at] as PlannedRule
    return {
      ...describeRule(rule),
      description: planned.body.description ?? '',
      ...describePlanned(planned),
      ...describeDeny(rule, planned, prepared),
      href: written.ruleHrefs[at] ?? '',
      ...listDifferences(written.stored?.ruleDifferences[at]),
    }
  })

function showPorts<P extends Peer>({ ports, ...peer }: P, detail: Detail) {
  const shown = ports.slice(0, MOST_PORTS[detail]).map(({ dependsOn, ...port }) => ({
    ...port,
    ...(dependsOn !== undefined && { depends_on: describeReasons(dependsOn) }),
  }))
  return { ...peer, ports_total: ports.length, observed_ports: shown }
}

function describeOptions({ application, options, deny, existing, lookbackDays }: Prepared) {
  const [app, env] = application
  return {
    app: app.value,
    env: env.value,
    app_label_href: app.href,
    env_label_href: env.href,
    lookback_days: lookbackDays,
    selective: options.selective ?? false,
    skip_allowed: options.skip_allowed ?? false,
    ...(deny !== null && { deny_consumer: deny.mode, enforcement_mode: 'selective' }),
    ...(deny === null && options.deny_service !== undefined && { deny_service_ignored: true }),
    has_deny_all_inbound: existing.deniesAllInbound,
  }
}

function describeTruncation(reads: Record<string, { truncated: boolean; parts: number | null }>): {
  discovery_truncated: string[]
  discovery_warning?: string
} {
  const truncated = Object.entries(reads).flatMap(([name, read]) => (read.truncated ? [name] : []))
  const isDivided = Object.values(reads).every(({ parts }) => parts !== null)
  const advice = isDivided ? 'Shorten lookback_days.' : 'Give complete: true, or shorten lookback_days.'
  const text = `The row limit was reached (${truncated.join(', ')}): sources that were not read get no rule and are not listed. ${advice}`
  return { discovery_truncated: truncated, ...(truncated.length > 0 && { discovery_warning: text }) }
}

function describeCoverage({ plan, options }: Prepared) {
  const { remotes } = plan
  const letIn = remotes.filter(({ rule }) => rule !== 'excluded')
  const already = letIn.filter(({ coverage }) => coverage === 'already_allowed').length
  const [newly, excluded] = [letIn.length - already, remotes.length - letIn.length]
  const byDefault = remotes.filter((remote) => remote.allowedByDefaultPossible).length
  const skipped = options.skip_allowed === true ? ', and get no rule' : ''
  return {
    already_allowed: already,
    newly_allowed: newly,
    ...(excluded > 0 && { excluded }),
    total_remote_apps: remotes.length,
    allowed_by_default_possible: byDefault,
    description: `${countOf(remotes.length, 'remote application')} seen as source: rules allow all flows of ${already} today${skipped}; ${newly} would be newly allowed${excluded > 0 ? `; ${excluded} left out by exclude_sources or environments` : ''}.`,
  }
}

function describeOutcome(
  { name, ruleSet, rules, deny, denyWithheld }: Prepared,
  written: RingfenceWritten | null,
): string {
  const count = countOf(rules.length, 'rule')
  if (ruleSet !== null && rules.length === 0) {
    const all = denyWithheld ? 'all its allow rules' : 'all its rules'
    return `The rule set ${quote(name)} already has ${all}; nothing to write.`
  }
  const made = `made for ${deny === null ? 'full' : 'selective'} enforcement`
  const what =
    ruleSet === null ? `the rule set ${quote(name)} with ${count}` : `${count} to the rule set ${quote(name)}`
  if (written === null) return `Would ${ruleSet === null ? 'create' : 'add'} ${what} in draft, ${made}.`
  return `${ruleSet === null ? 'Created' : 'Added'} ${what} in draft, ${made}. It takes effect when provisioned.`
}

/** Lists the requests that a real run sends, in order. */
export function listRequests(prepared: Prepared, orgId: string): PlannedRequest[] {
  const { ruleSet, name, rules } = prepared
  const collection = `/orgs/${orgId}/sec_policy/draft/rule_sets`
  const parent = ruleSet === null ? `${collection}/{id of ${name}}` : toDraftHref(ruleSet.href)
  return [
    ...(ruleSet === null ? [{ method: 'POST', path: collection, body: bodyOf(prepared) }] : []),
    ...rules.map((rule) => ({ method: 'POST', path: `${parent}/${rule.collection}`, body: rule.body })),
  ]
}

/** Describes the purpose of a rule. */
export const describeRule = ({ type, remote }: RingfenceRule) => ({ type, ...remote })

/** Describes a planned rule in words. */
export function describePlanned({ consumers, providers, services }: PlannedRule) {
  return {
    consumers: consumers.map(nameActor).join(', '),
    providers: providers.map(nameActor).join(', '),
    services: services.map(nameService).join(', '),
  }
}

/** Returns the fields that only a deny rule has; returns no fields for any other rule. */
export function describeDeny({ type }: RingfenceRule, { services }: PlannedRule, { deny }: Prepared) {
  if (deny === null || type !== 'deny (block all inbound)') return {}
  return { deny_consumer_mode: deny.mode, ingress_services_resolved: showResolved(services) }
}

function nameActor({ actors, label, ip_list: list }: Actor): string {
  if (actors !== undefined) return 'All workloads'
  return label === undefined ? (list?.name ?? list?.href ?? '') : `${label.key}=${label.value}`
}

function nameService(service: ResolvedService): string {
  if ('service' in service) return service.service.name
  const { port, to_port: toPort, proto } = service.ports
  return `${port}${toPort === undefined ? '' : `-${toPort}`}/${protocolName(proto)}`
}
