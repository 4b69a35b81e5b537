import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, IngressService, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { planRules, type PlannedRule } from '../drafts/plan-rules.js'
import { resolveIngressServices, toWireServices, type ServiceReferences } from '../drafts/resolve-services.js'
import { warnOfOthers } from '../drafts/warn-of-others.js'
import { countModes, modeOf } from '../inventory/workloads.js'
import { fetchWorkloads, tellUnread, type Workloads } from '../inventory/kubernetes-workloads.js'
import { forgetLabels, type LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { createPolicyLookups, type PolicyLookups } from '../inventory/find-object.js'
import { coverFamilies } from '../policy/addresses.js'
import { countIpTables } from '../policy/ip-tables.js'
import { createConnectionJudge } from '../policy/judge-connection.js'
import { someWorkloadWith } from '../policy/match-rules.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { isUnknown } from '../policy/three-valued.js'
import { quote } from '../text/escape-text.js'
import { findOwnRuleSet, readExisting, ringfenceName, type Existing } from './find-existing.js'
import type { SourceChoice } from './choose-sources.js'
import { discoverFlows, type Discovery, type InboundFlow } from './discover-peers.js'
import { planRingfence, withholdDeny, type RingfencePlan } from './plan-ringfence.js'
import { readSurroundings, type Surroundings } from './read-surroundings.js'
import type { EstateRanking, Shared } from './share-reads.js'

export const DENY_CONSUMERS = ['any', 'ams', 'ams_and_any'] as const
export type DenyConsumer = (typeof DENY_CONSUMERS)[number]

/**
 * Returns the consumers of the deny rule. If there is no Any IP list, they are all workloads, so that the rule does not
 * cover addresses without a workload. `mode` in the result says which consumers are used.
 */
export function denyConsumersOf(asked: DenyConsumer, anyList: IpList | null): { mode: DenyConsumer; actors: Actor[] } {
  const mode = anyList === null ? 'ams' : asked
  const list = anyList === null || mode === 'ams' ? [] : [{ ip_list: { href: toDraftHref(anyList.href) } }]
  return { mode, actors: mode === 'any' ? list : [{ actors: 'ams' }, ...list] }
}

/** Options that a caller may set for one ringfence. */
export interface RingfenceOptions {
  ruleset_name?: string
  selective?: boolean
  skip_allowed?: boolean
  deny_service?: ServiceReferences
  deny_consumer?: DenyConsumer
}

export interface DenyAsked {
  mode: DenyConsumer
  actors: Actor[]
}

/** A ringfence that is ready to be written. Up to this point, a dry run and a real run are identical. */
export interface Prepared {
  application: readonly [Label, Label]
  options: RingfenceOptions
  lookbackDays: number
  choice: SourceChoice
  name: string
  workloads: { total: number; managed: number; enforcement_modes: Record<string, number> }
  /**
   * `kubernetes`: number of the application's Kubernetes workloads. `unread`: the reason why they could not be read, or
   * null.
   */
  pods: Pick<Workloads, 'kubernetes' | 'unread'>
  ruleSet: RuleSet | null
  /** Warnings that other people have pending changes in the rule set to which the ringfence adds rules. */
  others: readonly string[]
  existing: Existing
  deny: DenyAsked | null
  anyListIsIpv4Only: boolean
  /**
   * True if the Any IP list does not certainly cover all IPv4 addresses, or if it is not known whether it covers all
   * IPv6 addresses.
   */
  isAnyListUnclear: boolean
  surroundings: Pick<Surroundings, 'pending' | 'unread'>
  /** Number of iptables rules in the draft that apply to the application. Their effect is not examined. */
  iptables: number
  discovery: Discovery
  /** The plan of the ringfence. It has no deny rule if that rule is withheld for now. */
  plan: RingfencePlan
  denyWithheld: boolean
  draft: PolicySnapshot
  /** The write requests for `plan.newRules`, in the same order. */
  rules: PlannedRule[]
  ranking: EstateRanking | string | null
  /** Warnings about new rules that are unnecessary because of existing rules; absent if this was not checked. */
  covered?: readonly string[]
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/**
 * Reads everything on which a ringfence depends, and makes its plan (T15). Throws no_workloads (except in a dry run),
 * invalid_deny_service, already_exists, label_not_found, and the errors of the PCE client.
 */
export async function prepareRingfence(
  ctx: Context,
  application: readonly [Label, Label],
  options: RingfenceOptions,
  shared: Shared,
  isDryRun: boolean,
): Promise<Prepared> {
  const { pce, signal } = ctx
  const { lookbackDays } = shared
  const labels = await shared.labels()
  refuseRenamed(ctx.pce, [...application, ...shared.choice.labels], labels)
  const name = options.ruleset_name ?? ringfenceName(application)
  const lookups = createPolicyLookups(pce, labels, 'draft', signal)
  const { selective, deny_service: denyService } = options
  const asked = selective === true && denyService !== undefined ? await resolveDenyServices(lookups, denyService) : null
  const { workloads, pods, modes } = await readWorkloads(ctx, application)
  if (workloads.total === 0 && !isDryRun) {
    const [app, env] = application
    const text = `No workload has the labels ${quote(`app=${app.value}`)} and ${quote(`env=${env.value}`)}, so a ringfence would hold nothing. Nothing was written.`
    throw new ToolError('no_workloads', [text, ...tellUnread(pods.unread)].join(' '))
  }
  const policy = await shared.policy()
  const { draft, allServices } = policy
  const ruleSet = await findOwnRuleSet(ctx, application, name)
  const existing = readExisting(ruleSet, draft)
  const [anyList] = draft.anyLists
  const denyServices = selective === true ? (asked ?? [{ href: allServices }]) : null
  const deny = denyServices === null ? null : denyConsumersOf(options.deny_consumer ?? 'any', anyList ?? null)
  const planned = deny === null || denyServices === null ? null : { consumers: deny.actors, services: denyServices }
  const surroundings = await readSurroundings(
    ctx,
    policy,
    application,
    ruleSet,
    planned && { providers: [{ actors: 'ams' }], consumers: planned.consumers, ingress_services: planned.services },
  )
  const [inForce, drafted] = [await policy.inForce(), await policy.wholeDraft()]
  const active = createConnectionJudge(inForce)
  const discovery = await discoverFlows(ctx, labels, application, shared, {
    modes,
    active,
    draft: inForce === drafted ? active : createConnectionJudge(drafted),
    selective: deny !== null,
  })
  refuseRenamedSources(ctx.pce, discovery.inbound, labels)
  const complete = planRingfence({
    application,
    labels,
    discovery,
    skipAllowed: options.skip_allowed ?? false,
    choice: shared.choice,
    deny: planned,
    existing,
    allServices,
    surroundings,
  })
  const { plan, denyWithheld } = withholdDeny(complete, discovery)
  const losesApplications = deny === null && plan.lostOutbound.destinations.some((one) => one.application !== null)
  const anyFamilies = anyList && coverFamilies(anyList)
  return {
    application,
    options,
    lookbackDays,
    choice: shared.choice,
    name,
    workloads,
    pods,
    ruleSet,
    others: ruleSet === null || plan.newRules.length === 0 ? [] : await warnOfOthers(ctx, ruleSet),
    existing,
    deny,
    anyListIsIpv4Only: anyFamilies?.ipv6 === 'no',
    isAnyListUnclear: anyFamilies !== undefined && (anyFamilies.ipv4 !== 'yes' || isUnknown(anyFamilies.ipv6)),
    surroundings,
    iptables: countIpTables(draft, someWorkloadWith(application)),
    discovery,
    plan,
    denyWithheld,
    draft,
    rules: await planRules(
      lookups,
      plan.newRules.map(({ asked }) => asked),
    ),
    ranking: plan.remotes.length > 0 || losesApplications ? await shared.ranking() : null,
  }
}

async function readWorkloads(ctx: Context, application: readonly Label[]) {
  const { items, kubernetes, unread } = await fetchWorkloads(ctx, application)
  const { total_workloads: total, managed_only: managed } = countModes(items, (label) => label)
  return {
    workloads: { total, managed: managed.total, enforcement_modes: managed.enforcement_modes },
    pods: { kubernetes, unread },
    modes: new Map(items.map((one) => [one.href, modeOf(one)] as const)),
  }
}

/**
 * Converts the services of the deny rule to the form that the PCE accepts. Throws invalid_deny_service with a `reason`
 * if one of them is invalid, and ambiguous_name if several services have the same name.
 */
async function resolveDenyServices(lookups: PolicyLookups, asked: ServiceReferences): Promise<IngressService[]> {
  try {
    return toWireServices(await resolveIngressServices(lookups, asked, { deny: true }))
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    const { code, details, hint } = error
    const text = `deny_service: ${error.message.replace(/^ingress_services: /u, '')} Nothing was written.`
    if (code === 'ambiguous_name') throw new ToolError(code, text, details, { cause: error, hint })
    const reason = code !== 'invalid_ingress_services' && { reason: code }
    throw new ToolError('invalid_deny_service', text, { ...details, ...reason })
  }
}

/** Throws label_not_found if a label that the caller named has changed since it was looked up. */
function refuseRenamed(pce: PceClient, application: readonly Label[], labels: LabelIndex): void {
  for (const { href, key, value } of application)
    if (labels.get(href)?.value !== value) throw renamed(pce, `${key}=${value}`)
}

/** Throws label_not_found if the label list shows that a label used in an earlier plan has been renamed or replaced. */
export function refuseRelabelled(pce: PceClient, { application, discovery }: Prepared, labels: LabelIndex): void {
  refuseRenamed(pce, application, labels)
  refuseRenamedSources(pce, discovery.inbound, labels)
}

/**
 * Throws label_not_found unless the rules would refer to exactly the labels that the sources have. Flow rows contain
 * label values, not hrefs. If a label was renamed after the label list was read, the rules would let in another
 * application.
 */
function refuseRenamedSources(pce: PceClient, flows: Iterable<InboundFlow>, labels: LabelIndex): void {
  for (const { application, source } of flows) {
    if (application === null) continue
    for (const [key, value] of [
      ['app', application.app],
      ['env', application.env],
    ] as const) {
      const label = labels.find(key, value)
      const href = source.labelHrefOf[key]
      if (label === undefined || (href !== undefined && href !== label.href)) throw renamed(pce, `${key}=${value}`)
    }
  }
}

function renamed(pce: PceClient, label: string): ToolError {
  // The label cache is dropped, so that the next lookup reads the labels again.
  forgetLabels(pce)
  const text = `Labels changed in the meantime: ${quote(label)} is no longer the same label. Nothing was written.`
  return new ToolError('label_not_found', text, { label }, { hint: 'Call again.' })
}
