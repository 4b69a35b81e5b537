import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { CuttingRule } from '../policy/apply-change.js'
import type { ComparedPolicies } from '../policy/judge-cut.js'
import { rulesInForce, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { ReadType, WholePolicy } from './load-policy.js'
import { grow, reviewRules, withSet, type ReviewedRules } from './review-rules.js'
import { snapshotOf } from './snapshot-of-version.js'

/** The types of objects whose changes can be judged by observed traffic. */
const JUDGED = ['rule_sets', 'enforcement_boundaries', 'ip_lists', 'services', 'label_groups'] as const
type JudgedType = (typeof JUDGED)[number]
/** The types of objects to which rules refer. */
const REFERRED: readonly JudgedType[] = ['ip_lists', 'services', 'label_groups']

/** One pending change, with the policies to compare in order to see its effect. */
export interface ReviewedPolicies {
  /** The policies to compare to find traffic that passes without the change but not with it. */
  taking: ComparedPolicies
  /** The policies to compare to find traffic that passes with the change but not without it. */
  giving: ComparedPolicies
  /** The rules, in either policy, through which the change can make a difference. */
  rules: readonly CuttingRule[]
  /** The changed rules of the rule set; absent if the change is not that of a rule set. */
  each?: ReviewedRules
  /** The policies that were made for this change alone, so nothing prepared for them needs to be kept. */
  own?: readonly PolicySnapshot[]
}

/**
 * A function that returns the policies without and with one pending change. It returns null for types of objects that
 * are not judged.
 */
export type ReviewOf = (type: string, href: string) => ReviewedPolicies | null

/**
 * Creates the function that builds, for one pending change, the draft without this change and the active policy with
 * nothing but this change. Objects that exist only in the draft are in every policy: the PCE provisions them with the
 * rules that need them, and without such rules they change nothing.
 * @param changed the changes to review. The part of the policy that none of them touches is the same in all policies,
 * so it is prepared only once.
 */
export function createReviews(
  active: WholePolicy,
  draft: WholePolicy,
  labels: LabelIndex,
  changed: readonly { type: string; href: string }[],
): ReviewOf {
  const today = withNew(active, draft)
  const sets = new Set(changed.flatMap(({ type, href }) => (type === 'rule_sets' ? [href] : [])))
  const restOf = (policy: WholePolicy, version: 'active' | 'draft') => {
    const others = new Map([...policy.rule_sets].filter(([href]) => !sets.has(href)))
    return snapshotOf({ ...policy, rule_sets: others }, version, labels)
  }
  const setOf = (policy: WholePolicy, href: string) => (policy.rule_sets.get(href) ?? null) as RuleSet | null
  const withSets = (rest: PolicySnapshot, policy: WholePolicy) =>
    grow(
      rest,
      [...sets].flatMap((href) => setOf(policy, href) ?? []),
    )
  const [restToday, restDraft] = [restOf(today, 'active'), restOf(draft, 'draft')]
  const [base, is] = [withSets(restToday, today), withSets(restDraft, draft)]
  const compare = (alone: PolicySnapshot, without: PolicySnapshot) => ({
    taking: { was: without, is, pending: { active: base, was: base, is: alone } },
    // With the two policies exchanged, the traffic that would be cut is the traffic that the change allows.
    giving: { was: is, is: without, pending: { active: is, was: alone, is: base } },
  })
  return (type, href) => {
    if (!isJudged(type)) return null
    if (type === 'rule_sets') {
      const versions = { draft: setOf(draft, href), active: setOf(active, href) }
      const [alone, without] = [withSet(base, href, versions.draft), withSet(is, href, versions.active)]
      const only = (policy: PolicySnapshot, set: RuleSet | null) => rulesIn(policy, set === null ? [] : [set], [])
      return {
        ...compare(alone, without),
        rules: [
          ...differing(only(base, versions.active), only(alone, versions.draft), null),
          ...differing(only(without, versions.active), only(is, versions.draft), null),
        ],
        each: reviewRules({ href, ...versions, base, alone, is }),
        own: [],
      }
    }
    const swap = (policy: WholePolicy, from: WholePolicy, rest: PolicySnapshot, version: 'active' | 'draft') => {
      const whole = withObject(policy, type, href, from[type].get(href))
      return snapshotOf(whole, version, labels, REFERRED.includes(type) ? undefined : rest)
    }
    const alone = swap(today, draft, restToday, 'active')
    const without = swap(draft, today, restDraft, 'draft')
    const mentioned = REFERRED.includes(type) ? mentionsOf(type, href, [active, draft]) : null
    const all = (policy: PolicySnapshot) => rulesIn(policy, policy.ruleSets, policy.boundaries)
    return {
      ...compare(alone, without),
      rules: [...differing(all(base), all(alone), mentioned), ...differing(all(without), all(is), mentioned)],
      own: [alone, without],
    }
  }
}

const isJudged = (type: string): type is JudgedType => (JUDGED as readonly string[]).includes(type)

/**
 * Returns the policies without and with a change of rule sets of the draft, such as rules that are retired. The
 * draft `changed` has the rule sets `hrefs` as the change leaves them.
 */
export function reviewRuleSets(
  { active, draft, changed }: Record<'active' | 'draft' | 'changed', WholePolicy>,
  hrefs: readonly string[],
  labels: LabelIndex,
): Pick<ReviewedPolicies, 'taking' | 'giving'> {
  const today = withNew(active, draft)
  const provisioned = (from: WholePolicy) =>
    hrefs.reduce((policy, href) => withObject(policy, 'rule_sets', href, from.rule_sets.get(href)), today)
  const [base, was] = [snapshotOf(today, 'active', labels), snapshotOf(draft, 'draft', labels)]
  const is = snapshotOf(changed, 'draft', labels, was)
  const [before, after] = [draft, changed].map((from) => snapshotOf(provisioned(from), 'active', labels, base)) as [
    PolicySnapshot,
    PolicySnapshot,
  ]
  return {
    taking: { was, is, pending: { active: base, was: before, is: after } },
    giving: { was: is, is: was, pending: { active: is, was: after, is: before } },
  }
}

function withObject(policy: WholePolicy, type: ReadType, href: string, object: PceObject | undefined): WholePolicy {
  const objects = new Map(policy[type])
  if (object === undefined) objects.delete(href)
  else objects.set(href, object)
  return { ...policy, [type]: objects }
}

/** Adds the objects to which rules refer and that exist only in the draft. */
function withNew(active: WholePolicy, draft: WholePolicy): WholePolicy {
  const added = REFERRED.map((type) => [type, new Map([...draft[type], ...active[type]])] as const)
  return { ...active, ...Object.fromEntries(added) }
}

/** Returns the hrefs by which rules can refer to an object: its own, and those of the label groups that contain it. */
function mentionsOf(type: JudgedType, href: string, policies: readonly WholePolicy[]): readonly string[] {
  const found = new Set([href])
  if (type !== 'label_groups') return [...found]
  for (const group of found)
    for (const policy of policies)
      for (const [other, { sub_groups: inside }] of policy.label_groups)
        if (((inside ?? []) as { href: string }[]).some((one) => one.href === group)) found.add(other)
  return [...found]
}

type ListedRule = CuttingRule & { text: string }

const rulesIn = (
  policy: PolicySnapshot,
  ruleSets: PolicySnapshot['ruleSets'],
  boundaries: PolicySnapshot['boundaries'],
): ListedRule[] =>
  RULE_TYPES.flatMap((type) =>
    rulesInForce({ ruleSets, boundaries }, type).map((placed) => ({
      type,
      placed,
      policy,
      text: JSON.stringify([type, placed]),
    })),
  )

/** Lists the rules of two policies that differ or, if an object changes, that mention it. */
function differing(
  before: readonly ListedRule[],
  after: readonly ListedRule[],
  mentioned: readonly string[] | null,
): CuttingRule[] {
  const isWanted = (others: ReadonlySet<string>) => (rule: ListedRule) =>
    mentioned === null ? !others.has(rule.text) : mentioned.some((href) => rule.text.includes(`"${href}"`))
  const textsOf = (rules: readonly ListedRule[]) => new Set(rules.map(({ text }) => text))
  return [...before.filter(isWanted(textsOf(after))), ...after.filter(isWanted(textsOf(before)))]
}
