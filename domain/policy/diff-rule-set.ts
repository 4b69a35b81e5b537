import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import type { ChangeEffect, Risk, RuleChangeShown } from '../../schemas/policy-changes.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { diffFields, differs } from './diff-fields.js'
import {
  type Extent,
  combineExtents,
  compareEnds,
  compareScopes,
  compareServices,
  idOfScope,
} from './compare-extents.js'
import type { PolicyFacts } from './load-snapshot.js'
import { coversEveryService } from './match-services.js'
import { type RuleType, denyType } from './rule-type.js'

export interface RuleSetDiff {
  rules: RuleChangeShown[]
  effect: ChangeEffect | undefined
  risks: Risk[]
}

/** A rule set in draft against what is in force, either of them null: rule by rule, with its effect on traffic and what to review. */
export function diffRuleSet(draft: RuleSet | null, active: RuleSet | null, facts: PolicyFacts): RuleSetDiff {
  const pairs = pairRules(draft, active).map((pair) => ({ ...pair, effect: judgeRule(pair, facts) }))
  const bothInForce = isEnabled(draft) && isEnabled(active)
  const scopes = bothInForce ? compareScopes(active?.scopes ?? [], draft?.scopes ?? []) : 'same'
  return {
    rules: pairs.flatMap((pair) => describePair(pair)),
    effect: combineEffects([
      ...pairs.map(({ effect }) => effect),
      judgeScopes(scopes, pairs),
      judgeIpTables(draft, active, scopes),
    ]),
    risks: findRisks(draft, active, scopes, pairs, facts),
  }
}

/** A rule in both versions, and as far as it is in force: a disabled rule, or one of a disabled rule set, does nothing. */
interface Pair {
  type: RuleType
  href: string
  draft: AnyRule | null
  active: AnyRule | null
  now: AnyRule | null
  before: AnyRule | null
  /** The draft rule, even if it is only marked for deletion. */
  last: AnyRule | null
}

type JudgedPair = Pair & { effect: ChangeEffect | undefined }

const isEnabled = (ruleSet: RuleSet | null) => ruleSet?.enabled === true

function pairRules(draft: RuleSet | null, active: RuleSet | null): Pair[] {
  const pairs = new Map<string, Pair>()
  const add = (ruleSet: RuleSet | null, rule: AnyRule, type: RuleType) => {
    const href = toDraftHref(rule.href)
    const none = { type, href, draft: null, active: null, now: null, before: null, last: null }
    const pair = pairs.get(href) ?? none
    const effective = isEnabled(ruleSet) && rule.enabled ? rule : null
    if (ruleSet === active) pairs.set(href, { ...pair, active: rule, before: effective })
    // A rule that is marked for deletion is still shown in the draft.
    else if (rule.update_type === 'delete') pairs.set(href, { ...pair, last: rule })
    else pairs.set(href, { ...pair, type, draft: rule, now: effective, last: rule })
  }
  for (const ruleSet of [active, draft]) {
    for (const rule of ruleSet?.rules ?? []) add(ruleSet, rule, 'allow')
    for (const rule of ruleSet?.deny_rules ?? []) add(ruleSet, rule, denyType(rule))
  }
  return [...pairs.values()].filter((pair) => pair.draft !== null || pair.active !== null)
}

function describePair({ type, href, draft, active, last, effect }: JudgedPair): RuleChangeShown[] {
  const fields = diffFields(draft, active)
  if (draft !== null && active !== null && fields.length === 0) return []
  const change = active === null ? 'added' : draft === null ? 'removed' : 'changed'
  const [by, at] = [last?.updated_by, last?.updated_at]
  return [
    {
      href,
      rule_type: type,
      change,
      fields,
      ...(effect !== undefined && { effect }),
      ...(by != null && { updated_by: { href: by.href } }),
      ...(at !== undefined && { updated_at: at }),
    },
  ]
}

/** What a change of scopes does to rules that exist before and after; added and removed rules are judged already. */
function judgeScopes(scopes: Extent, pairs: readonly Pair[]): ChangeEffect | undefined {
  const types = new Set(
    pairs.filter(({ now, before }) => now !== null && before !== null).map(({ type }) => type === 'allow'),
  )
  if (scopes === 'same' || types.size === 0) return 'neutral'
  if (scopes === undefined || types.size > 1) return undefined
  return types.has(true) ? DIRECT[scopes] : OPPOSITE[scopes]
}

/** The effect of iptables rules cannot be determined, only that it has not changed. */
function judgeIpTables(draft: RuleSet | null, active: RuleSet | null, scopes: Extent): ChangeEffect | undefined {
  const [now, before] = [draft, active].map((ruleSet) => {
    const rules = isEnabled(ruleSet) ? (ruleSet?.ip_tables_rules ?? []) : []
    return rules.filter(({ enabled, update_type: updateType }) => enabled && updateType !== 'delete')
  })
  if (now?.length === 0 && before?.length === 0) return 'neutral'
  return scopes === 'same' && !differs(now, before) ? 'neutral' : undefined
}

/** The combined effect of parts; neutral ones do not count, and conflicting ones are undetermined. */
export function combineEffects(effects: readonly (ChangeEffect | undefined)[]): ChangeEffect | undefined {
  const telling = effects.filter((effect) => effect !== 'neutral')
  if (telling.length === 0) return 'neutral'
  return telling.every((effect) => effect === telling[0]) ? telling[0] : undefined
}

function findRisks(
  draft: RuleSet | null,
  active: RuleSet | null,
  scopes: Extent,
  pairs: readonly JudgedPair[],
  facts: PolicyFacts,
): Risk[] {
  // Rules that come into force or change their effect; an unchanged rule does when its scope grows.
  const moved = scopes !== 'same' && scopes !== 'narrower'
  const fresh = pairs.filter(
    ({ now, before, effect }) => now !== null && (before === null || effect !== 'neutral' || moved),
  )
  const risks: Risk[] = []
  if (fresh.some(({ type }) => type === 'override_deny')) risks.push('override_deny')
  if (fresh.some(({ type, now }) => type === 'allow' && now !== null && isAnyToAny(now, facts))) {
    risks.push('any_to_any_all_services')
  }
  const left = new Set((draft?.scopes ?? []).map(idOfScope))
  if (draft !== null && (active?.scopes ?? []).some((scope) => !left.has(idOfScope(scope)))) risks.push('scope_removed')
  return risks
}

/** Whether an allow rule opens every service between any address or workload and any other. */
function isAnyToAny({ providers, consumers, ingress_services: services }: AnyRule, facts: PolicyFacts): boolean {
  const any = (actors: AnyRule['providers']) =>
    actors.some(({ actors: all, ip_list: list }) => all === 'ams' || (list !== undefined && facts.isAnyList(list.href)))
  return coversEveryService(services, facts) === 'yes' && any(providers) && any(consumers)
}

export type AnyRule = Rule | DenyRule

/** Widening an allow rule corresponds to narrowing a deny rule, and vice versa. */
export const OPPOSITE = { same: 'neutral', wider: 'narrowing', narrower: 'widening' } as const
export const DIRECT = { same: 'neutral', wider: 'widening', narrower: 'narrowing' } as const

/**
 * What a change of one rule does to permitted traffic: `before` and `now` as far as they are in force, null where they are not.
 * Undefined: it cannot be determined.
 */
export function judgeRule(
  { type, now, before }: { type: RuleType; now: AnyRule | null; before: AnyRule | null },
  facts: PolicyFacts,
): ChangeEffect | undefined {
  const extent = extentOfRule(now, before, facts)
  if (extent === undefined) return undefined
  if (type === 'allow') return DIRECT[extent]
  const isOverride = (rule: AnyRule) => 'override' in rule && rule.override === true
  if (now === null || before === null || isOverride(now) === isOverride(before)) return OPPOSITE[extent]
  // As an override it beats the allow rules that it did not beat before.
  if (isOverride(now)) return extent === 'narrower' ? undefined : 'narrowing'
  return extent === 'wider' ? undefined : 'widening'
}

function extentOfRule(now: AnyRule | null, before: AnyRule | null, facts: PolicyFacts): Extent {
  if (now === null) return before === null ? 'same' : 'narrower'
  if (before === null) return 'wider'
  return combineExtents([
    compareSide('providers', before, now, facts),
    compareSide('consumers', before, now, facts),
    compareServices(before.ingress_services, now.ingress_services, facts),
    compareFlag(before.unscoped_consumers, now.unscoped_consumers),
    ...otherChanges(now, before),
  ])
}

function compareSide(side: 'providers' | 'consumers', before: AnyRule, now: AnyRule, facts: PolicyFacts): Extent {
  const extent = compareEnds(before[side], now[side], facts)
  // Its IP lists are exceptions: more of them make it narrower.
  const inverted = [before, now].some((rule) => rule[`all_ips_except_for_in_${side}`] === true)
  return inverted && extent !== 'same' ? undefined : extent
}

const compareFlag = (before: boolean | undefined, after: boolean | undefined): Extent =>
  (before === true) === (after === true) ? 'same' : after === true ? 'wider' : 'narrower'

/** Fields whose changes are judged, or touch no traffic. */
const JUDGED = new Set([
  'providers',
  'consumers',
  'ingress_services',
  'unscoped_consumers',
  'enabled',
  'override',
  'description',
  'external_data_set',
  'external_data_reference',
])

/** Networks, principals, encryption, processes: the effect of changing these cannot be determined from the fields. */
function otherChanges(now: AnyRule, before: AnyRule): Extent[] {
  return diffFields(now, before).every(({ field }) => JUDGED.has(field)) ? [] : [undefined]
}
