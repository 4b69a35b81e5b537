import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { CuttingRule } from '../policy/apply-change.js'
import type { ComparedPolicies } from '../policy/judge-cut.js'
import { rulesInForce, type PolicySnapshot } from '../policy/load-snapshot.js'
import type { ReadType, WholePolicy } from './load-policy.js'
import { snapshotOf } from './snapshot-of-version.js'

/** The types of objects whose changes the judge of connections can follow to traffic. */
const JUDGED = ['rule_sets', 'enforcement_boundaries', 'ip_lists', 'services', 'label_groups'] as const
type JudgedType = (typeof JUDGED)[number]
/** The types of objects to which rules refer. */
const REFERRED: readonly JudgedType[] = ['ip_lists', 'services', 'label_groups']

/** One pending change as policies that can be compared. */
export interface ReviewedPolicies {
  /** Compares the policies to find traffic that passes without the change and not with it. */
  taking: ComparedPolicies
  /** Compares the policies to find traffic that passes with the change and not without it. */
  giving: ComparedPolicies
  /** The rules, in either policy, through which the change can make a difference. */
  rules: readonly CuttingRule[]
}

/** A function that returns the policies without and with one pending change; null if it is of a type not judged. */
export type ReviewOf = (type: string, href: string) => ReviewedPolicies | null

/**
 * Creates the function that takes one pending change out of the draft, and puts it alone into the active policy.
 * Objects that exist only in the draft are in every policy: the PCE provisions them with the rules that need them,
 * and without such rules they change nothing.
 */
export function createReviews(active: WholePolicy, draft: WholePolicy, labels: LabelIndex): ReviewOf {
  const today = withNew(active, draft)
  const [base, is] = [snapshotOf(today, 'active', labels), snapshotOf(draft, 'draft', labels)]
  return (type, href) => {
    if (!isJudged(type)) return null
    const swap = (policy: WholePolicy, from: WholePolicy, whole: PolicySnapshot, version: 'active' | 'draft') => {
      const changed = withObject(policy, type, href, from[type].get(href))
      return snapshotOf(changed, version, labels, REFERRED.includes(type) ? undefined : whole)
    }
    const alone = swap(today, draft, base, 'active')
    const without = swap(draft, today, is, 'draft')
    const mentioned = REFERRED.includes(type) ? mentionsOf(type, href, [active, draft]) : null
    const rules = [...differing(base, alone, mentioned), ...differing(without, is, mentioned)]
    return {
      taking: { was: without, is, pending: { active: base, was: base, is: alone } },
      // With the roles of the policies exchanged, what would be cut is what the change lets pass.
      giving: { was: is, is: without, pending: { active: is, was: alone, is: base } },
      rules,
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

/** Returns the hrefs by which rules can mean an object: its own, and those of the label groups that contain it. */
function mentionsOf(type: JudgedType, href: string, policies: readonly WholePolicy[]): readonly string[] {
  const found = new Set([href])
  if (type !== 'label_groups') return [...found]
  for (const group of found)
    for (const policy of policies)
      for (const [other, { sub_groups: inside }] of policy.label_groups)
        if (((inside ?? []) as { href: string }[]).some((one) => one.href === group)) found.add(other)
  return [...found]
}

/** Lists the rules of two policies that differ or, if an object changes, that mention it. */
function differing(was: PolicySnapshot, is: PolicySnapshot, mentioned: readonly string[] | null): CuttingRule[] {
  const listOf = (policy: PolicySnapshot) =>
    RULE_TYPES.flatMap((type) =>
      rulesInForce(policy, type).map((placed) => ({ type, placed, policy, text: JSON.stringify([type, placed]) })),
    )
  const [before, after] = [listOf(was), listOf(is)]
  const isWanted = (others: ReadonlySet<string>) => (rule: { text: string }) =>
    mentioned === null ? !others.has(rule.text) : mentioned.some((href) => rule.text.includes(`"${href}"`))
  const textsOf = (rules: readonly { text: string }[]) => new Set(rules.map(({ text }) => text))
  return [...before.filter(isWanted(textsOf(after))), ...after.filter(isWanted(textsOf(before)))]
}
