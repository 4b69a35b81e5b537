import type { Effect, Risk, RuleChangeShown } from '../../schemas/policy-changes.js'
import type { RuleSet } from '../../schemas/pce/rule-set.js'
import { differs, diffFields } from './diff-fields.js'
import { compareScopes, idOfScope, type Extent } from './judge-ends.js'
import { DIRECT, judgeRule, OPPOSITE, type AnyRule } from './judge-rule.js'
import type { PolicyFacts } from './load-policy-facts.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { denyType, type RuleType } from './rule-type.js'

export interface RuleSetDiff {
  rules: RuleChangeShown[]
  effect: Effect | undefined
  risks: Risk[]
}

/** A rule set in draft against what is in force, either of them null: rule by rule, what it does to traffic, what to look at. */
export function diffRuleSet(draft: RuleSet | null, active: RuleSet | null, facts: PolicyFacts): RuleSetDiff {
  const pairs = pairRules(draft, active).map((pair) => ({ ...pair, effect: judgeRule(pair, facts) }))
  const bothInForce = isInForce(draft) && isInForce(active)
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
  /** The draft rule, also where it only waits for its deletion. */
  last: AnyRule | null
}

type JudgedPair = Pair & { effect: Effect | undefined }

const isInForce = (ruleSet: RuleSet | null) => ruleSet?.enabled === true

function pairRules(draft: RuleSet | null, active: RuleSet | null): Pair[] {
  const pairs = new Map<string, Pair>()
  const add = (ruleSet: RuleSet | null, rule: AnyRule, type: RuleType) => {
    const href = toDraftHref(rule.href)
    const none = { type, href, draft: null, active: null, now: null, before: null, last: null }
    const pair = pairs.get(href) ?? none
    const effective = isInForce(ruleSet) && rule.enabled ? rule : null
    if (ruleSet === active) pairs.set(href, { ...pair, active: rule, before: effective })
    // A rule that waits for its deletion is still shown in the draft.
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

/** What a change of the scopes does to the rules that are there before and after; those that come or go are judged already. */
function judgeScopes(scopes: Extent, pairs: readonly Pair[]): Effect | undefined {
  const types = new Set(
    pairs.filter(({ now, before }) => now !== null && before !== null).map(({ type }) => type === 'allow'),
  )
  if (scopes === 'same' || types.size === 0) return 'neutral'
  if (scopes === undefined || types.size > 1) return undefined
  return types.has(true) ? DIRECT[scopes] : OPPOSITE[scopes]
}

/** What rules in the words of iptables do cannot be told, only that they do the same as before. */
function judgeIpTables(draft: RuleSet | null, active: RuleSet | null, scopes: Extent): Effect | undefined {
  const [now, before] = [draft, active].map((ruleSet) => {
    const rules = isInForce(ruleSet) ? (ruleSet?.ip_tables_rules ?? []) : []
    return rules.filter(({ enabled, update_type: updateType }) => enabled && updateType !== 'delete')
  })
  if (now?.length === 0 && before?.length === 0) return 'neutral'
  return scopes === 'same' && !differs(now, before) ? 'neutral' : undefined
}

/** Effects of parts as one; neutral ones do not count, different ones cannot be told. */
export function combineEffects(effects: readonly (Effect | undefined)[]): Effect | undefined {
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
  // What comes into force or does something else from now on; a rule that stays does when its scope grows.
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

function isAnyToAny({ providers, consumers, ingress_services: services }: AnyRule, facts: PolicyFacts): boolean {
  const any = (actors: AnyRule['providers']) =>
    actors.some(({ actors: all, ip_list: list }) => {
      return all === 'ams' || (list !== undefined && facts.anyIpLists.has(toDraftHref(list.href)))
    })
  const everything = services.some((service) => 'href' in service && facts.allServices.has(toDraftHref(service.href)))
  return everything && any(providers) && any(consumers)
}
