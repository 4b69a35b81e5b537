import { PceError } from '../../../pce-client/index.js'
import { ToolError } from '../../../schemas/errors.js'
import type { Label } from '../../../schemas/pce/label.js'
import type { Actor, RuleSet } from '../../../schemas/pce/rule-set.js'
import type { ToolContext } from '../../define.js'
import { countModes } from '../count-modes.js'
import { fetchEvery } from '../fetch-slice.js'
import { lookbackWindow } from '../flows/lookback.js'
import type { LabelIndex } from '../load-labels.js'
import { planRules, type PlannedRule } from '../plan-rules.js'
import { createPolicyLookups } from '../policy-lookups.js'
import type { ServiceReferences } from '../resolve-services.js'
import { readExisting, type Existing } from './compare-existing.js'
import { discoverFlows, type Discovery } from './discover-flows.js'
import { findAddressRules } from './find-address-rules.js'
import { ringfenceName } from './find-ringfence.js'
import { planRingfence, type RingfencePlan } from './plan-ringfence.js'
import { rankEstate, type EstateRanking } from './rank-estate.js'
import { resolveDenyServices } from './resolve-deny-services.js'
import { denyConsumersOf, findOwnRuleSet, readDraftPolicy, type DenyConsumer, type DraftPolicy } from './read-policy.js'

/** What a caller may choose about one ringfence. */
export interface RingfenceOptions {
  ruleset_name?: string
  selective?: boolean
  skip_allowed?: boolean
  deny_service?: ServiceReferences
  deny_consumer?: DenyConsumer
}

/** What the ringfences of one call share, each read when first asked for. */
export interface Shared {
  labels: LabelIndex
  lookbackDays: number
  policy(): Promise<DraftPolicy>
  /** A sentence in its place where the estate could not be ranked: that is advice, and no reason to fail. */
  ranking(): Promise<EstateRanking | string>
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
  discovery: Discovery
  plan: RingfencePlan
  /** Of `plan.newRules`, in their order. */
  rules: PlannedRule[]
  ranking: EstateRanking | string | null
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/** Everything that ringfences of one call have in common. */
export function shareReads(ctx: Context, labels: LabelIndex, lookbackDays: number): Shared {
  let policy: Promise<DraftPolicy> | undefined
  let ranking: Promise<EstateRanking | string> | undefined
  const window = lookbackWindow(ctx.now(), lookbackDays)
  return {
    labels,
    lookbackDays,
    policy: () =>
      (policy ??= readDraftPolicy(ctx, labels).catch((error: unknown) => {
        // The next application asks again.
        policy = undefined
        throw error
      })),
    ranking: () =>
      (ranking ??= rankEstate(ctx, labels, window).catch((error: unknown) => {
        if (!(error instanceof PceError) || ctx.signal.aborted) throw error
        return `The estate could not be ranked, so infrastructure services among the sources are not known: ${error.message}`
      })),
  }
}

/**
 * Reads all that a ringfence depends on, and plans it (tools contract, B4). Throws no_workloads unless it is a dry run,
 * invalid_deny_service, already_exists, label_not_found, and what the PCE client throws.
 */
export async function prepareRingfence(
  ctx: Context,
  application: readonly [Label, Label],
  options: RingfenceOptions,
  shared: Shared,
  isDryRun: boolean,
): Promise<Prepared> {
  const { pce, signal } = ctx
  const { labels, lookbackDays } = shared
  const name = options.ruleset_name ?? ringfenceName(application)
  const lookups = createPolicyLookups(pce, labels, 'draft', signal)
  const denyServices = options.selective === true ? await resolveDenyServices(lookups, options.deny_service) : null
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
  const deny = denyServices === null ? null : denyConsumersOf(options.deny_consumer ?? 'any', policy.anyList)
  const discovery = await discoverFlows(ctx, labels, application, lookbackWindow(ctx.now(), lookbackDays), modes)
  const plan = planRingfence({
    application,
    labels,
    discovery,
    skipAllowed: options.skip_allowed ?? false,
    deny: deny === null || denyServices === null ? null : { consumers: deny.actors, services: denyServices },
    existing,
    known,
    elsewhere: findAddressRules(policy.ruleSets, application, known),
  })
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
    anyListIsIpv4Only: anyFamilies !== undefined && !anyFamilies.ipv6,
    discovery,
    plan,
    rules: await planRules(
      lookups,
      plan.newRules.map(({ asked }) => asked),
    ),
    ranking: plan.remotes.length > 0 ? await shared.ranking() : null,
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
