import type { Actor } from '../../../schemas/pce/rule-set.js'
import { countOf } from '../../../domain/text/count-of.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { named } from './grave-warnings.js'
import type { InfrastructureSource, CutSource } from './list-cut.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import { describeOutbound } from './warn-of-outbound.js'

/** What to look at before this is written or provisioned; the gravest first. */
export function warnOfPlan(
  prepared: Prepared,
  cut: readonly CutSource[],
  infrastructure: readonly InfrastructureSource[],
): string[] {
  const { plan, existing, workloads, application, discovery, ranking, options } = prepared
  const deny = prepared.deny !== null
  const [app, env] = application
  return [
    workloads.total === 0
      ? `no_workloads: no workload has the labels app=${app.value} and env=${env.value}; a real call would refuse.`
      : '',
    isFallback(prepared) ? fallback(prepared) : '',
    describeLosses(prepared, cut),
    cut.length > 0 ? describeEnforcement(prepared) : '',
    lostNames(
      infrastructure.filter(({ loses_traffic: loses }) => loses),
      'Infrastructure services would lose traffic',
    ),
    lostNames(
      infrastructure.filter(({ loses_traffic: loses }) => !loses),
      'Infrastructure services are among the sources and stay allowed; check their rules first',
    ),
    existing.overrideDenies.length > 0
      ? `The rule set has override deny rules, which beat all of its allow rules: ${named(existing.overrideDenies)}.`
      : '',
    ...existing
      .shortOf(plan.newRules.flatMap(({ need }) => (need === undefined ? [] : [need])))
      .map(({ href, reason }) => `An existing rule does not count, because ${reason}: ${href}.`),
    existing.denies.some(({ isUnclear }) => isUnclear)
      ? 'The rule set has other deny rules, whose reach is not judged; what they may concern counts as possibly_cut.'
      : '',
    deny && existing.deniesAllInbound && options.deny_service !== undefined
      ? 'An existing deny rule covers all services already, which is more than deny_service asks for.'
      : '',
    describeWider(prepared),
    isFallback(prepared) ? '' : fallback(prepared),
    describeOthers(prepared, cut),
    plan.skippedAllowed.length > 0 && cut.some(({ kind }) => kind === 'application')
      ? `${countOf(plan.skippedAllowed.length, 'application')} skipped as already allowed get no rule; those listed in would_be_cut may lose their traffic.`
      : '',
    plan.remotes.some(({ allowedByDefaultPossible }) => allowedByDefaultPossible)
      ? 'In selective mode "allowed" may mean only that no deny rule matched (allowed_by_default_possible).'
      : '',
    deny ? '' : describeOutbound(prepared),
    discovery.reads.inbound.draftUnavailable !== null
      ? `The PCE gave no draft decisions (${discovery.reads.inbound.draftUnavailable}): what rules do to each other is judged by the rules alone.`
      : '',
    typeof ranking === 'string' ? ranking : '',
  ].filter(Boolean)
}

function describeLosses({ deny }: Prepared, cut: readonly CutSource[]): string {
  if (cut.length === 0) return ''
  const kinds = [...new Set(cut.map(({ kind }) => kind))].map((kind) => {
    return `${cut.filter((one) => one.kind === kind).length} ${kind}`
  })
  const connections = cut.reduce((sum, one) => sum + one.connections, 0)
  const possible = cut.filter(({ effect }) => effect === 'possibly_cut').length
  const when =
    deny === null
      ? 'once the workloads are in full enforcement'
      : 'once this is provisioned and the workloads enforce it'
  const unsure = possible > 0 ? `, ${possible} of them only possibly` : ''
  return `${countOf(cut.length, 'source')} (${countOf(connections, 'connection')} in the window) would be cut ${when}${unsure}: ${kinds.join(', ')}. See would_be_cut.`
}

/** Whether the losses come with provisioning or only with another enforcement mode. */
function describeEnforcement({ workloads, deny }: Prepared): string {
  const { selective = 0, full = 0 } = workloads.enforcement_modes
  const of = `of ${countOf(workloads.managed, 'managed workload')}`
  if (deny !== null && selective > 0)
    return `${selective} ${of} are in selective mode already: there the deny rule cuts as soon as it is provisioned.`
  if (full > 0) return `${full} ${of} are in full enforcement already, where what no rule allows is dropped today.`
  return `None ${of} enforces this yet: nothing is dropped before their mode is changed.`
}

/** A deny rule that stands may deny more sources than this call asks for. */
function describeWider({ deny, ruleSet, plan }: Prepared): string {
  const rule = ruleSet?.deny_rules?.find(({ href }) => plan.standingRules.some((one) => one.href === href))
  if (deny === null || rule === undefined) return ''
  const nameOf = ({ actors, ip_list: list }: Actor) => actors ?? toDraftHref(list?.href ?? '')
  const asked = new Set(deny.actors.map(nameOf))
  const more = rule.consumers.filter((actor) => !asked.has(nameOf(actor)))
  if (more.length === 0) return ''
  return `The deny rule that stands denies more sources than deny_consumer ${deny.mode} asks for (${named(more.map((actor) => (actor.actors === 'ams' ? 'all workloads' : nameOf(actor) || 'others')))}): ${rule.href}.`
}

const isFallback = ({ deny, options }: Prepared) => deny !== null && deny.mode !== (options.deny_consumer ?? 'any')

function fallback({ deny, options, anyListIsIpv4Only, isAnyListUnclear, plan }: Prepared): string {
  if (deny === null) return ''
  const { mode } = deny
  const open = plan.sources.others.filter(
    ({ kind, ports }) =>
      kind !== 'unlabelled_workload' &&
      kind !== 'half_labelled' &&
      ports.some(({ effect }) => effect === 'not_affected'),
  ).length
  const missing =
    mode !== (options.deny_consumer ?? 'any') ? 'The PCE has no Any IP list, so the deny rule falls back to ams. ' : ''
  if (mode === 'ams')
    return `${missing}deny_consumer ams denies workloads only: addresses that are none stay let in (${countOf(open, 'source')} seen). It reaches every managed source too.`
  if (isAnyListUnclear)
    return 'The Any IP list may not hold every address: what the deny rule may let through counts as possibly_cut.'
  return anyListIsIpv4Only ? 'The Any IP list holds no IPv6: the deny rule lets IPv6 addresses in.' : ''
}

/** What of others makes losses uncertain. */
function describeOthers({ others: { pending, unread } }: Prepared, cut: readonly CutSource[]): string {
  const unclear = cut.some(({ effect }) => effect === 'possibly_cut')
  return [
    pending.length > 0 && unclear
      ? `Others have changes that are not provisioned (${named(pending)}); what becomes of possibly_cut may depend on whether they are.`
      : '',
    unread.length > 0
      ? `The deny rules of other rule sets could not be read (${named([...new Set(unread)])}); what they may concern counts as possibly_cut.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

const lostNames = (found: readonly InfrastructureSource[], text: string) =>
  found.length === 0 ? '' : `${text}: ${named(found.map(({ app, env, tier }) => `${app} (${env}), ${tier}`))}.`
