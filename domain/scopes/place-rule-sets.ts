import type { RuleSet, ScopeEntry } from '../../schemas/pce/rule-set.js'
import { loadDenyRules } from '../inventory/read-rules.js'
import { quote } from '../text/escape-text.js'
import { firstOutside, placeRule, placeScopes, UNREADABLE, type PlacedObject } from './place-object.js'
import type { Place, ReachingRule } from './place.js'
import { readOr, type Reader } from './read-around.js'
import { fieldsOf, hrefOf, listOf, nameOf, type Target, type Write } from './read-write.js'

/**
 * Determines whether the rule set to which a request writes is inside. The request may also create, change or delete
 * its rules.
 */
export async function placeRuleSetWrite(
  reader: Reader,
  { method, body }: Write,
  target: Target,
  earlier: readonly Write[],
): Promise<PlacedObject[]> {
  const fields = fieldsOf(body)
  if (target.inner !== undefined) return placeRuleWrite(reader, method, fields, target, earlier)
  if (target.id === undefined) {
    const planned = { ...fields, scopes: fields['scopes'] ?? [] }
    return [{ kind: 'rule_sets', ...nameOf(body), place: await placeRuleSets(reader, [planned]) }]
  }
  const found = await readRuleSet(reader, target.href ?? '')
  if (found === undefined) return [{ kind: 'rule_sets', ...hrefOf(target), place: UNREADABLE }]
  const states = method === 'PUT' ? [found, { ...found, ...fields }] : [found]
  return [{ kind: 'rule_sets', ...hrefOf(target), name: found.name, place: await placeRuleSets(reader, states) }]
}

async function placeRuleWrite(
  reader: Reader,
  method: string,
  body: Record<string, unknown>,
  target: Target,
  earlier: readonly Write[],
): Promise<PlacedObject[]> {
  const { inner } = target
  const kind = inner?.kind ?? ''
  const ruleSet = target.isPlanned ? plannedRuleSet(earlier) : await readRuleSet(reader, target.href ?? '')
  if (ruleSet === undefined) return [{ kind, ...hrefOf(target), place: UNREADABLE }]
  const { place: scopes, lands } = placeScopes(scopesOf(ruleSet), reader.territory)
  const owner = typeof ruleSet.name === 'string' ? ` of the rule set ${quote(ruleSet.name)}` : ''
  const before =
    method === 'POST'
      ? undefined
      : rulesOf(ruleSet).find(({ href }) => href?.endsWith(`/${inner?.kind}/${inner?.id}`) === true)
  if (method !== 'POST' && before === undefined) return [{ kind, ...hrefOf(target), place: UNREADABLE }]
  const states = [...(before === undefined ? [] : [before]), ...(method === 'DELETE' ? [] : [{ ...before, ...body }])]
  const ends = await reader.ends(states)
  const place = firstOutside([
    scopes,
    ...states.map((rule) => placeRule(rule, lands, ends, reader.territory)),
    ...((await reader.territory.shield?.placeRules(states, scopesOf(ruleSet))) ?? []),
  ])
  return [
    {
      kind,
      ...hrefOf(target),
      name: `a rule${owner}`,
      place,
    },
  ]
}

type SomeRuleSet = { name?: unknown; scopes?: unknown; rules?: unknown; deny_rules?: unknown }

/** Returns the rule set that an earlier request of the same call creates. */
const plannedRuleSet = (earlier: readonly Write[]): SomeRuleSet | undefined => {
  const creation = earlier.findLast(({ method, path }) => method === 'POST' && path.endsWith('/rule_sets'))
  return creation === undefined ? undefined : fieldsOf(creation.body)
}

/** Returns a draft rule set with its deny rules; undefined if it cannot be read whole. */
async function readRuleSet({ pce, signal }: Reader, href: string): Promise<RuleSet | undefined> {
  const found = await readOr(pce.ruleSets.getByReference(href, { signal }), signal)
  if (found === undefined) return undefined
  const [complete] = await loadDenyRules(pce, [found], signal)
  return complete?.error !== undefined && complete.hasNone !== true ? undefined : complete?.ruleSet
}

const scopesOf = ({ scopes }: SomeRuleSet): ScopeEntry[][] =>
  listOf(scopes).map((scope) => listOf(scope) as ScopeEntry[])
const rulesOf = ({ rules, deny_rules: denies }: SomeRuleSet): ReachingRule[] =>
  [...listOf(rules), ...listOf(denies)].map((rule) => fieldsOf(rule) as ReachingRule)

/**
 * Determines whether all given states of a rule set are inside: its scopes, and each of its rules, because they come
 * into force with it.
 */
export async function placeRuleSets(reader: Reader, states: readonly SomeRuleSet[]): Promise<Place> {
  const places: Place[] = []
  for (const state of states) {
    const { place, lands } = placeScopes(scopesOf(state), reader.territory)
    const rules = rulesOf(state)
    const ends = await reader.ends(rules)
    const placed = [
      ...rules.map((rule) => placeRule(rule, lands, ends, reader.territory)),
      ...((await reader.territory.shield?.placeRules(rules, scopesOf(state))) ?? []),
    ]
    places.push(
      place,
      ...placed.map((one) => (one.is === 'inside' ? one : { ...one, why: `has a rule that ${one.why}` })),
    )
    if (listOf((state as { ip_tables_rules?: unknown }).ip_tables_rules).length > 0)
      places.push({ is: 'outside', rule: 'rule_ends', why: 'has iptables rules, whose reach is not known' })
  }
  return firstOutside(places)
}
