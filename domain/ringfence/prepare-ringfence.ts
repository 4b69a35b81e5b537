import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { Actor, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { countModes } from '../inventory/count-modes.js'
import { fetchEvery } from '../inventory/fetch-every.js'
import { lookbackWindow } from '../traffic/traffic-window.js'
import { planRules, type PlannedRule } from '../drafts/plan-rules.js'
import { createPolicyLookups } from '../inventory/policy-lookups.js'
import type { ServiceReferences } from '../drafts/resolve-services.js'
import { readExisting, type Existing } from './compare-existing.js'
import type { Known } from './reach.js'
import { discoverFlows, type Discovery } from './discover-flows.js'
import { findAddressRules } from './find-address-rules.js'
import { refuseRenamed, refuseRenamedSources } from './find-remotes.js'
import { ringfenceName } from './find-ringfence.js'
import { planRingfence, type RingfencePlan } from './plan-ringfence.js'
import type { EstateRanking } from './rank-estate.js'
import { resolveDenyServices } from './resolve-deny-services.js'
import { readOthers, type OtherRules } from './read-others.js'
import { denyConsumersOf, findOwnRuleSet, type DenyConsumer } from './read-policy.js'
import type { Shared } from './share-reads.js'
import { withholdDeny } from './withhold-deny.js'

/** What a caller may choose about one ringfence. */
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

/** A ringfence before anything is written. A dry run and a real run differ in nothing up to here. */
export interface Prepared {
  application: readonly [Label, Label]
  options: RingfenceOptions
  lookbackDays: number
  name: string
  workloads: { total: number; managed: number; enforcement_modes: Record<string, number> }
  ruleSet: RuleSet | null
  existing: Existing
  deny: DenyAsked | null
  anyListIsIpv4Only: boolean
  /** It may hold less than every address. */
  isAnyListUnclear: boolean
  others: Pick<OtherRules, 'pending' | 'unread'>
  discovery: Discovery
  /** Without the deny rule where that is withheld. */
  plan: RingfencePlan
  denyWithheld: boolean
  known: Known
  /** Of `plan.newRules`, in their order. */
  rules: PlannedRule[]
  ranking: EstateRanking | string | null
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/**
 * Reads all that a ringfence depends on, and plans it (T15). Throws no_workloads unless it is a dry run, invalid_deny_service,
 * already_exists, label_not_found, and what the PCE client throws.
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
  refuseRenamed(ctx.pce, application, labels)
  const name = options.ruleset_name ?? ringfenceName(application)
  const lookups = createPolicyLookups(pce, labels, 'draft', signal)
  const { selective, deny_service: denyService } = options
  const asked = selective === true && denyService !== undefined ? await resolveDenyServices(lookups, denyService) : null
  const { workloads, modes } = await readWorkloads(ctx, application)
  if (workloads.total === 0 && !isDryRun) {
    const [app, env] = application
    const text = `No workload has the labels app=${app.value} and env=${env.value}, so a ringfence would hold nothing. Nothing was written.`
    throw new ToolError('no_workloads', text)
  }
  const policy = await shared.policy()
  const { known } = policy
  const ruleSet = await findOwnRuleSet(ctx, application, name)
  const existing = readExisting(ruleSet, known)
  const denyServices = selective === true ? (asked ?? [{ href: known.allServices }]) : null
  const deny = denyServices === null ? null : denyConsumersOf(options.deny_consumer ?? 'any', policy.anyList)
  const others = await readOthers(ctx, policy, application, ruleSet)
  // In selective mode, "allowed" does not tell what goes on in full enforcement.
  const needsRules = selective !== true && [...modes.values()].includes('selective')
  const discovery = await discoverFlows(
    ctx,
    labels,
    application,
    lookbackWindow(ctx.now(), lookbackDays),
    modes,
    needsRules,
  )
  refuseRenamedSources(ctx.pce, discovery.inbound, labels)
  const complete = planRingfence({
    application,
    labels,
    discovery,
    skipAllowed: options.skip_allowed ?? false,
    deny: deny === null || denyServices === null ? null : { consumers: deny.actors, services: denyServices },
    existing,
    known,
    elsewhere: findAddressRules(policy.ruleSets, application, known),
    others,
  })
  const { plan, denyWithheld } = withholdDeny(complete, discovery)
  const losesApplications = deny === null && plan.lostOutbound.destinations.some((one) => one.application !== null)
  const anyFamilies = [...known.anyLists.values()][0]
  return {
    application,
    options,
    lookbackDays,
    name,
    workloads,
    ruleSet,
    existing,
    deny,
    anyListIsIpv4Only: anyFamilies?.ipv6 === 'no',
    isAnyListUnclear: anyFamilies !== undefined && (anyFamilies.ipv4 !== 'yes' || anyFamilies.ipv6 === 'maybe'),
    others,
    discovery,
    plan,
    denyWithheld,
    known,
    rules: await planRules(
      lookups,
      plan.newRules.map(({ asked }) => asked),
    ),
    ranking: plan.remotes.length > 0 || losesApplications ? await shared.ranking() : null,
  }
}

async function readWorkloads({ pce, signal }: Context, application: readonly Label[]) {
  const params = { labels: [application.map(({ href }) => href)], include: 'labels' }
  const { items } = await fetchEvery({ api: pce.workloads, params, signal })
  const { total_workloads: total, managed_only: managed } = countModes(items, (label) => label)
  return {
    workloads: { total, managed: managed.total, enforcement_modes: managed.enforcement_modes },
    modes: new Map(items.map(({ href, enforcement_mode: mode }) => [href, mode ?? null])),
  }
}
