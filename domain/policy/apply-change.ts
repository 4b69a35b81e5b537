import type { IpList } from '../../schemas/pce/ip-list.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { Service } from '../../schemas/pce/service.js'
import { RULE_TYPES } from '../../schemas/rule-shapes.js'
import { toActiveHref, toDraftHref } from '../inventory/parse-href.js'
import { readRuleSets } from '../inventory/require-rule-shape.js'
import { catalogOf, rulesInForce, type PolicySnapshot } from './load-snapshot.js'
import type { PlacedRule } from './match-rules.js'
import type { RuleType } from './rule-type.js'

/** A change of the draft as a tool is about to write it: data only, so that it shows every object that it mentions. */
export type PolicyChange =
  /** A rule is replaced or, if it is null, deleted; a rule whose href the rule set does not have is added. */
  | { is: 'rule'; ruleSet: string; collection: 'sec_rules' | 'deny_rules'; href: string; rule: object | null }
  /** Fields of a rule set are replaced; it is deleted if they are null. */
  | {
      is: 'rule_set'
      href: string
      fields: Partial<Pick<RuleSet, 'enabled' | 'scopes' | 'rules' | 'deny_rules'>> | null
    }
  | { is: 'new_rule_set'; ruleSet: RuleSet }
  | { is: 'ip_list'; list: IpList }
  | { is: 'service'; service: Service }

/** A rule by which a change may cut traffic, with the version of the policy that has it. */
export interface CuttingRule {
  type: RuleType
  placed: PlacedRule
  policy: PolicySnapshot
}

/** A policy with a change, and the rules by which the change may cut traffic. */
export interface ChangedPolicy {
  policy: PolicySnapshot
  /** Allow rules that end or change, as they were, and deny rules that begin or change, as they become. */
  cutting: readonly CuttingRule[]
}

/**
 * Applies a change to a policy. Returns null if the policy does not have the rule set that changes.
 * @throws {PceError} invalid_response, as readRuleSets does, for an odd rule set or rule.
 */
export function applyChange(was: PolicySnapshot, change: PolicyChange): ChangedPolicy | null {
  if (change.is === 'ip_list') return withObject(was, withList(was, change.list), change.list.href)
  if (change.is === 'service') return withObject(was, withService(was, change.service), change.service.href)
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
  // The tools have what the PCE sent, in which selectors may be null.
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

/** Every rule that refers to the object changes with it. */
function withObject(was: PolicySnapshot, policy: PolicySnapshot, href: string): ChangedPolicy {
  const mentions = [toDraftHref(href), toActiveHref(href)].map((one) => `"${one}"`)
  const rules = listRules(was).filter(({ placed }) => {
    const text = JSON.stringify(placed)
    return mentions.some((mention) => text.includes(mention))
  })
  return { policy, cutting: cuttingOf({ policy: was, rules }, { policy, rules }) }
}

type RulesOf = { policy: PolicySnapshot; rules: readonly TypedRule[] }

function cuttingOf(was: RulesOf, is: RulesOf): CuttingRule[] {
  const pick = ({ policy, rules }: RulesOf, mayCut: (type: RuleType) => boolean) =>
    rules.filter(({ type }) => mayCut(type)).map((rule) => ({ ...rule, policy }))
  return [...pick(was, (type) => type === 'allow'), ...pick(is, (type) => type !== 'allow')]
}

/** Returns a policy in which an IP list has this content. */
export function withList(was: PolicySnapshot, given: IpList): PolicySnapshot {
  // The PCE's filters know the list as it is, so it counts as changed.
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

/** Returns a policy in which a service has this content. */
export function withService(was: PolicySnapshot, service: Service): PolicySnapshot {
  const id = toDraftHref(service.href)
  return { ...was, serviceOf: (href) => (toDraftHref(href) === id ? service : was.serviceOf(href)) }
}
