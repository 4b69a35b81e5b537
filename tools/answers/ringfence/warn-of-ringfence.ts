import { warnOfSentences } from '../../../domain/drafts/warn-of-sentences.js'
import { tellUnread } from '../../../domain/inventory/kubernetes-workloads.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { isSameApplication } from '../../../domain/ringfence/discover-peers.js'
import type { Prepared } from '../../../domain/ringfence/prepare-ringfence.js'
import type { RingfenceDone } from '../../../domain/ringfence/run-batch.js'
import { DENY_WITHHELD } from '../../../domain/ringfence/plan-ringfence.js'
import type { RingfenceWritten } from '../../../domain/ringfence/write-ringfence.js'
import { portName } from '../../../domain/inventory/protocols.js'
import type { PlannedRemote } from '../../../domain/ringfence/plan-ringfence.js'
import { tellIpTables } from '../../../domain/policy/ip-tables.js'
import { undecidedBecause } from '../../../domain/policy/three-valued.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { explainRecorded, isOtherwise } from '../../../schemas/recorded-otherwise.js'
import { isMode } from '../../../schemas/pce/enforcement-modes.js'
import type { Actor } from '../../../schemas/pce/rule-set.js'
import type { CutSource, InfrastructureSource } from './list-losses.js'

/** How a written ringfence differs from the requested one, the most serious difference first. */
interface Deviations {
  /** The fields of the rule set that the PCE stored differently from what was sent. */
  changed: string[]
  denyWithheld: boolean
  /** Those of the two traffic queries (`inbound`, `outbound`) that reached the row limit. */
  truncated: string[]
  /** True if the deny rule covers only workloads, because the PCE has no Any IP list. */
  fallback: boolean
}

/** Maximum number of names listed in a sentence. */
const MOST_NAMED = 10

export function deviationsOf(
  { denyWithheld, discovery, deny, options }: Prepared,
  written: RingfenceWritten | null,
): Deviations {
  const { inbound, outbound } = discovery.reads
  return {
    changed: (written?.stored?.differences ?? []).map(({ field }) => field),
    denyWithheld,
    truncated: Object.entries({ inbound, outbound }).flatMap(([name, { truncated }]) => (truncated ? [name] : [])),
    fallback: deny !== null && deny.mode !== (options.deny_consumer ?? 'any'),
  }
}

/**
 * Returns the warnings that precede all others. A deny rule that covers only workloads (`fallback`) is not among them,
 * because warnings about the plan describe its consequences.
 */
export function warnOfDeviations({ changed, denyWithheld }: Deviations): string[] {
  return [
    changed.length > 0
      ? `The PCE stored the rule set differently (${changed.join(', ')}), so its rules may apply to more than this application. Review it before provisioning.`
      : '',
    denyWithheld ? `The deny rule was left out: ${DENY_WITHHELD}` : '',
  ].filter(Boolean)
}

/** Returns sentences about the deviations, for appending to the first sentence of the message. */
export const describeDeviations = ({ changed, denyWithheld, fallback }: Deviations): string =>
  [
    changed.length > 0 ? ' The PCE stored the rule set differently: see warnings.' : '',
    denyWithheld ? ' The deny rule is withheld: inbound traffic was not read in full.' : '',
    fallback ? ' There is no Any IP list, so the deny rule covers workloads only.' : '',
  ].join('')

/**
 * Returns the warnings about all ringfences of a batch. Each names all applications that it concerns, because the
 * warnings of a single application may be shortened in the answer.
 */
export function warnOfBatch(done: readonly RingfenceDone[]): string[] {
  const all = done.map(({ prepared, written }) => {
    const [app, env] = prepared.application
    return { name: quote(`${app.value} (${env.value})`), prepared, deviations: deviationsOf(prepared, written) }
  })
  const sayOf = (text: string, is: (prepared: Prepared, deviations: Deviations) => boolean) => {
    const names = all.flatMap(({ name, prepared, deviations }) => (is(prepared, deviations) ? [name] : []))
    return names.length === 0 ? [] : [`${text} (${countOf(names.length, 'application')}): ${named(names)}.`]
  }
  const say = (text: string, is: (deviations: Deviations) => boolean) =>
    sayOf(text, (_prepared, deviations) => is(deviations))
  return [
    ...say('The PCE stored the rule set differently', ({ changed }) => changed.length > 0),
    ...say(
      'The deny rule was left out; call again with complete: true or a shorter lookback_days',
      (one) => one.denyWithheld,
    ),
    ...say('The row limit was reached, so sources that were not read get no rule', ({ truncated }) =>
      truncated.includes('inbound'),
    ),
    ...sayOf('Sources of other environments are let in', (prepared) => listForeign(prepared).length > 0),
    ...sayOf('Rules in the words of iptables are not judged', ({ iptables }) => iptables > 0),
    ...sayOf('The present mode of some ends is not known', ({ discovery }) => discovery.modes.length > 0),
    ...sayOf('The PCE recorded decisions that its rules would not give now (recorded_otherwise)', ({ plan }) =>
      isOtherwise(plan.recorded),
    ),
    ...say('There is no Any IP list, so the deny rule covers workloads only', ({ fallback }) => fallback),
  ]
}

/** Lists the first names, followed by the number of the remaining ones. */
export function named(names: readonly string[]): string {
  const rest = names.length - MOST_NAMED
  return `${names.slice(0, MOST_NAMED).join('; ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

/** Returns warnings about what to check before the ringfence is written or provisioned, most serious first. */
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
      ? `no_workloads: no workload has the labels ${quote(`app=${app.value}`)} and ${quote(`env=${env.value}`)}; a real call would refuse.`
      : '',
    ...warnOfSentences({ ruleset_name: options.ruleset_name }),
    ...tellUnread(prepared.pods.unread),
    isFallback(prepared) ? fallback(prepared) : '',
    describeLosses(prepared, cut),
    ...prepared.others,
    cut.length > 0 ? describeEnforcement(prepared) : '',
    describeForeign(prepared),
    describeLeftOut(prepared),
    describeInfrastructure(infrastructure),
    existing.overrideDenies.length > 0
      ? `The rule set has override deny rules, which beat all its allow rules: ${named(existing.overrideDenies)}.`
      : '',
    ...existing
      .shortOf(plan.newRules.flatMap(({ need }) => (need === undefined ? [] : [need])))
      .map(({ href, reason }) => `An existing rule was not counted, because ${reason}: ${href}.`),
    existing.otherDenies.length > 0
      ? `The rule set already has other deny rules, which are taken into account: ${named(existing.otherDenies)}.`
      : '',
    deny && existing.deniesAllInbound && options.deny_service !== undefined
      ? 'An existing deny rule already covers all services, which is more than deny_service asks for.'
      : '',
    describeWider(prepared),
    isFallback(prepared) ? '' : fallback(prepared),
    describeOthers(prepared, cut),
    ...tellIpTables(prepared.iptables),
    plan.skippedAllowed.length > 0 && cut.some(({ kind }) => kind === 'application')
      ? `${countOf(plan.skippedAllowed.length, 'application')} skipped as already allowed get no rule; those listed in would_be_cut may lose their traffic.`
      : '',
    plan.remotes.some(({ allowedByDefaultPossible }) => allowedByDefaultPossible)
      ? 'In selective mode, or in one that is not known, traffic passes that no rule is known to allow (allowed_by_default_possible).'
      : '',
    ...discovery.modes,
    explainRecorded(plan.recorded),
    describeOutbound(prepared),
    discovery.reads.inbound.draftUnavailable !== null
      ? `The PCE gave no draft decisions (${discovery.reads.inbound.draftUnavailable}), so effects are judged from the rules alone.`
      : '',
    typeof ranking === 'string' ? ranking : '',
    ...(prepared.covered ?? []),
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

/**
 * Returns a sentence that says whether traffic is lost already when the ringfence is provisioned, or only when the
 * enforcement mode changes.
 */
function describeEnforcement({ workloads, pods, deny }: Prepared): string {
  const { selective = 0, full = 0 } = workloads.enforcement_modes
  const of = `of ${countOf(workloads.managed, 'managed workload')}`
  const modes = Object.entries(workloads.enforcement_modes)
  const untold = modes.reduce((sum, [mode, many]) => (isMode(mode) ? sum : sum + many), 0)
  if (deny !== null && selective > 0)
    return `${selective} ${of} are already in selective mode, where the deny rule takes effect as soon as it is provisioned.`
  if (full > 0)
    return `${full} ${of} are already in full enforcement, where anything no rule allows is already dropped.`
  if (untold > 0)
    return `The PCE does not tell the mode of ${untold} ${of}: whether they drop anything yet is not known.`
  if (pods.unread !== null) return `None ${of} enforces this yet; what Kubernetes workloads drop is not known.`
  return `None ${of} enforces this yet: nothing is dropped until their mode changes.`
}

/** Warns if an existing deny rule denies more sources than this call requests. */
function describeWider({ deny, ruleSet, plan }: Prepared): string {
  const rule = ruleSet?.deny_rules?.find(({ href }) => plan.standingRules.some((one) => one.href === href))
  if (deny === null || rule === undefined) return ''
  const nameOf = ({ actors, ip_list: list }: Actor) => actors ?? toDraftHref(list?.href ?? '')
  const asked = new Set(deny.actors.map(nameOf))
  const more = rule.consumers.filter((actor) => !asked.has(nameOf(actor)))
  if (more.length === 0) return ''
  return `The existing deny rule denies more sources than deny_consumer ${deny.mode} asks for (${named(more.map((actor) => (actor.actors === 'ams' ? 'all workloads' : nameOf(actor) || 'others')))}): ${rule.href}.`
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
    return `${missing}deny_consumer ams denies workloads only: other addresses are still let in (${countOf(open, 'source')} seen). The rule is also written to every managed source.`
  if (isAnyListUnclear)
    return 'The Any IP list may not cover every address: the deny rule does not block what it leaves out.'
  return anyListIsIpv4Only ? 'The Any IP list has no IPv6 range, so the deny rule does not block IPv6.' : ''
}

/** Explains which other parts of the policy make the losses uncertain. */
function describeOthers({ surroundings: { pending, unread } }: Prepared, cut: readonly CutSource[]): string {
  const unclear = cut.some(({ effect }) => effect === 'possibly_cut')
  return [
    pending.length > 0 && unclear
      ? `There are other changes that are not provisioned (${named(pending.map(quote))}); what is possibly_cut may depend on them.`
      : '',
    unread.length > 0
      ? `The deny rules of other rule sets could not be read (${named([...new Set(unread)].map(quote))}); what they may deny counts as possibly_cut.`
      : '',
  ]
    .filter(Boolean)
    .join(' ')
}

/**
 * Warns of infrastructure services that lose traffic, because such a loss affects more than one application. Services
 * that stay allowed are only counted here and listed in infrastructure_sources.
 */
function describeInfrastructure(found: readonly InfrastructureSource[]): string {
  const lost = found.filter(({ loses_traffic: loses }) => loses)
  if (lost.length > 0) {
    const names = named(lost.map(({ app, env, tier }) => `${quote(`${app} (${env})`)}, ${tier}`))
    return `Infrastructure services would lose traffic: ${names}.`
  }
  return found.length === 0
    ? ''
    : `${countOf(found.length, 'infrastructure service')} among the sources (infrastructure_sources) would stay allowed; check their rules first.`
}

/** Lists the applications of other environments whose traffic an allow rule of the ringfence permits, busiest first. */
export const listForeign = ({ plan, application: [, env] }: Pick<Prepared, 'plan' | 'application'>): PlannedRemote[] =>
  plan.remotes
    .filter((remote) => remote.env !== env.value && (remote.rule === 'new' || remote.rule === 'existing'))
    .sort((a, b) => b.connections - a.connections)

/** Maximum number of ports named for each source. */
const MOST_PORTS = 5

function describeForeign(prepared: Prepared): string {
  const foreign = listForeign(prepared)
  if (foreign.length === 0) return ''
  const names = foreign.map(({ app, env, connections, ports, rule }) => {
    const all = [...new Set(ports.map(portName))]
    const more = all.length > MOST_PORTS ? ', …' : ''
    const standing = rule === 'existing' ? ', by an existing rule' : ''
    return `${quote(`${app} (${env})`)}, ${countOf(connections, 'connection')} on ${all.slice(0, MOST_PORTS).join(', ')}${more}${standing}`
  })
  return `Lets in sources of other environments than ${quote(prepared.application[1].value)}: ${named(names)}. exclude_sources or environments leaves them out.`
}

/** Describes the sources that the caller left out, and names exclusions that do not have the expected effect. */
function describeLeftOut({ plan, choice }: Prepared): string {
  const nameOf = ({ app, env }: { app: string; env: string }) => quote(`${app} (${env})`)
  const out = plan.remotes.filter(({ rule }) => rule === 'excluded')
  const standing = plan.standingRules.filter(({ remote }) => remote !== undefined && choice.leavesOut(remote))
  return [
    standing.length > 0
      ? `Still let in by existing rules although left out: ${named(standing.map(({ remote, href }) => `${remote === undefined ? '' : nameOf(remote)} by ${href}`))}.`
      : '',
    plan.unusedExclusions.length > 0
      ? `exclude_sources names what is not among the sources: ${named(plan.unusedExclusions.map(quote))}.`
      : '',
    out.length > 0 ? `Left out, without a rule: ${named(out.map(nameOf))}.` : '',
  ]
    .filter(Boolean)
    .join(' ')
}

/** Maximum number of destinations named in the warning, and maximum number of ports named for each destination. */
const MOST_DESTINATIONS = 5

/**
 * Describes the outbound traffic that the application's workloads lose, or may lose, in the enforcement mode for which
 * the ringfence is intended; empty if there is none.
 */
export function describeOutbound({ plan, ranking, deny }: Prepared): string {
  const { certain, byDefault, untold, open, undecided, destinations } = plan.lostOutbound
  const unclear =
    open > 0
      ? `Of ${countOf(open, 'outbound connection')} it is not known whether ${deny === null ? 'full' : 'selective'} enforcement drops them: ${undecidedBecause([undecided])}.`
      : ''
  if (destinations.length === 0) return unclear
  const rest = destinations.length - MOST_DESTINATIONS
  const top = destinations.slice(0, MOST_DESTINATIONS).map(({ name, ports }) => {
    const more = ports.length > MOST_DESTINATIONS ? ', …' : ''
    return `${quote(name)} on ${ports.slice(0, MOST_DESTINATIONS).join(', ')}${more}`
  })
  const total = certain + byDefault + untold
  const countIn = (part: number) => (part === total ? 'all' : part)
  const selective =
    byDefault > 0
      ? `, ${countIn(byDefault)} of them allowed today only because selective mode lets out anything no rule denies`
      : ''
  const perhaps =
    untold > 0
      ? `, ${countIn(untold)} of them perhaps allowed today only because a mode that is not known lets out anything no rule denies`
      : ''
  const ranked = ranking === null || typeof ranking === 'string' ? [] : ranking.rows
  const infrastructure = destinations.filter(({ application }) =>
    ranked.some(
      (row) => row.tier !== 'Standard Application' && application !== null && isSameApplication(row, application),
    ),
  )
  return [
    `A ringfence has no outbound rules: in full enforcement the application's own workloads also drop outbound traffic that no rule allows (${countOf(total, 'connection')} in the window${selective}${perhaps}).`,
    ` Busiest: ${top.join('; ')}${rest > 0 ? ` and ${rest} more` : ''}.`,
    infrastructure.length > 0
      ? ` Infrastructure services among them: ${infrastructure
          .slice(0, MOST_DESTINATIONS)
          .map(({ name }) => quote(name))
          .join(', ')}.`
      : '',
    unclear && ` ${unclear}`,
  ].join('')
}
