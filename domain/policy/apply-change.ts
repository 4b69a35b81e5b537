import type { IpList } from '../../schemas/pce/ip-list.js'
import type { LabelGroup } from '../../schemas/pce/label.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import { groupsIn } from '../inventory/label-groups.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { readRuleSets } from '../inventory/require-rule-shape.js'
import { catalogOf, membersBy, rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import type { PlacedRule } from './match-rules.js'
import type { RuleType } from './rule-type.js'

/**
 * A change that a tool is about to make to the draft. It is plain data, so it can be searched for hrefs of other
 * objects.
 */
export type PolicyChange =
  /**
   * A change that replaces the rule with this href, or adds it if the rule set has no such rule. If `rule` is null, the
   * rule is deleted.
   */
  | { is: 'rule'; ruleSet: string; collection: 'sec_rules' | 'deny_rules'; href: string; rule: object | null }
  /** A change that replaces the given fields of a rule set. If `fields` is null, the rule set is deleted. */
  | {
      is: 'rule_set'
      href: string
      fields: Partial<Pick<RuleSet, 'enabled' | 'scopes' | 'rules' | 'deny_rules'>> | null
    }
  | { is: 'new_rule_set'; ruleSet: RuleSet }
  | { is: 'ip_list'; list: IpList }
  | { is: 'service'; service: Service }
  | { is: 'label_group'; group: LabelGroup }

/**
 * A rule through which a change may block traffic. It comes with the policy that contains it, before or after the
 * change.
 */
export interface CuttingRule {
  type: RuleType
  placed: PlacedRule
  policy: PolicySnapshot
}

/** A policy after a change, and the rules through which the change may block traffic. */
export interface ChangedPolicy {
  policy: PolicySnapshot
  /**
   * Allow rules that the change removes or alters, as they were before the change, and deny rules that it adds or
   * alters, as they are after the change.
   */
  cutting: readonly CuttingRule[]
}

/**
 * Applies a change to a policy. Returns null if the change concerns a rule set that the policy does not contain.
 *
 * @throws {PceError} invalid_response, as readRuleSets does, for a rule set or rule of an unexpected shape.
 */
export function applyChange(was: PolicySnapshot, change: PolicyChange): ChangedPolicy | null {
  if (change.is === 'ip_list') return withObject(was, withList(was, change.list), mentions(change.list.href))
  if (change.is === 'service') return withObject(was, withService(was, change.service), mentions(change.service.href))
  if (change.is === 'label_group') return withObject(was, withGroup(was, change.group), reaches(was, change.group.href))
  if (change.is === 'new_rule_set') return withRuleSet(was, null, change.ruleSet)
  const href = toDraftHref(change.is === 'rule' ? change.ruleSet : change.href)
  const before = was.ruleSets.find((one) => toDraftHref(one.href) === href)
  if (before === undefined) return null
  if (change.is === 'rule') return withRuleSet(was, before, withRule(before, change))
  return withRuleSet(was, before, change.fields === null ? null : { ...before, ...change.fields })
}

function withRule(ruleSet: RuleSet, change: PolicyChange & { is: 'rule' }): RuleSet {
  const href = toDraftHref(change.href)
  const edit = <R extends Rule | DenyRule>(rules: readonly R[] | null | undefined): R[] => {
    const list = rules ?? []
    const fresh = change.rule === null ? [] : [{ ...change.rule, href } as R]
    if (!list.some((one) => toDraftHref(one.href) === href)) return [...list, ...fresh]
    return list.flatMap((one) => (toDraftHref(one.href) === href ? fresh : [one]))
  }
  return change.collection === 'sec_rules'
    ? { ...ruleSet, rules: edit(ruleSet.rules) }
    : { ...ruleSet, deny_rules: edit(ruleSet.deny_rules) }
}

function withRuleSet(was: PolicySnapshot, before: RuleSet | null, becomes: RuleSet | null): ChangedPolicy {
  // The tools pass objects on exactly as the PCE sent them, so selectors in them may be null.
  const [after = null] = becomes === null ? [] : readRuleSets([becomes])
  const ruleSets =
    before === null
      ? [...was.ruleSets, ...(after === null ? [] : [after])]
      : was.ruleSets.flatMap((one) => (one !== before ? [one] : after === null ? [] : [after]))
  const policy = { ...was, ruleSets }
  const rulesOf = (ruleSet: RuleSet | null) =>
    listRules({ ruleSets: ruleSet === null ? [] : [ruleSet], boundaries: [] })
  const [old, fresh] = [rulesOf(before), rulesOf(after)]
  const known = (rules: readonly TypedRule[]) => new Set(rules.map(idOf))
  const [wasThere, isThere] = [known(old), known(fresh)]
  return {
    policy,
    cutting: cuttingOf(
      { policy: was, rules: old.filter((rule) => !isThere.has(idOf(rule))) },
      { policy, rules: fresh.filter((rule) => !wasThere.has(idOf(rule))) },
    ),
  }
}

interface TypedRule {
  type: RuleType
  placed: PlacedRule
}

const idOf = ({ type, placed }: TypedRule) => JSON.stringify([type, placed.scopes, placed.rule])

const listRules = (policy: Parameters<typeof rulesInForce>[0]): TypedRule[] =>
  RULE_TYPES.flatMap((type) => rulesInForce(policy, type).map((placed) => ({ type, placed })))

/**
 * Returns the policy after a change of an object, and the rules through which this change may cut traffic. These are
 * all rules that refer to the object, because the change alters their effect.
 */
function withObject(
  was: PolicySnapshot,
  policy: PolicySnapshot,
  refersTo: (placed: PlacedRule) => boolean,
): ChangedPolicy {
  const rules = listRules(was).filter(({ placed }) => refersTo(placed))
  return { policy, cutting: cuttingOf({ policy: was, rules }, { policy, rules }) }
}

/** Returns a test for rules that refer to an object. */
function mentions(href: string): (placed: PlacedRule) => boolean {
  const hrefs = [toDraftHref(href), toActiveHref(href)].map((one) => `"${one}"`)
  return (placed) => {
    const text = JSON.stringify(placed)
    return hrefs.some((one) => text.includes(one))
  }
}

/** Returns a test for rules that refer to the given label group, or to a group that contains it at any depth. */
function reaches({ groupOf }: PolicySnapshot, href: string): (placed: PlacedRule) => boolean {
  const wanted = toDraftHref(href)
  const answers = new Map([[wanted, true]])
  const leads = (group: string): boolean => {
    const known = answers.get(group)
    if (known !== undefined) return known
    // A group that contains itself adds nothing. This entry ends the search when it reaches such a group again.
    answers.set(group, false)
    const found = (groupOf(group)?.sub_groups ?? []).some((one) => leads(toDraftHref(one.href)))
    answers.set(group, found)
    return found
  }
  return (placed) => [...groupsIn(placed)].some(leads)
}

type RulesOf = { policy: PolicySnapshot; rules: readonly TypedRule[] }

function cuttingOf(was: RulesOf, is: RulesOf): CuttingRule[] {
  const pick = ({ policy, rules }: RulesOf, mayCut: (type: RuleType) => boolean) =>
    rules.filter(({ type }) => mayCut(type)).map((rule) => ({ ...rule, policy }))
  return [...pick(was, (type) => type === 'allow'), ...pick(is, (type) => type !== 'allow')]
}

/** Returns the policy with this IP list in place of its previous version. */
export function withList(was: PolicySnapshot, given: IpList): PolicySnapshot {
  // The PCE's traffic filters use the stored list, not the new version given to this function. So the list is marked as
  // having a pending change.
  const list: IpList = { ...given, update_type: given.update_type ?? 'update' }
  const only = catalogOf({ labels: undefined, services: [], lists: [list], groups: [] })
  const of = (href: string) => (toDraftHref(href) === toDraftHref(list.href) ? only : was)
  return {
    ...was,
    covers: (href, end) => of(href).covers(href, end),
    listOf: (href) => of(href).listOf(href),
    familiesOf: (href) => of(href).familiesOf(href),
  }
}

/** Returns the policy with this service in place of its previous version. */
export function withService(was: PolicySnapshot, service: Service): PolicySnapshot {
  const id = toDraftHref(service.href)
  return { ...was, serviceOf: (href) => (toDraftHref(href) === id ? service : was.serviceOf(href)) }
}

/** Returns the policy with this label group in place of its previous version, also inside the groups that contain it. */
export function withGroup(was: PolicySnapshot, group: LabelGroup): PolicySnapshot {
  const id = toDraftHref(group.href)
  const groupOf = (href: string) => (toDraftHref(href) === id ? group : was.groupOf(href))
  return {
    ...was,
    groupOf,
    keyOf: (href) => (toDraftHref(href) === id ? group.key : was.keyOf(href)),
    membersOf: membersBy(groupOf, was.labelOf),
  }
}
