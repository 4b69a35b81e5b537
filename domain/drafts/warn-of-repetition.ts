import type { PceClient } from '../../pce-client/index.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { readRulesOfKind } from '../inventory/read-rules.js'
import { diffFields } from '../policy/diff-fields.js'
import type { PlannedRule } from './plan-rules.js'

type Collection = PlannedRule['collection']

/** Fields that say nothing about traffic, and `enabled`, which is told. */
const UNCOMPARED = new Set(['description', 'enabled', 'external_data_set', 'external_data_reference'])

/** What the PCE stores where a rule does not say. */
const DEFAULTS: readonly unknown[] = [null, false, 'brn']

/** Whether two rules, planned or stored, say the same about traffic: ends, services, scope, network and the rest, but for `enabled`. */
export function saysTheSame(a: object, b: object): boolean {
  return diffFields(a, b).every(
    ({ field, draft, active }) => UNCOMPARED.has(field) || (DEFAULTS.includes(draft) && DEFAULTS.includes(active)),
  )
}

/**
 * A warning where the draft of a rule set already has a rule that says the same as one to be stored there: the PCE takes any number
 * of them (P76). Rules that are marked for deletion do not count, nor does anything in a rule set that is. `siblings`: the rules of
 * its kind in the rule set, as `readRulesOfKind` gives them.
 */
export function warnOfRepetition(
  ruleSet: RuleSet,
  siblings: readonly (Rule | DenyRule)[] | string,
  { body, own }: { body: object; own?: string },
): string[] {
  if (ruleSet.update_type === 'delete') return []
  if (typeof siblings === 'string') return [`Whether the rule set already has this rule is unknown: ${siblings}`]
  const same = siblings.filter((rule) => rule.href !== own && rule.update_type !== 'delete' && saysTheSame(body, rule))
  const known = same.find(({ enabled }) => enabled) ?? same[0]
  if (known === undefined) return []
  const href = toDraftHref(known.href)
  return [
    known.enabled
      ? `The rule set already has this rule, ${href}: a second one changes nothing.`
      : `The rule set already has this rule, but disabled: ${href}. It can be enabled in place of a second one.`,
  ]
}

/** The same for a change of a stored rule that changes what it says. `change`: the fields to replace, undefined ones left out. */
export async function warnOfBecoming(
  pce: PceClient,
  ruleSet: RuleSet,
  { collection, rule, change }: { collection: Collection; rule: Rule | DenyRule; change: object },
  signal: AbortSignal,
): Promise<string[]> {
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
  const body = { ...rule, ...given }
  if (saysTheSame(rule, body) || ruleSet.update_type === 'delete') return []
  const siblings = await readRulesOfKind(pce, ruleSet, collection, signal)
  return warnOfRepetition(ruleSet, siblings, { body, own: rule.href })
}

/** A warning for each of several planned rules that says the same as an earlier one. */
export function warnOfRepeated(rules: readonly PlannedRule[]): string[] {
  return rules.flatMap((rule, index) => {
    const first = rules.findIndex((other) => other.collection === rule.collection && saysTheSame(other.body, rule.body))
    return first < index ? [`Rule ${index} says the same as rule ${first}: a second one changes nothing.`] : []
  })
}
