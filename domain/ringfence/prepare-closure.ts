import { ToolError } from '../../schemas/errors.js'
import type { Actor, DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ToolContext } from '../call.js'
import { closingRule } from '../drafts/close-services.js'
import { orderOf } from '../drafts/order-of.js'
import { planRule, type PlannedRule } from '../drafts/plan-rules.js'
import type { ActorReference } from '../drafts/resolve-actors.js'
import { resolveIngressServices, toWireServices, type ServiceReferences } from '../drafts/resolve-services.js'
import { warnOfOthers } from '../drafts/warn-of-others.js'
import { warnOfWideEnds } from '../drafts/warn-of-wide-ends.js'
import { saysTheSame } from '../drafts/warn-of-repetition.js'
import { verifyRuleSet, type RuleSetBody, type StoredRuleSet } from '../drafts/write-rule-set.js'
import { createPolicyLookups } from '../inventory/find-object.js'
import { scanWhole } from '../inventory/fetch-every.js'
import { loadLabels } from '../inventory/labels.js'
import { nameCoverage, namePorts } from '../inventory/name-ports.js'
import { withDetails } from '../inventory/pce-errors.js'
import { createModeCount, type ModeGroup } from '../inventory/workloads.js'
import { isInForce, loadSnapshot, withDenyRules, type PolicySnapshot } from '../policy/load-snapshot.js'
import { findRulesOn, type RuleOnPorts } from '../policy/rules-on-ports.js'
import { createPresentModes } from '../policy/present-modes.js'
import { workInTurns } from '../text/pace-work.js'
import { anything } from '../traffic/applications.js'
import { portColumn, protocolColumn, wholeEndColumn } from '../traffic/columns.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { endsOf } from '../traffic/flow-ends.js'
import { groupRows } from '../traffic/group-rows.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'
import { findOwnRuleSet } from './find-existing.js'
import {
  findUnusedExceptions,
  findUses,
  judgeClosure,
  portsToClose,
  withoutOwn,
  type ClosedFlow,
  type JudgedClosure,
  type KeptUse,
  type NotKept,
} from './plan-closure.js'
import { writeRingfence } from './write-ringfence.js'

/** A closure of services as the caller requests it. */
export interface ClosureAsked {
  services: ServiceReferences
  exceptions: readonly { consumers: readonly ActorReference[]; providers?: readonly ActorReference[] }[]
  keepUsed: boolean
  name: string | undefined
  window: TrafficWindow
  complete: boolean | undefined
}

/** A closure that is ready to be written. Up to this point, a dry run and a real run are identical. */
export interface PreparedClosure {
  body: RuleSetBody
  /** The existing rule set of the closure; null if it does not exist yet. */
  existing: RuleSet | null
  uses: KeptUse[]
  /**
   * The traffic that none of the rules for `uses` allows, by reason; empty if the plan is not meant to allow existing
   * uses.
   */
  notKept: NotKept[]
  /** The positions of the exceptions that no observed traffic to the services uses. */
  unusedExceptions: number[]
  /** All rules in the order in which they are written: the deny rule comes last. */
  rules: PlannedRule[]
  /** Those of `rules` that the rule set does not contain yet. */
  missing: PlannedRule[]
  /** True if the deny rule is left out for now, because not all traffic was read. */
  isWithheld: boolean
  isAnyListMissing: boolean
  read: FlowsRead
  judged: JudgedClosure
  /** The allow rules of others on these services. They take precedence over the closure's deny rule (P50). */
  open: RuleOnPorts[]
  /**
   * The override deny rules on these services, which take precedence over the closure's allow rules; empty if the
   * closure has none.
   */
  overriding: RuleOnPorts[]
  /** Number of rules in force that the rule set contains in addition to the plan. */
  besides: number
  /** The workloads with a VEN, by application and mode. */
  groups: readonly ModeGroup[]
  managedModes: Readonly<Record<string, number>>
  modeNotes: readonly string[]
  warnings: string[]
  draft: PolicySnapshot
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/** Maximum number of rules in a closure. The console shows 500 rules of a rule set. */
const MOST_RULES = 400

/**
 * Looks up everything that the caller names, reads policy and traffic, and plans the rule set that closes the services:
 * allow rules for the exceptions and for the observed uses, and one deny rule. Nothing is written. Throws the errors of
 * the lookups, invalid_argument for services without ports and for too many rules, already_exists and ambiguous_name
 * for another rule set of this name, and the errors of the traffic reader.
 */
export async function prepareClosure(ctx: Context, asked: ClosureAsked): Promise<PreparedClosure> {
  const { pce, signal } = ctx
  const labels = await loadLabels(pce, ctx, 'fresh')
  const lookups = createPolicyLookups(pce, labels, 'draft', signal)
  const resolved = await resolveIngressServices(lookups, asked.services, { deny: true, argument: 'services' })
  const services = toWireServices(resolved)
  const exceptions: PlannedRule[] = []
  for (const [at, { consumers, providers = ['ams'] }] of asked.exceptions.entries())
    try {
      const rule = { consumers, providers, ingress_services: asked.services, unscoped_consumers: true }
      exceptions.push(await planRule(lookups, { ...rule, description: 'Exception from the closure' }))
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      throw new ToolError(error.code, `exceptions[${at}]: ${error.message}`, { ...error.details, exception: at })
    }
  const named = resolved.map((one) => ('ports' in one ? namePorts(one.ports) : one.service.name)).join(', ')
  const name = asked.name ?? `Close ${named}`.slice(0, 255).trimEnd()
  const existing = await findOwnRuleSet(ctx, [], name)
  const load = async (version: 'draft' | 'active') =>
    withDenyRules(ctx, await loadSnapshot(ctx, version, labels, [services, exceptions.map(({ body }) => body)]))
  const [active, draft] = [await load('active'), await load('draft')]
  const ports = portsToClose(services, draft)
  if (ports === null) {
    const what = resolved.map((one) => ('ports' in one ? '' : nameCoverage(one.service))).join(', ')
    const text = `services: a closure needs ports, and one of ${named} covers more than ports (${what}). Nothing was written.`
    throw new ToolError('invalid_argument', text, { argument: 'services' })
  }
  const baseline = withoutOwn(active, draft, existing)
  const [anyList] = draft.anyLists
  const toReference = (actors: Actor[]): ActorReference[] =>
    actors.map(({ label, ip_list: list }) => label?.href ?? list?.href ?? 'ams')
  const closing = closingRule(services, anyList)
  const deny = await planRule(lookups, {
    ...closing,
    consumers: toReference(closing.consumers),
    providers: ['ams'],
    ingress_services: asked.services,
    rule_type: 'deny',
    description: 'Closed everywhere but for the rules above',
  })
  const encoder = createFlowEncoder(labels)
  const groups = groupRows<ClosedFlow>({
    source: wholeEndColumn(encoder, 'src'),
    destination: wholeEndColumn(encoder, 'dst'),
    port: portColumn,
    proto: protocolColumn,
  })
  const include = ports.map(({ proto, port, to_port: toPort }) => ({
    ...(proto !== null && { proto }),
    ...(port !== null && { port }),
    ...(toPort !== null && { to_port: toPort }),
  }))
  const read = await createConversationReader(
    ctx,
    encoder,
    asked.complete,
  )(
    {
      name: 'mcp-port-closure',
      window: asked.window,
      filters: { sources: anything(), destinations: anything() },
      services: { include, exclude: [] },
    },
    (row) => void groups.add(row),
  )
  const present = createPresentModes({ pce, signal, now: () => ctx.now() })
  await present.look(endsOf(groups))
  const { uses, notKept } = asked.keepUsed
    ? await workInTurns(findUses(groups, baseline, { deny, exceptions }, present.modeOf), signal)
    : { uses: [], notKept: [] }
  const kept: PlannedRule[] = []
  for (const { providers, consumers } of uses) {
    const rule = { providers: toReference(providers), consumers: toReference(consumers) }
    const more = { ingress_services: asked.services, unscoped_consumers: true, description: 'In use when closed' }
    kept.push(await planRule(lookups, { ...rule, ...more }))
  }
  const rules = [...exceptions, ...kept, deny]
  if (rules.length > MOST_RULES) {
    const text = `The closure would have ${rules.length} rules; ${MOST_RULES} are the most. Name broader exceptions and set keep_used to false. Nothing was written.`
    throw new ToolError('invalid_argument', text, { argument: 'exceptions', rules: rules.length })
  }
  const isWithheld = read.truncated
  const written = isWithheld ? rules.slice(0, -1) : rules
  let counted = createModeCount()
  await scanWhole(
    { api: pce.workloads, params: {}, signal },
    {
      onBegin: () => void (counted = createModeCount()),
      onItems(items) {
        for (const workload of items) counted.count(workload, (label) => labels.get(label.href) ?? label)
      },
    },
  )
  const totals = counted.totals()
  const versions = [baseline.draft, baseline.active]
  return {
    body: bodyOf(name, named, existing),
    existing,
    uses,
    notKept,
    unusedExceptions: await workInTurns(findUnusedExceptions(groups, baseline, exceptions), signal),
    rules,
    missing: missingOf(written, existing),
    isWithheld,
    isAnyListMissing: anyList === undefined,
    read,
    judged: await workInTurns(judgeClosure(groups, baseline, { deny, rules }, present), signal),
    open: findRulesOn(versions, ports, 'allow'),
    overriding:
      rules.length > 1 || existing?.rules?.some(isInForce) ? findRulesOn(versions, ports, 'override_deny') : [],
    besides: existing === null ? 0 : countBesides(rules, existing),
    groups: totals.groups,
    managedModes: totals.managed_only.enforcement_modes,
    modeNotes: present.notes(),
    warnings: [
      ...(existing === null ? [] : await warnOfOthers({ pce, signal }, existing)),
      ...(await warnOfAll(exceptions, (rule) => warnOfWideEnds(lookups, { ...rule, deny: false }, signal))),
    ],
    draft,
  }
}

async function warnOfAll(
  rules: readonly PlannedRule[],
  warn: (rule: PlannedRule) => Promise<string[]>,
): Promise<string[]> {
  const all: string[] = []
  for (const rule of rules) all.push(...(await warn(rule)))
  return [...new Set(all)]
}

const bodyOf = (name: string, named: string, existing: RuleSet | null): RuleSetBody =>
  existing === null
    ? { name, description: `Closes ${named} everywhere but for its allow rules`, scopes: [[]] }
    : { name, scopes: [[]] }

/** Returns the planned rules that a rule set lacks, in order. A disabled rule counts as missing. */
export function missingOf(rules: readonly PlannedRule[], ruleSet: RuleSet | null): PlannedRule[] {
  return rules.filter(({ collection, body }) => {
    const stored = (collection === 'sec_rules' ? ruleSet?.rules : ruleSet?.deny_rules) ?? []
    return !stored.some((rule) => isInForce(rule) && saysTheSame(body, rule))
  })
}

/** Counts the rules in force in a rule set that are not equal to any planned rule. */
function countBesides(planned: readonly PlannedRule[], { rules, deny_rules: denies }: RuleSet): number {
  const isPlanned = (kind: PlannedRule['collection'], stored: Rule | DenyRule) =>
    planned.some(({ collection, body }) => collection === kind && saysTheSame(body, stored))
  return [
    ...(rules ?? []).filter((rule) => isInForce(rule) && !isPlanned('sec_rules', rule)),
    ...(denies ?? []).filter((rule) => isInForce(rule) && !isPlanned('deny_rules', rule)),
  ].length
}

/** The result of writing a closure. */
export interface ClosureWritten {
  href: string
  ruleHrefs: string[]
  stored: StoredRuleSet | null
}

/**
 * Writes the missing parts of a closure and reads it back: first the rule set, then the allow rules, and the deny rule
 * last. The rule set is read again before the first write and before the deny rule, which is written only if all allow
 * rules are in place. A failure undoes nothing, because an incomplete closure cuts no traffic, and repeating the call
 * completes it. Throws the errors of `writeRingfence`, and already_exists if a rule was removed meanwhile.
 */
export function writeClosure(
  ctx: Pick<ToolContext<true>, 'pce' | 'signal' | 'beforeWriting' | 'inOrder'>,
  { body, rules, isWithheld }: PreparedClosure,
): Promise<ClosureWritten> {
  const { pce, signal, beforeWriting } = ctx
  return ctx.inOrder(orderOf('rule_sets', body.name), async (turn) => {
    const existing = await findOwnRuleSet({ pce, signal: beforeWriting }, [], body.name)
    const wanted = isWithheld ? rules.slice(0, -1) : rules
    const missing = missingOf(wanted, existing)
    if (existing !== null && missing.length === 0) return { href: existing.href, ruleHrefs: [], stored: null }
    beforeWriting.throwIfAborted()
    const { href, ruleHrefs } = await writeRingfence(ctx, {
      application: [],
      body,
      existing,
      rules: missing,
      beforeDeny: async () => {
        const now = await findOwnRuleSet({ pce, signal }, [], body.name)
        const gone = missingOf(rules.slice(0, -1), now)
        if (gone.length === 0) return
        const text = `${gone.length} of the allow rules are not in the rule set any more. The deny rule was not written.`
        throw withDetails(new ToolError('already_exists', text, { reason: 'changed_meanwhile' }), {}, 'Call again.')
      },
    })
    for (const one of [href, ...ruleHrefs]) turn.note(one)
    return { href, ruleHrefs, stored: await verifyRuleSet(pce, href, body, missing, ruleHrefs, signal) }
  })
}
