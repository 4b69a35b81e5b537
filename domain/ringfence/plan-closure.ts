import { ToolError } from '../../schemas/errors.js'
import type { EndMode } from '../../schemas/pce/enforcement-modes.js'
import type { Actor, IngressService, RuleSet } from '../../schemas/pce/rule-set.js'
import { plannedRuleSet } from '../drafts/write-rule-set.js'
import type { PlannedRule } from '../drafts/plan-rules.js'
import { portName } from '../inventory/protocols.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { applyChange } from '../policy/apply-change.js'
import { collectAssumedFacts } from '../policy/assumed-facts.js'
import { decideEnds, type DecidedWord } from '../policy/decide-rows.js'
import { createConcern, createCutJudge, keepJudges, type ComparedPolicies, type CutFate } from '../policy/judge-cut.js'
import { createConnectionJudge } from '../policy/judge-connection.js'
import type { PolicySnapshot } from '../policy/load-snapshot.js'
import { portsOf, type PortRange } from '../policy/match-services.js'
import type { PresentModes } from '../policy/present-modes.js'
import { createSilentEnds } from '../policy/silent-ends.js'
import { undecidedBecause, type Answer } from '../policy/three-valued.js'
import { compareTexts } from '../text/compare-texts.js'
import type { Steps } from '../text/pace-work.js'
import { applicationName, applicationOf, nameEnds } from '../traffic/applications.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import type { Group } from '../traffic/group-rows.js'

/** Traffic from one source to one destination on one port, to the services that a closure would close. */
export interface ClosedFlow {
  source: FlowEnd
  destination: FlowEnd
  port: number | null
  proto: number | null
}

/**
 * The possible effects of a closure on traffic, worst first. `cut_once_online`: it is cut as soon as VENs are back that
 * may not enforce now. `cut_once_enforced`: it is cut as soon as the workloads enforce policy. `opened`: it is blocked
 * today, but a rule of the closure lets it in, or may, because the rule selects by label. `kept_by_exception`: a rule of
 * the closure's own rule set lets it in. `kept_by_rule`: existing rules let it in. `not_reached`: the closure does not
 * apply to it, because its destination has no VEN. `blocked_already`: the present policy drops it, and the closure does
 * not change that.
 */
export const CLOSURE_FATES = [
  'cut',
  'undecided',
  'cut_once_online',
  'cut_once_enforced',
  'opened',
  'kept_by_exception',
  'kept_by_rule',
  'not_reached',
  'blocked_already',
] as const
export type ClosureFate = (typeof CLOSURE_FATES)[number]

/**
 * The policies without the closure's own rule set, so that the plan is the same however much of the rule set exists
 * already.
 */
export interface Baseline {
  /** The complete active policy, by which it is judged whether traffic passes today. */
  today: PolicySnapshot
  active: PolicySnapshot
  draft: PolicySnapshot
  /** The closure's own rule set in the draft; null if it does not exist yet. */
  own: RuleSet | null
}

/** Returns the policies without the closure's own rule set. */
export function withoutOwn(active: PolicySnapshot, draft: PolicySnapshot, own: RuleSet | null): Baseline {
  const drop = (policy: PolicySnapshot): PolicySnapshot =>
    own === null
      ? policy
      : { ...policy, ruleSets: policy.ruleSets.filter(({ href }) => toDraftHref(href) !== toDraftHref(own.href)) }
  return { today: active, active: drop(active), draft: drop(draft), own }
}

type Compared = ComparedPolicies & { pending: NonNullable<ComparedPolicies['pending']> }

/** Returns the policies without and with a rule set that contains the given rules in addition to those of `own`. */
function compared({ active, draft }: Baseline, rules: readonly PlannedRule[], own: RuleSet | null = null): Compared {
  const planned = plannedRuleSet('/rule_sets/closure', { name: 'closure', scopes: [[]] }, rules)
  const ruleSet = {
    ...planned,
    rules: [...(own?.rules ?? []), ...(planned.rules ?? [])],
    deny_rules: [...(own?.deny_rules ?? []), ...(planned.deny_rules ?? [])],
  }
  const add = (policy: PolicySnapshot) => applyChange(policy, { is: 'new_rule_set', ruleSet })!.policy
  return { was: draft, is: add(draft), pending: { active, was: active, is: add(active) } }
}

/**
 * The reasons why observed traffic that the deny rule would affect gets no allow rule in the plan. Rules name sources
 * and destinations by their application labels, so both ends must have one. Traffic that is blocked today is not in
 * use.
 */
export const NOT_KEPT = ['source_without_application', 'destination_without_application', 'blocked_today'] as const

/**
 * The traffic that gets no allow rule for one of the reasons: the numbers of its pairs and connections, and the busiest
 * pairs.
 */
export interface NotKept {
  reason: (typeof NOT_KEPT)[number]
  pairs: number
  connections: number
  examples: string[]
}

/** Maximum number of applications that one rule names, the same limit as for rules that callers write. */
const MOST_SOURCES = 100
/** Maximum number of pairs that are named for each of the reasons. */
const EXAMPLES = 3

/** An allow rule for the applications of one environment that use the services of one application. */
export interface KeptUse {
  destination: { app: string; env: string }
  sources: string[]
  env: string
  providers: Actor[]
  consumers: Actor[]
}

interface User {
  app: string
  actor: Actor
}

/**
 * Returns the allow rules that preserve the observed uses of the services: one for each used application and each
 * environment from which it is used. A use is traffic that passes, or may pass, today and that the deny rule alone
 * would cut. Only uses between two applications can be allowed by label; for everything else, the caller must name
 * exceptions. `notKept` has the traffic for which there is no such rule, by reason, without what an exception or the
 * rule set as it is keeps.
 */
export function* findUses(
  groups: Iterable<Group<ClosedFlow>>,
  baseline: Baseline,
  { deny, exceptions }: { deny: PlannedRule; exceptions: readonly PlannedRule[] },
  modeOf: (end: FlowEnd) => EndMode,
): Steps<{ uses: KeptUse[]; notKept: NotKept[] }> {
  const fateOf = createCutJudge(compared(baseline, [deny]), modeOf)
  const exceptedOf = createCutJudge(compared(baseline, [...exceptions, deny], baseline.own), modeOf)
  const judge = createConnectionJudge(baseline.today)
  const kept = new Map<string, Omit<KeptUse, 'sources' | 'consumers'> & { from: Actor; users: User[] }>()
  const left = new Map<NotKept['reason'], Map<string, number>>()
  for (const { keys, measures } of groups) {
    yield
    const { source, destination } = keys
    const [from, to] = [applicationOf(source), applicationOf(destination)]
    const { fate } = fateOf(keys)
    if (fate === 'not_affected' || fate === 'draft_only') continue
    const { word } = decideEnds(judge(keys), [modeOf(source), modeOf(destination)])
    if (word === 'blocked' || from === null || to === null) {
      if (exceptedOf(keys).fate === 'not_affected') continue
      const unnamed = from === null ? 'source_without_application' : 'destination_without_application'
      const reason = word === 'blocked' ? 'blocked_today' : unnamed
      const pairs = left.get(reason) ?? new Map<string, number>()
      left.set(reason, pairs)
      const pair = nameEnds(keys).join(' to ')
      pairs.set(pair, (pairs.get(pair) ?? 0) + measures.connections)
      continue
    }
    const id = JSON.stringify([to.app, to.env, from.env])
    const use = kept.get(id) ?? {
      destination: to,
      env: from.env,
      providers: [labelOf(destination, 'app'), labelOf(destination, 'env')],
      from: labelOf(source, 'env'),
      users: [],
    }
    kept.set(id, use)
    if (!use.users.some(({ app }) => app === from.app)) use.users.push({ app: from.app, actor: labelOf(source, 'app') })
  }
  const notKept = NOT_KEPT.flatMap((reason): NotKept[] => {
    const pairs = [...(left.get(reason) ?? [])].sort(([a, m], [b, n]) => n - m || compareTexts(a, b))
    if (pairs.length === 0) return []
    const connections = pairs.reduce((sum, [, many]) => sum + many, 0)
    return [{ reason, pairs: pairs.length, connections, examples: pairs.slice(0, EXAMPLES).map(([pair]) => pair) }]
  })
  const hrefOf = (actor: Actor) => actor.label?.href ?? ''
  const uses = [...kept]
    .sort(([a], [b]) => compareTexts(a, b))
    .flatMap(([, { users, from, ...use }]) => {
      const sorted = users.sort((a, b) => compareTexts(a.app, b.app))
      const parts = Array.from({ length: Math.ceil(sorted.length / MOST_SOURCES) }, (_, at) =>
        sorted.slice(at * MOST_SOURCES, (at + 1) * MOST_SOURCES),
      )
      return parts.map((part) => ({
        ...use,
        sources: part.map(({ app }) => app),
        consumers: [from, ...part.map(({ actor }) => actor)].sort((a, b) => compareTexts(hrefOf(a), hrefOf(b))),
      }))
    })
  return { uses, notKept }
}

/**
 * Returns the positions of the exceptions that no observed traffic to the services matches, not even possibly.
 */
export function* findUnusedExceptions(
  groups: Iterable<Group<ClosedFlow>>,
  { draft }: Baseline,
  exceptions: readonly PlannedRule[],
): Steps<number[]> {
  let unused = exceptions.map((exception, at) => {
    const { rules } = plannedRuleSet('/rule_sets/closure', { name: 'closure', scopes: [[]] }, [exception])
    const placed = (rules ?? []).map((rule) => ({ scopes: [[]], rule }))
    return { at, mayUse: createConcern(placed.map((one) => ({ type: 'allow', placed: one, policy: draft }))) }
  })
  for (const { keys } of groups) {
    if (unused.length === 0) break
    yield
    unused = unused.filter(({ mayUse }) => !mayUse(keys))
  }
  return unused.map(({ at }) => at)
}

function labelOf({ labelHrefOf, labels }: FlowEnd, key: 'app' | 'env'): Actor {
  const href = labelHrefOf[key]
  if (href !== undefined) return { label: { href } }
  const text = `The traffic has the label ${key}=${labels[key] ?? ''} without its href, so no rule can name it. Nothing was written.`
  throw new ToolError('label_not_found', text, { label: `${key}=${labels[key] ?? ''}` })
}

/** Traffic between one source and one destination on which the closure has the same effect. */
interface ClosedPair {
  source: string
  destination: string
  fate: ClosureFate
  connections: number
  ports: string[]
}

/** The effects of a closure on all observed traffic to its services. */
export interface JudgedClosure {
  connections: Record<ClosureFate, number>
  /** For each application, or other destination, with traffic to the services: the number of connections by effect. */
  destinations: ReadonlyMap<string, Record<ClosureFate, number>>
  /** The pairs of source and destination that lose traffic, or may lose it, the worst effects first. */
  lost: ClosedPair[]
  /**
   * The pairs of source and destination that are blocked today but that the closure lets in, or may let in, the busiest
   * first.
   */
  opened: ClosedPair[]
  undecided: string
  /**
   * The workloads with a VEN that is not known to answer, as far as effects depend on them. `blocked` and
   * `onceEnforced` are the numbers of connections that are blocked already, or cut once workloads enforce policy, but
   * only at such workloads. Connections that would be cut only there count as `cut_once_online` instead.
   */
  silent: { workloads: readonly string[]; blocked: number; onceEnforced: number }
  assumes: readonly string[]
}

const TOLD: ReadonlySet<ClosureFate> = new Set(['cut', 'undecided', 'cut_once_online', 'cut_once_enforced', 'opened'])
const none = (): Record<ClosureFate, number> =>
  Object.fromEntries(CLOSURE_FATES.map((fate) => [fate, 0])) as Record<ClosureFate, number>

/**
 * Judges what the whole rule set does to all observed traffic, including rules that it has in addition to the plan.
 * `deny` is the deny rule alone; `rules` are all rules of the plan.
 */
export function* judgeClosure(
  groups: Iterable<Group<ClosedFlow>>,
  baseline: Baseline,
  { deny, rules }: { deny: PlannedRule; rules: readonly PlannedRule[] },
  present: PresentModes,
): Steps<JudgedClosure> {
  const { modeOf } = present
  const silent = createSilentEnds(present)
  const { sureModeOf } = silent
  const bySilent = { blocked: 0, onceEnforced: 0 }
  const judgeOf = keepJudges()
  const bareOf = createCutJudge(compared(baseline, [deny]), modeOf, judgeOf)
  const closed = compared(baseline, rules, baseline.own)
  const [wholeOf, surelyOf] = [modeOf, sureModeOf].map((by) => createCutJudge(closed, by, judgeOf)) as [CutOf, CutOf]
  const [today, without, after] = [baseline.today, baseline.active, closed.pending.is].map((policy) => {
    const judge = judgeOf(policy)
    return (flow: ClosedFlow, by = modeOf) => decideEnds(judge(flow), [by(flow.source), by(flow.destination)]).word
  }) as [WordOf, WordOf, WordOf]
  const connections = none()
  const destinations = new Map<string, Record<ClosureFate, number>>()
  const told = new Map<string, ClosedPair & { seen: Set<string> }>()
  const answers = new Set<Answer>()
  const assumed = collectAssumedFacts()
  for (const { keys, measures } of groups) {
    yield
    const { source, destination } = keys
    const verdict = wholeOf(keys)
    const word = today(keys)
    const isBlocked = word === 'blocked'
    const byPolicy: ClosureFate = isBlocked
      ? after(keys) === 'blocked'
        ? 'blocked_already'
        : 'opened'
      : fateOf(verdict.fate, {
          isConcerned: bareOf(keys).fate !== 'not_affected' || (word === 'allowed' && without(keys) !== 'allowed'),
          word,
        })
    const isSilent = silent.isAny(source, destination)
    const fate = byPolicy === 'cut' && isSilent && !CUT_NOW.has(surelyOf(keys).fate) ? 'cut_once_online' : byPolicy
    const isBlockedBySilent =
      isBlocked && fate === 'blocked_already' && isSilent && today(keys, sureModeOf) !== 'blocked'
    const isLaterBySilent = fate === 'cut_once_enforced' && isSilent && surelyOf(keys).fate !== fate
    if (fate === 'cut_once_online' || isBlockedBySilent || isLaterBySilent) silent.add(source, destination)
    if (isBlockedBySilent) bySilent.blocked += measures.connections
    if (isLaterBySilent) bySilent.onceEnforced += measures.connections
    if (fate === 'undecided') answers.add(verdict.undecided)
    assumed.add(verdict.undecided, source, destination)
    connections[fate] += measures.connections
    const own = applicationOf(destination)
    const [from, to] = nameEnds(keys)
    const name = own === null ? to : applicationName(own)
    const counts = destinations.get(name) ?? none()
    destinations.set(name, counts)
    counts[fate] += measures.connections
    if (!TOLD.has(fate)) continue
    const id = JSON.stringify([from, to, fate])
    const pair = told.get(id) ?? { source: from, destination: to, fate, connections: 0, ports: [], seen: new Set() }
    told.set(id, pair)
    pair.connections += measures.connections
    pair.seen.add(portName(keys))
  }
  const pairs = [...told.values()]
    .map(({ seen, ...pair }): ClosedPair => ({ ...pair, ports: [...seen].sort(compareTexts) }))
    .sort(
      (a, b) =>
        CLOSURE_FATES.indexOf(a.fate) - CLOSURE_FATES.indexOf(b.fate) ||
        b.connections - a.connections ||
        compareTexts(a.source, b.source) ||
        compareTexts(a.destination, b.destination),
    )
  return {
    connections,
    destinations,
    lost: pairs.filter(({ fate }) => fate !== 'opened'),
    opened: pairs.filter(({ fate }) => fate === 'opened'),
    undecided: undecidedBecause(answers),
    silent: { workloads: silent.names(), ...bySilent },
    assumes: assumed.list(),
  }
}

type CutOf = ReturnType<typeof createCutJudge>
type WordOf = (flow: ClosedFlow, modeOf?: PresentModes['modeOf']) => DecidedWord

const CUT_NOW: ReadonlySet<CutFate> = new Set(['cut', 'cut_if_alone'])

/** Returns the effect of a closure on traffic that is not blocked today. */
function fateOf(fate: CutFate, { isConcerned, word }: { isConcerned: boolean; word: string }): ClosureFate {
  if (CUT_NOW.has(fate)) return 'cut'
  if (fate === 'undecided' || fate === 'cut_once_enforced') return fate
  if (fate === 'draft_only') return 'blocked_already'
  if (isConcerned) return 'kept_by_exception'
  return word === 'allowed' ? 'kept_by_rule' : 'not_reached'
}

/**
 * Converts services to ports; null if one of them has an entry without a port, which a traffic query cannot ask for.
 */
export function portsToClose(services: readonly IngressService[], policy: PolicySnapshot): PortRange[] | null {
  const ports = portsOf(services, policy)
  return ports.some(({ port }) => port === null) ? null : ports
}
