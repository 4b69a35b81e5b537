import type { RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import {
  ALONE_NOTE,
  type FieldChange,
  type PolicyChange,
  type Risk,
  type RuleChangeShown,
} from '../../schemas/policy-changes.js'
import { toDraftHref } from '../inventory/parse-href.js'
import type { Steps } from '../text/pace-work.js'
import {
  type Movement,
  UNMOVED,
  compareRules,
  effectOf,
  joinMovements,
  unknownMovement,
} from './compare-permissions.js'
import { diffFields, differs } from './diff-fields.js'
import {
  type Judgement,
  type Replacement,
  compareAll,
  describeMovement,
  findRuleRisks,
  inEveryVersion,
  placeRules,
  rankForReview,
  withoutRepeats,
} from './judge-change.js'
import type { LoadedContents, PolicyContents } from './load-contents.js'
import { isInForce } from './load-snapshot.js'
import type { AnyRule, RuleInForce } from './rule-in-force.js'
import { type RuleType, denyType } from './rule-type.js'

export interface RuleSetDiff extends Judgement {
  /**
   * All unconfirmed facts on which the reported effects depend: those of the rule set, of its scopes and of its rules.
   */
  assumes: readonly string[]
  rules: RuleChangeShown[]
  scope_change?: PolicyChange['scope_change']
}

/**
 * Compares a draft rule set with the active one, rule by rule, and determines the effect on traffic and the risks to
 * review. `active` is null for a new rule set, `draft` for a deleted one.
 */
export function* diffRuleSet(
  draft: RuleSet | null,
  active: RuleSet | null,
  contents: LoadedContents,
): Steps<RuleSetDiff> {
  const replacements = inEveryVersion(contents, (version) => ({
    before: placeRules(active, version),
    after: placeRules(draft, version),
  }))
  const own = byRule(replacements)
  const scope = yield* describeScopes(draft, active, contents.draft)
  const movement = joinMovements([yield* compareAll(replacements), moveIpTables(draft, active, scope.change)])
  const risks = [
    ...(yield* findRuleRisks(replacements.flatMap(pairUp))),
    ...(scope.isRemoved ? (['scope_removed'] as const) : []),
  ]
  const changed: { alone: Movement; shown: RuleChangeShown }[] = []
  for (const rule of changedRules(draft, active)) {
    const replaced = own(rule.href)
    const alone = yield* compareAll(replaced)
    changed.push({ alone, shown: yield* describeRule(rule, replaced, alone) })
  }
  const rules = changed.map(({ shown }) => shown).sort((a, b) => rankForReview(a) - rankForReview(b))
  const together = yield* describeMovement(movement, replacements)
  const isOther = rules.some(({ effect }) => effect !== 'neutral' && effect !== together.effect)
  return {
    rules,
    assumes: joinMovements([movement, scope.movement, ...changed.map(({ alone }) => alone)]).assumes,
    ...together,
    ...(together.effect !== undefined && isOther && { effect_note: ALONE_NOTE }),
    ...(scope.change !== undefined && { scope_change: scope.change }),
    ...(risks.length > 0 && { risks: [...new Set<Risk>(risks)] }),
  }
}

const idOf = ({ href }: { href: string }) => toDraftHref(href)

/** Pairs each rule in force after a change with the rule that had the same href before the change. */
function pairUp({ before, after }: Replacement): { before?: RuleInForce; after?: RuleInForce }[] {
  const known = new Map(before.map((one) => [idOf(one.rule), one]))
  return after.map((one) => {
    const was = known.get(idOf(one.rule))
    return { after: one, ...(was !== undefined && { before: was }) }
  })
}

/**
 * Returns a function that takes a rule's draft href and returns the given replacements, each reduced to this one rule
 * before and after the change.
 */
function byRule(replacements: readonly Replacement[]): (href: string) => Replacement[] {
  const index = (rules: readonly RuleInForce[]) => new Map(rules.map((one) => [idOf(one.rule), one]))
  const indexed = replacements.map(({ before, after }) => ({ before: index(before), after: index(after) }))
  const only = (rules: ReadonlyMap<string, RuleInForce>, href: string) => {
    const one = rules.get(href)
    return one === undefined ? [] : [one]
  }
  return (href) =>
    withoutRepeats(indexed.map(({ before, after }) => ({ before: only(before, href), after: only(after, href) })))
}

/** A rule in the draft and the active version of its rule set; null in a version without the rule. */
interface Pair {
  type: RuleType
  href: string
  draft: AnyRule | null
  active: AnyRule | null
  /** The rule as the draft lists it, even if it is marked for deletion there (`draft` is then null). */
  last: AnyRule | null
}

function pairRules(draft: RuleSet | null, active: RuleSet | null): Pair[] {
  const pairs = new Map<string, Pair>()
  const add = (ruleSet: RuleSet | null, rule: AnyRule, type: RuleType) => {
    const href = idOf(rule)
    const pair = pairs.get(href) ?? { type, href, draft: null, active: null, last: null }
    if (ruleSet === active) pairs.set(href, { ...pair, active: rule })
    // The PCE still lists a rule in the draft after it is marked for deletion.
    else if (rule.update_type === 'delete') pairs.set(href, { ...pair, last: rule })
    else pairs.set(href, { ...pair, type, draft: rule, last: rule })
  }
  for (const ruleSet of [active, draft]) {
    for (const rule of ruleSet?.rules ?? []) add(ruleSet, rule, 'allow')
    for (const rule of ruleSet?.deny_rules ?? []) add(ruleSet, rule, denyType(rule))
  }
  return [...pairs.values()].filter((pair) => pair.draft !== null || pair.active !== null)
}

/** A rule that was added, changed or removed, with the fields that differ. */
interface ChangedRule extends Pair {
  change: RuleChangeShown['change']
  fields: FieldChange[]
}
/** A rule of either version of a rule set; `change` is null if its content is the same in both. */
export type ComparedRule = Omit<ChangedRule, 'change'> & { change: ChangedRule['change'] | null }

/** Compares each rule of a draft rule set with the active one. Either may be null. */
export const compareRulesOf = (draft: RuleSet | null, active: RuleSet | null): ComparedRule[] =>
  pairRules(draft, active).map((pair) => {
    const fields = diffFields(pair.draft, pair.active)
    const isSame = pair.draft !== null && pair.active !== null && fields.length === 0
    const change = isSame ? null : pair.active === null ? 'added' : pair.draft === null ? 'removed' : 'changed'
    return { ...pair, fields, change }
  })

/** Lists the rules that differ between a draft rule set and the active one. Either may be null. */
export const changedRules = (draft: RuleSet | null, active: RuleSet | null): ChangedRule[] =>
  compareRulesOf(draft, active).flatMap(({ change, ...rule }) => (change === null ? [] : [{ ...rule, change }]))

/** Describes a changed rule and the effect of this change alone, regardless of the other rules in its rule set. */
function* describeRule(
  { type, href, change, fields, last }: ChangedRule,
  own: readonly Replacement[],
  alone: Movement,
): Steps<RuleChangeShown> {
  const risks = yield* findRuleRisks(own.flatMap(pairUp))
  const [by, at] = [last?.updated_by, last?.updated_at]
  return {
    href,
    rule_type: type,
    change,
    ...(risks.length > 0 && { risks }),
    ...(yield* describeMovement(alone, own)),
    fields,
    ...(by != null && { updated_by: { href: by.href } }),
    ...(at !== undefined && { updated_at: at }),
  }
}

/**
 * Returns the effect of changes to iptables rules. There is none if no iptables rules are in force before or after, or
 * if neither they nor the scopes of their rule set changed. Otherwise the effect is unknown.
 */
function moveIpTables(draft: RuleSet | null, active: RuleSet | null, scope: PolicyChange['scope_change']) {
  const [now, before] = [draft, active].map((ruleSet) =>
    ruleSet !== null && isInForce(ruleSet) ? (ruleSet.ip_tables_rules ?? []).filter(isInForce) : [],
  )
  if (now?.length === 0 && before?.length === 0) return UNMOVED
  return (scope === undefined || scope === 'same') && !differs(now, before) ? UNMOVED : unknownMovement('iptables')
}

type Scope = readonly ScopeEntry[]

/**
 * Determines whether the scopes of a rule set cover more or fewer workloads than before, and whether a scope was
 * removed.
 */
function* describeScopes(
  draft: RuleSet | null,
  active: RuleSet | null,
  contents: PolicyContents,
): Steps<{ change?: PolicyChange['scope_change']; isRemoved: boolean; movement: Movement }> {
  if (draft === null || active === null) return { isRemoved: false, movement: UNMOVED }
  const [before, after] = [active.scopes, draft.scopes]
  if (!differs(before, after)) return { isRemoved: false, movement: UNMOVED }
  const within = (scopes: readonly Scope[]) => [coverScopes(scopes, contents)]
  const movement = yield* compareRules(within(before), within(after))
  const change = WORDS[effectOf(movement) ?? 'different']
  const holds = function* (wide: Scope, narrow: Scope): Steps<boolean> {
    return !(yield* compareRules(within([wide]), within([wide, narrow]))).opens
  }
  const isEmpty = function* (scope: Scope): Steps<boolean> {
    return !(yield* compareRules([], within([scope]))).opens
  }
  const kept: Scope[] = []
  for (const scope of after) if (!(yield* isEmpty(scope))) kept.push(scope)
  // A scope inside another scope is redundant, so removing it does not count. A scope with additional conditions is
  // narrower, but not removed.
  const isLost = function* (scope: Scope, at: number): Steps<boolean> {
    if (yield* isEmpty(scope)) return false
    for (const [index, other] of before.entries())
      if (index !== at && (yield* holds(other, scope)) && (index < at || !(yield* holds(scope, other)))) return false
    for (const other of kept) if (yield* holds(scope, other)) return false
    return true
  }
  for (const [at, scope] of before.entries()) if (yield* isLost(scope, at)) return { change, isRemoved: true, movement }
  return { change, isRemoved: false, movement }
}

const WORDS = { widening: 'wider', narrowing: 'narrower', neutral: 'same', different: 'different' } as const

/** Builds a rule that allows all connections within some scopes, so that scopes can be compared as rules are. */
function coverScopes(scopes: readonly Scope[], contents: PolicyContents): RuleInForce {
  const everyone = [{ actors: 'ams' as const }]
  const rule = {
    href: '',
    enabled: true,
    providers: everyone,
    consumers: everyone,
    unscoped_consumers: true,
    ingress_services: [{ port: 1, proto: 6 }],
  }
  return { type: 'allow', rule, scopes: scopes as ScopeEntry[][], contents }
}
