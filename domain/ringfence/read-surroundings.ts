import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { DenyRule, RuleSet } from '../../schemas/pce/rule-set.js'
import { ALL_SERVICES_NAME } from '../../schemas/pce/words.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { compileByDestination } from '../policy/compile-rules.js'
import { hasIpTablesFor } from '../policy/ip-tables.js'
import {
  isPending,
  loadSnapshot,
  pendingHolders,
  rulesInForce,
  rulesOf,
  withDenyRules,
  type PolicySnapshot,
} from '../policy/load-snapshot.js'
import {
  matchLabels,
  matchRules,
  someWorkloadWith,
  type End,
  type PlacedRule,
  type RuleMatch,
} from '../policy/match-rules.js'
import type { Side } from '../traffic/columns.js'
import type { RuleType } from '../policy/rule-type.js'
import { anyOf, isUnknown, unknown, type Answer } from '../policy/three-valued.js'
import { quote } from '../text/escape-text.js'

interface Source {
  pce: PceClient
  signal: AbortSignal
}

/** What was read of the policy. The plans of all ringfences in one call are based on it. */
export interface PolicyRead {
  draft: PolicySnapshot
  /** The draft href of the built-in service All Services. */
  allServices: string
  /** Returns the draft with the deny rules of all rule sets, which are read at the first call. */
  readonly wholeDraft: () => Promise<PolicySnapshot>
  /** Returns the active policy, which is read at the first call. */
  readonly active: () => Promise<PolicySnapshot>
  /**
   * Returns the policy in force with the deny rules of all rule sets. If nothing is pending, this is the draft, which
   * then equals the active policy.
   */
  readonly inForce: () => Promise<PolicySnapshot>
}

/**
 * Reads the draft. Throws not_found if there is no service All Services, and ambiguous_name if several services have
 * this name.
 */
export async function readPolicy(source: Source, labels: LabelIndex): Promise<PolicyRead> {
  const draft = await loadSnapshot(source, 'draft', labels)
  const [all, ...others] = draft.allServices
  if (all === undefined) throw new ToolError('not_found', `No service is named exactly ${quote(ALL_SERVICES_NAME)}.`)
  if (others.length > 0) {
    const text = `${draft.allServices.length} services are named ${quote(ALL_SERVICES_NAME)}. Nothing was written.`
    const candidates = draft.allServices.map(({ href, name }) => ({ href, name }))
    const hint = 'Rename or delete all but the one that the PCE came with.'
    throw new ToolError('ambiguous_name', text, { kind: 'services', name: ALL_SERVICES_NAME, candidates }, { hint })
  }
  const active = onceRead(() => loadSnapshot(source, 'active', labels))
  const wholeDraft = onceRead(() => withDenyRules(source, draft))
  return {
    draft,
    wholeDraft,
    allServices: toDraftHref(all.href),
    active,
    inForce: onceRead(async () => {
      const whole = await wholeDraft()
      const hasPending = pendingHolders(whole).length > 0 || whole.pendingObjects.size > 0
      return hasPending ? withDenyRules(source, await active()) : whole
    }),
  }
}

/**
 * Returns a function that calls `read` once and remembers the result. A failed read is not remembered, so the next call
 * tries again.
 */
function onceRead<T>(read: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | undefined
  return () =>
    (known ??= read().catch((error: unknown) => {
      known = undefined
      throw error
    }))
}

/**
 * Three answers to one question about a flow: from the ringfence's own rules (`own`), from all other rules of the
 * active policy, and from all other rules of the draft.
 */
export interface Versions {
  own: Answer
  active: Answer
  draft: Answer
}

/** The results of matching the rules against one flow. Each is computed only when it is requested. */
export interface RuleAnswers {
  /** Returns the results for the rules that the PCE sends to the destination. */
  readonly atDestination: (kind: RuleType) => Versions
  /** Returns the results for the rules that the PCE sends to the source. */
  readonly atSource: (kind: RuleType) => Versions
  /**
   * Returns whether an allow rule, in the ringfence, the active policy or the draft, lets the source in by naming its
   * address.
   */
  readonly byAddress: () => Answer
  /**
   * Returns whether an allow rule, in the ringfence, the active policy or the draft, lets the flow out by naming the
   * destination's address.
   */
  readonly toAddress: () => Answer
  /**
   * Returns an undecided answer if iptables rules in any version of the policy apply, or may apply, at the given end of
   * the flow; otherwise 'no'.
   */
  readonly mayBypass: (end: Side) => Answer
}

/**
 * Functions that match flows against the rules that may apply to traffic of the application, including the ringfence's
 * own rules; and what is pending or could not be read.
 */
export interface Surroundings {
  /** Matches flows to any workload of the application. */
  readonly judge: RuleJudge
  /** Works like `judge`, but matches only flows to one particular workload. */
  readonly judgeAt: (destination: End) => RuleJudge
  /** Names of objects with pending changes, which may be provisioned with the ringfence or without it. */
  pending: string[]
  /** True if anything is pending, including changes to the ringfence itself. */
  hasPending: boolean
  /** Names of rule sets whose deny rules could not be read. */
  unread: string[]
}

/**
 * The rule sets of one policy version. `near` contains those whose scope may include the application, `far` all others.
 */
interface Around {
  near: PolicySnapshot
  far: readonly RuleSet[]
}

/**
 * Reads the rules of all rule sets that may apply to traffic to an application: those of the draft and, if a pending
 * change may affect the application, also those of the active policy. If deny rules of a rule set cannot be read, all
 * traffic to which they may apply is undecided. Throws the errors of the PCE client.
 *
 * @param own the existing rule set of the ringfence; null if there is none
 * @param deny the deny rule that the ringfence will have
 */
export async function readSurroundings(
  source: Source,
  { draft: whole, active: readActive }: PolicyRead,
  application: readonly Label[],
  own: RuleSet | null,
  deny: PlannedDeny | null,
): Promise<Surroundings> {
  const around = async (snapshot: PolicySnapshot): Promise<Around> => {
    const { near, far } = divide(snapshot, application, own)
    return { near: await withDenyRules(source, snapshot, near), far }
  }
  const draft = await around(whole)
  const pending = pendingNames(draft, own)
  const active = pending.length === 0 ? draft : await around(await readActive())
  return {
    ...judgeByRules(draft, active, application, own, deny),
    pending: [...new Set(pending)],
    hasPending: pending.length > 0 || (own !== null && pendingHolders({ ruleSets: [own], boundaries: [] }).length > 0),
    unread: [...new Set([draft, active])].flatMap(({ near }) =>
      near.ruleSets.flatMap(({ href, name }) => (near.unread.has(toDraftHref(href)) ? [name] : [])),
    ),
  }
}

/**
 * Divides all rule sets except the ringfence's own into those whose scope may include the application and all others.
 */
export function divide(snapshot: PolicySnapshot, application: readonly Label[], own: RuleSet | null) {
  const destination = someWorkloadWith(application)
  const [near, far]: [RuleSet[], RuleSet[]] = [[], []]
  for (const set of snapshot.ruleSets) {
    if (toDraftHref(set.href) === own?.href) continue
    const mayHold = set.scopes.some((scope) => matchLabels(scope, destination, snapshot) !== 'no')
    ;(mayHold ? near : far).push(set)
  }
  return { near, far }
}

/**
 * Returns the names of objects with pending changes that may affect the application: rule sets, enforcement boundaries,
 * and the objects to which their rules refer.
 */
function pendingNames({ near, far }: Around, own: RuleSet | null): string[] {
  // In the active version, the scope of a changed rule set may have included the application.
  const changed = [...pendingHolders(near), ...far.filter(isPending)].map(({ name }) => name)
  const told = JSON.stringify([near.ruleSets, near.boundaries, own])
  const objects = [...near.pendingObjects].flatMap(([href, name]) => (told.includes(`"${href}"`) ? [name] : []))
  return [...changed, ...objects]
}

/** The deny rule of a ringfence before it is written. It denies traffic from outside the scope. */
export type PlannedDeny = Pick<DenyRule, 'providers' | 'consumers' | 'ingress_services'>

/** A function that matches the rules against traffic from a source to one port of a destination. */
export type RuleJudge = (source: End, port: number | null, proto: number | null) => RuleAnswers

/** Creates the functions that match flows against the draft, the active policy and the ringfence's own rules. */
export function judgeByRules(
  draft: Around,
  active: Around,
  application: readonly Label[],
  own: RuleSet | null,
  deny: PlannedDeny | null,
): Pick<Surroundings, 'judge' | 'judgeAt'> {
  const scopes = [application.map((label) => ({ label }))]
  const planned: PlacedRule[] = deny === null ? [] : [{ scopes, rule: { ...deny, unscoped_consumers: true } }]
  const some = someWorkloadWith(application)
  const mine = matchKinds(
    (kind) => [
      ...(own === null ? [] : rulesOf(own, kind).map((rule) => ({ scopes: own.scopes, rule }))),
      ...(kind === 'deny' ? planned : []),
    ],
    some,
    draft.near,
  )
  const prepare = ({ near, far }: Around) => ({
    rules: matchKinds(
      (kind) => [...rulesInForce(near, kind), ...rulesInForce({ ruleSets: far, boundaries: [] }, kind)],
      some,
      near,
    ),
    isUnread: near.ruleSets.some(({ enabled, href }) => enabled && near.unread.has(toDraftHref(href))),
  })
  const tables = [...new Set([draft, active])].flatMap(({ near }) =>
    [...near.ruleSets, ...(own === null ? [] : [own])].flatMap((ruleSet) =>
      (ruleSet.ip_tables_rules ?? []).length === 0 ? [] : [{ ruleSet, near }],
    ),
  )
  const mayBypass = (end: End): Answer => {
    const answer = anyOf(tables.map(({ ruleSet, near }) => hasIpTablesFor(ruleSet, end, near)))
    return answer === 'no' ? 'no' : unknown('iptables', ...(isUnknown(answer) ? answer.unknown : []))
  }
  const drafted = prepare(draft)
  const inForce = active === draft ? drafted : prepare(active)
  const judgeAt =
    (destination: End | null): RuleJudge =>
    (from, port, proto) => {
      const ask = (kind: RuleType, end: keyof RuleMatch): Versions => {
        const match = (rules: MatchKinds) => anyOf(rules(kind, destination).map((one) => one[end](from, port, proto)))
        const of = ({ rules, isUnread }: typeof inForce): Answer =>
          anyOf([match(rules), isUnread && kind !== 'allow' ? unknown('unread_rules') : 'no'])
        const first = of(inForce)
        return { own: match(mine), active: first, draft: inForce === drafted ? first : of(drafted) }
      }
      const anyVersion = (end: keyof RuleMatch) => anyOf(Object.values(ask('allow', end)) as Answer[])
      return {
        atDestination: (kind) => ask(kind, 'atDestination'),
        atSource: (kind) => ask(kind, 'atSource'),
        byAddress: () => anyVersion('byAddress'),
        toAddress: () => anyVersion('toAddress'),
        mayBypass: (end) => (tables.length === 0 ? 'no' : mayBypass(end === 'src' ? from : (destination ?? some))),
      }
    }
  return { judge: judgeAt(null), judgeAt }
}

/**
 * A function that returns matchers for the rules of one type that apply at a destination. A null destination stands for
 * any workload of the application.
 */
type MatchKinds = (kind: RuleType, destination: End | null) => RuleMatch[]

/** Creates a function that builds the matchers for a type of rule when they are first needed. */
function matchKinds(rules: (kind: RuleType) => PlacedRule[], some: End, snapshot: PolicySnapshot): MatchKinds {
  const made = new Map<RuleType, RuleMatch[]>()
  const compiled = new Map<RuleType, (destination: End) => RuleMatch[]>()
  return (kind, destination) => {
    if (destination === null) {
      const known = made.get(kind) ?? [matchRules(rules(kind), some, snapshot)]
      made.set(kind, known)
      return known
    }
    const known = compiled.get(kind) ?? compileByDestination(rules(kind), snapshot)
    compiled.set(kind, known)
    return known(destination)
  }
}
