import type { PceClient } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import type { Label } from '../../schemas/pce/label.js'
import type { DenyRule, RuleSet } from '../../schemas/pce/rule-set.js'
import { ALL_SERVICES_NAME } from '../../schemas/pce/words.js'
import type { LabelIndex } from '../inventory/labels.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { compileByDestination } from '../policy/judge-allowed.js'
import {
  isPending,
  loadSnapshot,
  pendingHolders,
  rulesInForce,
  rulesOf,
  withDenyRules,
  type PolicySnapshot,
  type RuleKind,
} from '../policy/load-snapshot.js'
import {
  matchLabels,
  matchRules,
  someWorkloadWith,
  type End,
  type PlacedRule,
  type RuleMatch,
} from '../policy/match-rules.js'
import { anyOf, unknown, type Answer } from '../policy/three-valued.js'

interface Source {
  pce: PceClient
  signal: AbortSignal
}

/** The policy as the ringfences of one call see it. */
export interface PolicyRead {
  draft: PolicySnapshot
  /** Draft href of the one All Services. */
  allServices: string
  /** What is in force; read on first use. */
  readonly active: () => Promise<PolicySnapshot>
}

/** Reads the draft. Throws not_found where there is no All Services, ambiguous_name where there are several. */
export async function readPolicy(source: Source, labels: LabelIndex): Promise<PolicyRead> {
  const draft = await loadSnapshot(source, 'draft', labels)
  const [all, ...others] = draft.allServices
  if (all === undefined) throw new ToolError('not_found', `No service is named exactly "${ALL_SERVICES_NAME}".`)
  if (others.length > 0) {
    const text = `${draft.allServices.length} services are named "${ALL_SERVICES_NAME}". Nothing was written.`
    const candidates = draft.allServices.map(({ href, name }) => ({ href, name }))
    const hint = 'Rename or delete all but the one that the PCE came with.'
    throw new ToolError('ambiguous_name', text, { kind: 'services', name: ALL_SERVICES_NAME, candidates }, { hint })
  }
  let active: Promise<PolicySnapshot> | undefined
  return {
    draft,
    allServices: toDraftHref(all.href),
    active: () => (active ??= loadSnapshot(source, 'active', labels)),
  }
}

/** Answers of the ringfence's own rules, of all others in force, and of all others in draft. */
export interface Versions {
  own: Answer
  active: Answer
  draft: Answer
}

/** What the rules say of one flow. Each is evaluated only when needed. */
export interface RuleAnswers {
  /** Rules that are written to the destination. */
  readonly atDestination: (kind: RuleKind) => Versions
  /** Rules that are written to the source. */
  readonly atSource: (kind: RuleKind) => Versions
  /** An allow rule of any version lets the source in by its address. */
  readonly byAddress: () => Answer
  /** An allow rule of any version lets it out by the address of the destination. */
  readonly toAddress: () => Answer
}

/** The policy around a ringfence, with its own rules. */
export interface Surroundings {
  /** Of traffic to any workload of the application. */
  readonly judge: RuleJudge
  /** Of traffic to one of its workloads. */
  readonly judgeAt: (destination: End) => RuleJudge
  /** Names of objects with unprovisioned changes, which may be provisioned with the ringfence or without it. */
  pending: string[]
  /** Something is pending: these, or changes of the ringfence itself. */
  hasPending: boolean
  /** Names of rule sets whose deny rules could not be read. */
  unread: string[]
}

/** Rules as far as they are known in one version: rule sets whose scope may hold the application, and all others. */
interface Around {
  near: PolicySnapshot
  far: readonly RuleSet[]
}

/**
 * Reads the rules of all rule sets that may apply to traffic to an application: in draft, and in force as well if a pending
 * change may affect it. `own`: the rule set of the ringfence, where there is one; `deny`: the deny rule that it will have. Deny
 * rules that cannot be read leave the traffic they may apply to undecided. Throws what the PCE client throws.
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

/** Rule sets but the ringfence's own, by whether their scope may hold the application. */
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

/** Unprovisioned changes that may affect the application: rule sets, boundaries, and objects that their rules name. */
function pendingNames({ near, far }: Around, own: RuleSet | null): string[] {
  // A scope that is being changed may have contained the application.
  const changed = [...pendingHolders(near), ...far.filter(isPending)].map(({ name }) => name)
  const told = JSON.stringify([near.ruleSets, near.boundaries, own])
  const objects = [...near.pendingObjects].flatMap(([href, name]) => (told.includes(`"${href}"`) ? [name] : []))
  return [...changed, ...objects]
}

/** The deny rule of a ringfence that is yet to be written, from outside its scope. */
export type PlannedDeny = Pick<DenyRule, 'providers' | 'consumers' | 'ingress_services'>

/** What the rules say of traffic from a source to one port of a destination. */
export type RuleJudge = (source: End, port: number | null, proto: number | null) => RuleAnswers

/** Prepares both versions of the policy, and the ringfence itself, for judging flows. */
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
  const drafted = prepare(draft)
  const inForce = active === draft ? drafted : prepare(active)
  const judgeAt =
    (destination: End | null): RuleJudge =>
    (from, port, proto) => {
      const ask = (kind: RuleKind, end: keyof RuleMatch): Versions => {
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
      }
    }
  return { judge: judgeAt(null), judgeAt }
}

/** The rules of one kind as a test of what is sent to a destination; null is any workload of the application. */
type MatchKinds = (kind: RuleKind, destination: End | null) => RuleMatch[]

/** The matchers for each kind of rule, built on first use. */
function matchKinds(rules: (kind: RuleKind) => PlacedRule[], some: End, snapshot: PolicySnapshot): MatchKinds {
  const made = new Map<RuleKind, RuleMatch[]>()
  const compiled = new Map<RuleKind, (destination: End) => RuleMatch[]>()
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
