import { toDraftHref } from '../inventory/parse-href.js'
import { DECIDING_ORDER } from '../policy/rule-type.js'
import { anyOf, type Answer } from '../policy/three-valued.js'
import type { Steps } from '../text/pace-work.js'
import { hostOf, type Member } from './find-members.js'
import type { ApplyingRule, PairJudge, PairVerdict } from './judge-pair.js'
import type { HeldRule } from './place-rules.js'

/**
 * Functions that evaluate connections, one for each version of the policy. Both are the same object if no change is
 * pending.
 */
export interface VersionJudges {
  active: PairJudge
  draft: PairJudge
}

/** A pair of source and destination with its verdicts by both versions of the policy. */
export interface JudgedPair {
  source: Member
  destination: Member
  active: PairVerdict
  draft: PairVerdict
}

/** A group of pairs about which both the active policy and the draft decide alike. */
export interface Outcome extends Pick<JudgedPair, 'active' | 'draft'> {
  pairs: number
  /**
   * The first few pairs, each with a different combination of source class and destination class (see `MemberClass`).
   */
  examples: JudgedPair[]
}

/** A rule that matches a flow in one version of the policy, or in both versions if it is the same in both. */
export interface FoundRule extends ApplyingRule {
  versions: readonly ('active' | 'draft')[]
  /** Number of pairs that the rule matches. */
  pairs: number
}

/** The verdict on a flow between all members of its source and all members of its destination. */
export interface FlowVerdict {
  /**
   * The number of pairs. A host does not form a pair with itself, but a Kubernetes workload does, because it may have
   * several pods.
   */
  pairs: number
  judged: number
  /** True if some pairs or some members were left out. */
  isPartial: boolean
  /** The outcomes, those with the most pairs first. */
  outcomes: readonly Outcome[]
  /** The matching rules, in the order in which the PCE considers rules (P50). */
  rules: readonly FoundRule[]
}

/** Maximum number of combinations of a source class and a destination class that are evaluated or compared. */
export const MOST_KINDS = 4_000
const MOST_EXAMPLES = 3

/** A group of members that all rules treat alike. */
export interface MemberClass {
  members: readonly Member[]
  size: number
}

/** Evaluates every pair of members. If all rules treat several pairs alike, only one of them is evaluated. */
export function* judgeMembers(
  { active, draft }: VersionJudges,
  sources: readonly Member[],
  destinations: readonly Member[],
): Steps<FlowVerdict> {
  const judges = active === draft ? [active] : [active, draft]
  const from = yield* classify(judges, sources)
  const to = yield* classify(judges, destinations)
  const outcomes = new Map<string, Outcome>()
  const rules = createRuleTally()
  const { pairs } = countPairs(from, to)
  let [judged, kinds] = [0, 0]
  for (const { source, destination, count } of pairsOf(from, to)) {
    kinds += 1
    if (kinds > MOST_KINDS) break
    judged += count
    const one = active(source, destination)
    const other = draft === active ? one : draft(source, destination)
    rules.add(one, other, count)
    const id = `${one.decision} ${other.decision}`
    const outcome = outcomes.get(id) ?? { active: one, draft: other, pairs: 0, examples: [] }
    outcome.pairs += count
    if (outcome.examples.length < MOST_EXAMPLES)
      outcome.examples.push({ source, destination, active: one, draft: other })
    outcomes.set(id, outcome)
    yield
  }
  return {
    pairs,
    judged,
    isPartial: judged < pairs,
    outcomes: [...outcomes.values()].sort((a, b) => b.pairs - a.pairs),
    rules: rules.sorted([...active.rules, ...draft.rules]),
  }
}

/**
 * Counts the pairs of different members, one from each of two lists of classes, and the combinations of two classes.
 * The pairs themselves are not created.
 */
export function countPairs(from: readonly MemberClass[], to: readonly MemberClass[]): { pairs: number; kinds: number } {
  const sum = (classes: readonly MemberClass[]) => classes.reduce((all, { size }) => all + size, 0)
  const workloadsOf = (classes: readonly MemberClass[]) =>
    classes.flatMap(({ members }) => members.flatMap((member) => hostOf(member) ?? []))
  const alone = (classes: readonly MemberClass[]) => workloadsOf(classes.filter(({ size }) => size === 1))
  const [own, single] = [new Set(workloadsOf(from)), new Set(alone(from))]
  return {
    pairs: sum(from) * sum(to) - workloadsOf(to).filter((workload) => own.has(workload)).length,
    kinds: from.length * to.length - alone(to).filter((workload) => single.has(workload)).length,
  }
}

/** Yields one pair of members for every combination of two classes. */
export function* pairsOf(from: readonly MemberClass[], to: readonly MemberClass[]) {
  for (const one of from) {
    for (const other of to) {
      const pair = pairOf(one, other)
      if (pair !== null) yield pair
    }
  }
}

/**
 * Returns a pair of different members as an example for two classes, and the number of such pairs; null if there are
 * none.
 */
export function pairOf(
  from: MemberClass,
  to: MemberClass,
): { source: Member; destination: Member; count: number } | null {
  const own = new Set(from.members.flatMap((member) => hostOf(member) ?? []))
  const selves = to.members.filter((member) => own.has(hostOf(member) ?? '')).length
  const count = from.size * to.size - selves
  if (count <= 0) return null
  const [source, other = source] = from.members as [Member, Member?]
  const destination = to.members.find((member) => !isSame(source, member))
  if (destination !== undefined) return { source, destination, count }
  return { source: other, destination: to.members[0] as Member, count }
}

const isSame = (a: Member, b: Member) => hostOf(a) !== null && hostOf(a) === hostOf(b)

/** Groups members that all rules treat alike, the largest group first. */
export function* classify(judges: readonly PairJudge[], members: readonly Member[]): Steps<MemberClass[]> {
  if (members.length === 1) return [{ members, size: (members[0] as Member).size }]
  const actors = judges.flatMap(({ rules }) => rules.flatMap(({ rule }) => [...rule.providers, ...rule.consumers]))
  const named = new Set(actors.flatMap(({ workload }) => workload?.href ?? []))
  const lists = new Set(actors.flatMap(({ ip_list: list }) => (list === undefined ? [] : [toDraftHref(list.href)])))
  const classes = new Map<string, { members: Member[]; size: number }>()
  for (const member of members) {
    const { workload, labels, mode, os, offNetwork } = member
    const covered: Answer[] = []
    for (const { objects } of judges)
      for (const href of lists) {
        covered.push(objects.covers(href, member))
        // The first member has each list prepared for such questions, which takes long for a list of many ranges.
        if (classes.size === 0) yield
      }
    const id = JSON.stringify([
      mode,
      os === 'windows',
      workload === null ? null : named.has(workload) ? workload : '',
      Object.entries(labels).sort(),
      covered,
      offNetwork,
      judges.map(({ unjudgedAt }) => unjudgedAt(member) !== 'no'),
    ])
    const known = classes.get(id) ?? { members: [], size: 0 }
    known.members.push(member)
    known.size += member.size
    classes.set(id, known)
    yield
  }
  return [...classes.values()].sort((a, b) => b.size - a.size)
}

/** Creates a collection of the rules that match at least one pair. */
function createRuleTally() {
  const found = new Map<string, FoundRule & { versions: ('active' | 'draft')[] }>()
  const add = (rule: ApplyingRule, versions: readonly ('active' | 'draft')[], count: number) => {
    const id = contentOf(rule.held)
    const known = found.get(id) ?? { ...rule, versions: [], pairs: 0, atSource: 'no', atDestination: 'no' }
    for (const version of versions) if (!known.versions.includes(version)) known.versions.push(version)
    known.atSource = anyOf([known.atSource, rule.atSource])
    known.atDestination = anyOf([known.atDestination, rule.atDestination])
    // The draft version of the rule is shown, because it includes pending changes.
    if (versions.includes('draft')) known.held = rule.held
    known.pairs += count
    found.set(id, known)
  }
  return {
    add(active: PairVerdict, draft: PairVerdict, count: number) {
      const later = new Map(draft.rules.map((rule) => [contentOf(rule.held), rule]))
      for (const rule of active.rules) {
        const same = later.get(contentOf(rule.held))
        add(same ?? rule, same === undefined ? ['active'] : ['active', 'draft'], count)
        later.delete(contentOf(rule.held))
      }
      for (const rule of later.values()) add(rule, ['draft'], count)
    },
    sorted(rules: readonly HeldRule[]): FoundRule[] {
      const place = new Map(rules.map(({ href }, at) => [href, at]))
      const at = ({ held }: FoundRule) => DECIDING_ORDER.indexOf(held.kind) * rules.length + (place.get(held.href) ?? 0)
      return [...found.values()].sort((a, b) => at(a) - at(b))
    },
  }
}

const contents = new WeakMap<HeldRule, string>()

/**
 * Returns a string that identifies a rule with its content and scopes. If the rule is unchanged, it is the same for
 * both versions.
 */
function contentOf(held: HeldRule): string {
  const known = contents.get(held)
  if (known !== undefined) return known
  const { href, rule, scopes, kind } = held
  const { providers, consumers, ingress_services: services, egress_services: egress, ...rest } = rule
  const hrefs = JSON.stringify(
    [kind, scopes, providers, consumers, services, egress, rest.unscoped_consumers],
    (_, value: unknown) => (typeof value === 'string' ? toDraftHref(value) : value),
  )
  const text = `${href} ${hrefs}`
  contents.set(held, text)
  return text
}

/**
 * Returns whether a rule matches a connection at its source or destination: 'yes' if it certainly matches at one of
 * them.
 */
export const speaks = ({ atSource, atDestination }: Pick<ApplyingRule, 'atSource' | 'atDestination'>): Answer =>
  anyOf([atSource, atDestination])
