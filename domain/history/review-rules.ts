import type { DenyRule, IpTablesRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { RuleChangeShown } from '../../schemas/policy-changes.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import { PLAIN_FIELDS } from '../drafts/observe-change.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { CuttingRule } from '../policy/apply-change.js'
import { diffFields, differs } from '../policy/diff-fields.js'
import { compareRulesOf, type ComparedRule } from '../policy/diff-rule-set.js'
import {
  addRuleSets,
  createConnectionJudge,
  createRuleFinder,
  prepareRuleSet,
  type PreparedRuleSet,
  type RuleFinder,
} from '../policy/judge-connection.js'
import type { ComparedPolicies, JudgeOf } from '../policy/judge-cut.js'
import { isInForce, rulesInForce, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { AnyRule } from '../policy/rule-in-force.js'
import type { RuleType } from '../policy/rule-type.js'

/** One changed rule of a rule set, with the policies to compare in order to see its effect. */
export interface ReviewedRule {
  href: string
  type: RuleType
  change: RuleChangeShown['change']
  /** The rule as it is in force; for a new rule, as it will be. */
  rule: AnyRule
  /** The new version of a changed rule; absent for new and removed rules. */
  becomes?: AnyRule
  /** The rule's place in its list in the rule set, counted from 1. */
  position: number
  /** True if the rule itself stays the same, but its rule set gets other scopes, or is enabled or disabled. */
  isThroughSet: boolean
  /** The policies that show what the change takes away and what it allows; a reason if traffic cannot show this. */
  review: { taking: ComparedPolicies | null; giving: ComparedPolicies | null; rules: readonly CuttingRule[] } | string
}

/** The changed rules of a rule set, and the number of unchanged rules. */
export interface ReviewedRules {
  changed: Iterable<ReviewedRule>
  unchanged: number
  /** Number of rules in both versions whose place among the rules changes, which affects no traffic. */
  reordered: number
  /** Number of changed iptables rules, whose effect on traffic is not judged. */
  ipTables: number
}

/** Both versions of a rule set, with the policies before and after its change. */
interface ChangedSet {
  href: string
  /** Null for a deleted rule set. */
  draft: RuleSet | null
  /** Null for a new rule set. */
  active: RuleSet | null
  /** The active policy. */
  base: PolicySnapshot
  /** The active policy with the changed rule set. */
  alone: PolicySnapshot
  /** The draft. */
  is: PolicySnapshot
}

const NOT_IN_FORCE = 'it is in force neither before nor after'
const ONLY_TEXT = 'only its texts change'

/**
 * Finds the changed rules of a rule set. Each is compared beside the rules that stay, so that rules of the same change
 * do not hide each other. For example, traffic that two new rules allow counts for both. Traffic that a new rule allows
 * in place of a removed one counts for the new rule and does not depend on the removed one. If the scopes change, or
 * the rule set is enabled or disabled, every rule counts as changed.
 */
export function reviewRules(set: ChangedSet): ReviewedRules {
  const { href, draft, active, base, alone, is } = set
  const isThroughSet =
    draft !== null &&
    active !== null &&
    (differs(draft.scopes, active.scopes) || isInForce(draft) !== isInForce(active))
  const compared = compareRulesOf(draft, active)
  const touched = isThroughSet ? compared : compared.filter(({ change }) => change !== null)
  const hrefs = new Set(touched.map((rule) => rule.href))
  const isTouched = (rule: { href: string }) => hrefs.has(toDraftHref(rule.href))
  const kept = draft && reduceTo(draft, (rule) => !isTouched(rule))
  const [fresh, old] = [draft, active].map((version) =>
    version === null ? [] : [{ ...reduceTo(version, isTouched), deny_rules: [], ip_tables_rules: [] }],
  ) as RuleSet[][] as [RuleSet[], RuleSet[]]
  // The bases made from the draft, and those made from the active policy with this change alone.
  const [draftBases, aloneBases] = [is, alone].map((policy) => {
    const staying = withSet(policy, href, kept)
    return { staying, withFresh: grow(staying, fresh), withOld: grow(staying, old) }
  }) as [Bases, Bases]
  const placeOf = createPlaces(draft, active)
  function* changed(): Generator<ReviewedRule> {
    for (const rule of touched) {
      const review = compareRule(rule, set, isThroughSet, (find) => [find(draftBases), find(aloneBases)])
      yield {
        href: rule.href,
        type: rule.type,
        change: rule.change ?? 'changed',
        rule: (rule.active ?? rule.draft) as AnyRule,
        ...(rule.change === 'changed' && { becomes: rule.draft as AnyRule }),
        position: placeOf(rule),
        isThroughSet: rule.change === null,
        review: typeof review === 'string' ? review : { ...review, rules: matching(rule, set, base, is) },
      }
    }
  }
  return {
    changed: { [Symbol.iterator]: changed },
    unchanged: compared.length - touched.length,
    reordered: countReordered(draft, active),
    ipTables: countIpTables(draft, active, isThroughSet),
  }
}

/**
 * A policy with only the unchanged rules of the rule set, and the same policy with the changed allow rules in their new
 * (`withFresh`) or old (`withOld`) version.
 */
interface Bases {
  staying: PolicySnapshot
  withFresh: PolicySnapshot
  withOld: PolicySnapshot
}

/**
 * Returns the policies that show what the change of one rule takes away and allows, or why traffic cannot show this.
 */
function compareRule(
  rule: ComparedRule,
  { draft, active, base, is: whole }: ChangedSet,
  isThroughSet: boolean,
  inBoth: (find: (bases: Bases) => Pick<ComparedPolicies, 'was' | 'is'>) => Pick<ComparedPolicies, 'was' | 'is'>[],
): Pick<Exclude<ReviewedRule['review'], string>, 'taking' | 'giving'> | string {
  const [before, after] = [alone(active, rule.active), alone(draft, rule.draft)]
  if (before.length + after.length === 0) return NOT_IN_FORCE
  const isText = before.length > 0 && after.length > 0 && rule.fields.every(({ field }) => PLAIN_FIELDS.has(field))
  if (isText && !isThroughSet) return ONLY_TEXT
  const compare = (today: PolicySnapshot, find: (bases: Bases) => Pick<ComparedPolicies, 'was' | 'is'>) => {
    const [inDraft, inActive] = inBoth(find) as [
      Pick<ComparedPolicies, 'was' | 'is'>,
      Pick<ComparedPolicies, 'was' | 'is'>,
    ]
    return { ...inDraft, pending: { active: today, ...inActive } }
  }
  if (rule.type === 'allow')
    return {
      taking:
        before.length === 0
          ? null
          : compare(base, ({ withFresh }) => ({ was: grow(withFresh, before), is: withFresh })),
      giving:
        after.length === 0
          ? null
          : compare(whole, ({ staying }) => {
              const without = grow(staying, before)
              return { was: grow(without, after), is: without }
            }),
    }
  return {
    taking:
      after.length === 0
        ? null
        : compare(base, ({ withOld }) => {
            const without = grow(withOld, before)
            return { was: without, is: grow(without, after) }
          }),
    giving:
      before.length === 0
        ? null
        : compare(whole, ({ withFresh }) => {
            const passing = grow(withFresh, after)
            return { was: passing, is: grow(passing, before) }
          }),
  }
}

/** Returns a list with the rule set reduced to this rule; an empty list if the rule is not in force. */
function alone(set: RuleSet | null, rule: AnyRule | null): RuleSet[] {
  if (set === null || rule === null || !isInForce(set) || !isInForce(rule)) return []
  return [{ ...reduceTo(set, (one) => one.href === rule.href), ip_tables_rules: [] }]
}

function reduceTo(set: RuleSet, isWanted: (rule: Rule | DenyRule) => boolean): RuleSet {
  const { rules, deny_rules: denies } = set
  return { ...set, rules: (rules ?? []).filter(isWanted), deny_rules: (denies ?? []).filter(isWanted) }
}

/**
 * Lists the rule in those of its versions that are in force. The list serves to find the traffic that the rule can
 * affect.
 */
function matching(
  rule: ComparedRule,
  { draft, active }: ChangedSet,
  ...policies: readonly PolicySnapshot[]
): CuttingRule[] {
  const ruleSets = [...alone(active, rule.active), ...alone(draft, rule.draft)]
  return policies.flatMap((policy) =>
    RULE_TYPES.flatMap((type) =>
      rulesInForce({ ruleSets, boundaries: [] }, type).map((placed) => ({ type, placed, policy })),
    ),
  )
}

function createPlaces(draft: RuleSet | null, active: RuleSet | null): (rule: ComparedRule) => number {
  const placesIn = (set: RuleSet | null) =>
    new Map(
      [set?.rules ?? [], set?.deny_rules ?? []].flatMap((list: readonly (Rule | DenyRule)[]) =>
        list.map(({ href }, at) => [toDraftHref(href), at + 1] as const),
      ),
    )
  const [now, before] = [placesIn(draft), placesIn(active)]
  return ({ href }) => now.get(href) ?? before.get(href) ?? 1
}

function countReordered(draft: RuleSet | null, active: RuleSet | null): number {
  const hrefs = (rules: readonly (Rule | DenyRule)[] | null | undefined) =>
    (rules ?? []).map(({ href }) => toDraftHref(href))
  const count = (now: readonly string[], before: readonly string[]) => {
    const [inNow, inBefore] = [new Set(now), new Set(before)]
    const was = before.filter((href) => inNow.has(href))
    return now.filter((href) => inBefore.has(href)).filter((href, at) => was[at] !== href).length
  }
  return count(hrefs(draft?.rules), hrefs(active?.rules)) + count(hrefs(draft?.deny_rules), hrefs(active?.deny_rules))
}

function countIpTables(draft: RuleSet | null, active: RuleSet | null, isThroughSet: boolean): number {
  const [now, before] = [draft, active].map(
    (set) => new Map((set?.ip_tables_rules ?? []).map((rule) => [toDraftHref(rule.href), rule])),
  ) as [Map<string, IpTablesRule>, Map<string, IpTablesRule>]
  return [...new Set([...now.keys(), ...before.keys()])].filter((href) => {
    const [is, was] = [now.get(href) ?? null, before.get(href) ?? null]
    return isThroughSet || is === null || was === null || is.update_type === 'delete' || diffFields(is, was).length > 0
  }).length
}

/** A policy that adds rule sets to another policy. What was prepared for the other policy can be used again. */
interface GrownPolicy extends PolicySnapshot {
  grown: { from: PolicySnapshot; by: readonly RuleSet[] }
}

const isGrown = (policy: PolicySnapshot): policy is GrownPolicy => 'grown' in policy

/**
 * Adds rule sets to a policy. If several policies grow from the same one, `shareJudges` prepares that one only once.
 */
export function grow(policy: PolicySnapshot, further: readonly RuleSet[]): PolicySnapshot {
  if (further.length === 0) return policy
  const { from, by } = isGrown(policy) ? policy.grown : { from: policy, by: [] }
  const grown: GrownPolicy = {
    ...policy,
    ruleSets: [...policy.ruleSets, ...further],
    grown: { from, by: [...by, ...further] },
  }
  return grown
}

/**
 * Returns the policy with this rule set in place of the one that has the href, or without it if the rule set is null.
 */
export function withSet(policy: PolicySnapshot, href: string, set: RuleSet | null): PolicySnapshot {
  const swap = (sets: readonly RuleSet[]) => [
    ...sets.filter((one) => toDraftHref(one.href) !== href),
    ...(set === null ? [] : [set]),
  ]
  const ruleSets = swap(policy.ruleSets)
  if (!isGrown(policy)) return { ...policy, ruleSets }
  const { from, by } = policy.grown
  const changed: GrownPolicy = { ...policy, ruleSets, grown: { from, by: swap(by) } }
  return changed
}

/** Judges for several policies. The parts that the policies have in common are prepared once. */
export interface SharedJudges {
  judgeOf: JudgeOf
  /** Forgets what was prepared for these policies and for no others. */
  forget: (policies: readonly PolicySnapshot[]) => void
}

export function shareJudges(): SharedJudges {
  const finders = new WeakMap<PolicySnapshot, RuleFinder>()
  // The first key is a policy's index of objects, because the draft and active versions of the objects differ.
  const prepared = new WeakMap<PolicySnapshot['covers'], WeakMap<RuleSet, PreparedRuleSet>>()
  const prepare = (set: RuleSet, policy: PolicySnapshot): PreparedRuleSet => {
    const known = prepared.get(policy.covers) ?? new WeakMap<RuleSet, PreparedRuleSet>()
    prepared.set(policy.covers, known)
    const one = known.get(set) ?? prepareRuleSet(set, policy)
    known.set(set, one)
    return one
  }
  const finderOf = (policy: PolicySnapshot): RuleFinder => {
    const known = finders.get(policy)
    if (known !== undefined) return known
    const finder = isGrown(policy)
      ? addRuleSets(
          finderOf(policy.grown.from),
          policy.grown.by.map((set) => prepare(set, policy)),
        )
      : createRuleFinder(policy)
    finders.set(policy, finder)
    return finder
  }
  return {
    judgeOf: (policy) => createConnectionJudge(policy, finderOf(policy)),
    forget(policies) {
      for (const policy of policies) finders.delete(policy)
    },
  }
}
