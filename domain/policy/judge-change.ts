import type { EnforcementBoundary, RuleSet } from '../../schemas/pce/rule-set.js'
import {
  NO_EFFECT,
  RISKS,
  type ChangeEffect,
  type JudgedChange,
  type PolicyChange,
  type Risk,
} from '../../schemas/policy-changes.js'
import type { Steps } from '../text/pace-work.js'
import { type Movement, compareRules, effectOf, joinMovements } from './compare-permissions.js'
import type { LoadedContents, PolicyContents } from './load-contents.js'
import { isInForce } from './load-snapshot.js'
import { createRuleSpace } from './rule-boxes.js'
import type { Breadth } from './rule-boxes/breadth.js'
import { hrefsIn } from './read-referred.js'
import type { RuleInForce } from './rule-in-force.js'
import { denyType } from './rule-type.js'
import { UNDECIDED } from './three-valued.js'

/** The effect of a change on permitted traffic, and the risks to review, in the form that answers use. */
export type Judgement = Pick<
  JudgedChange,
  'effect' | 'effect_note' | 'effect_by_rule_type' | 'risks' | 'used_by' | 'assumes'
>

/**
 * Lists the rules of a rule set that are in force. Returns none if the rule set is null, disabled or marked for
 * deletion.
 */
export function placeRules(ruleSet: RuleSet | null, contents: PolicyContents): RuleInForce[] {
  if (ruleSet === null || !isInForce(ruleSet)) return []
  const placed = (type: RuleInForce['type'], rule: RuleInForce['rule']) => ({
    type,
    rule,
    scopes: ruleSet.scopes,
    contents,
  })
  return [
    ...(ruleSet.rules ?? []).filter(isInForce).map((rule) => placed('allow', rule)),
    ...(ruleSet.deny_rules ?? []).filter(isInForce).map((rule) => placed(denyType(rule), rule)),
  ]
}

/** Converts an enforcement boundary to a deny rule without a scope, because it acts like one (P22). */
export function placeBoundary(boundary: EnforcementBoundary | null, contents: PolicyContents): RuleInForce[] {
  if (boundary === null || !isInForce(boundary)) return []
  const rule = { ...boundary, enabled: true, unscoped_consumers: true }
  return [{ type: 'deny', rule, scopes: [[]], contents }]
}

/**
 * The rules before and after a change, each with the objects that it refers to. All these objects are in the same
 * policy version, either active or draft.
 */
export interface Replacement {
  before: readonly RuleInForce[]
  after: readonly RuleInForce[]
}

/**
 * Pairs the rules before and after a change twice: with the active and with the draft versions of the objects to which
 * the rules refer. Pending changes of these objects have effects of their own, and the rules may be provisioned with or
 * without them. If the rules mean the same in both versions, there is only one result.
 */
export function inEveryVersion(
  contents: LoadedContents,
  replace: (contents: PolicyContents) => Replacement,
): Replacement[] {
  const planned = replace(contents.draft)
  if (!contents.differ) return [planned]
  return withoutRepeats([replace(contents.active), planned])
}

/**
 * If two replacements of rules are given and both have the same rules with the same meaning, drops the first of them.
 */
export function withoutRepeats(replacements: Replacement[]): Replacement[] {
  const [one, other] = replacements.map(({ before, after }) => [...before, ...after])
  const isRepeated = one?.every((placed, at) => meansTheSame(placed, other?.[at])) === true
  return isRepeated && one.length === other?.length ? replacements.slice(1) : replacements
}

/** Returns true if two rules are the same, and the objects that they refer to are the same too. */
function meansTheSame(one: RuleInForce, other: RuleInForce | undefined): boolean {
  if (other === undefined || one.rule !== other.rule || one.scopes !== other.scopes) return false
  const [a, b] = [one.contents, other.contents]
  const members = ({ membersOf }: PolicyContents, href: string) =>
    membersOf(href)
      ?.map((label) => label.href)
      .join(' ')
  return hrefsIn([one.rule, one.scopes]).every(
    (href) =>
      a.listOf(href) === b.listOf(href) &&
      a.serviceOf(href) === b.serviceOf(href) &&
      a.keyOf(href) === b.keyOf(href) &&
      members(a, href) === members(b, href),
  )
}

/** Determines the combined effect of all the given replacements of rules. */
export function* compareAll(replacements: readonly Replacement[]): Steps<Movement> {
  const movements: Movement[] = []
  for (const { before, after } of replacements) movements.push(yield* compareRules(before, after))
  return joinMovements(movements)
}

/** Describes an effect for an answer: in a single word, or with a note that says why no single word fits. */
export function* describeMovement(
  movement: Movement,
  replacements: readonly Replacement[],
): Steps<Pick<Judgement, 'effect' | 'effect_note' | 'effect_by_rule_type'>> {
  const effect = effectOf(movement)
  if (effect !== undefined) return { effect }
  if (movement.because.length > 0) {
    const reasons = movement.because.map((reason) => UNDECIDED[reason]).join(', ')
    return { effect_note: `Undecided because of ${reasons}.` }
  }
  const of = function* (isAllow: boolean): Steps<ChangeEffect | 'mixed'> {
    const only = (rules: readonly RuleInForce[]) => rules.filter(({ type }) => (type === 'allow') === isAllow)
    const own = replacements.map(({ before, after }) => ({ before: only(before), after: only(after) }))
    return effectOf(yield* compareAll(own)) ?? 'mixed'
  }
  const [allow, deny] = [yield* of(true), yield* of(false)]
  if (allow === 'neutral' || deny === 'neutral' || allow === deny) return { effect_note: NO_EFFECT.mixed }
  return { effect_note: NO_EFFECT.apart, effect_by_rule_type: { allow, deny } }
}

/** Returns true if a change certainly opens some connections and closes others. */
export const isMixed = ({ effect_note: note }: Pick<PolicyChange, 'effect_note'>): boolean =>
  note === NO_EFFECT.mixed || note === NO_EFFECT.apart

/**
 * Finds the risks of rules that come into force or change. Each pair is one rule before and after the change; either
 * may be absent. An override deny rule is a risk if it blocks more than before. An allow rule is a risk if it now
 * covers any address, or every service between any source and any destination, and did not do so before.
 */
export function* findRuleRisks(pairs: readonly { before?: RuleInForce; after?: RuleInForce }[]): Steps<Risk[]> {
  const found = new Set<Risk>()
  for (const { before, after } of pairs) {
    if (after?.type === 'override_deny') {
      if ((yield* compareRules(before === undefined ? [] : [before], [after])).closes) found.add('override_deny')
    } else if (after?.type === 'allow') {
      const is = yield* breadthOf(after)
      const was = (is.anyAddress || is.anyToAny) && before !== undefined ? yield* breadthOf(before) : undefined
      if (is.anyToAny && was?.anyToAny !== true) found.add('any_to_any_all_services')
      else if (is.anyAddress && was?.anyAddress !== true) found.add('any_address')
    }
  }
  return [...found]
}

function* breadthOf(rule: RuleInForce): Steps<Breadth> {
  return (yield* createRuleSpace([rule])).breadthOf(rule)
}

/**
 * Returns the rank of a change for review: changes with risks come first, the worst risk first, then changes that may
 * affect traffic, then changes that do not.
 */
export function rankForReview({ risks = [], effect }: Pick<PolicyChange, 'risks' | 'effect'>): number {
  if (risks.length > 0) return Math.min(...risks.map((risk) => RISKS.indexOf(risk)))
  return RISKS.length + (effect === 'neutral' ? 1 : 0)
}
