import type { PceClient } from '../../pce-client/index.js'
import type { DenyRule, Rule, RuleSet } from '../../schemas/pce/rule-set.js'
import { toDraftHref } from '../inventory/parse-href.js'
import { readRulesOfKind } from '../inventory/read-rules.js'
import { diffFields } from '../policy/diff-fields.js'
import type { PlannedRule } from './plan-rules.js'

type Collection = PlannedRule['collection']

/**
 * Fields that are ignored when rules are compared: those that do not affect traffic, and `enabled`, because the warning
 * itself says whether the existing rule is disabled.
 */
const UNCOMPARED = new Set(['description', 'enabled', 'external_data_set', 'external_data_reference'])

/** The values that the PCE stores for fields that are missing in a rule that was sent. */
const DEFAULTS: readonly unknown[] = [null, false, 'brn']

/** Returns true if two rules, planned or stored, have the same effect on traffic as soon as both are enabled. */
export function saysTheSame(a: object, b: object): boolean {
  return diffFields(a, b).every(
    ({ field, draft, active }) => UNCOMPARED.has(field) || (DEFAULTS.includes(draft) && DEFAULTS.includes(active)),
  )
}

/**
 * Warns if the draft of a rule set already contains a rule with the same effect as the planned one, because the PCE
 * accepts duplicates (P76). Rules and rule sets marked for deletion do not count. `siblings` are the rule set's rules
 * of the same type (allow or deny), as `readRulesOfKind` returns them.
 */
export function warnOfRepetition(
  ruleSet: RuleSet,
  siblings: readonly (Rule | DenyRule)[] | string,
  { body, own }: { body: object; own?: string },
): string[] {
  if (ruleSet.update_type === 'delete') return []
  if (typeof siblings === 'string') return [`Whether the rule set already has this rule is unknown: ${siblings}`]
  const same = siblings.filter((rule) => rule.href !== own && rule.update_type !== 'delete' && saysTheSame(body, rule))
  const known = same.find(({ enabled }) => enabled !== false) ?? same[0]
  if (known === undefined) return []
  const href = toDraftHref(known.href)
  return [
    known.enabled !== false
      ? `The rule set already has this rule, ${href}: a second one changes nothing.`
      : `The rule set already has this rule, but disabled: ${href}. Enable it instead of adding a second one.`,
  ]
}

/**
 * Warns if a changed rule would become a duplicate of another rule. `change` contains the fields to replace; undefined
 * fields stay as they are.
 */
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

/** Warns about each planned rule that is equal to an earlier one in the same call. */
export function warnOfRepeated(rules: readonly PlannedRule[]): string[] {
  return rules.flatMap((rule, index) => {
    const first = rules.findIndex((other) => other.collection === rule.collection && saysTheSame(other.body, rule.body))
    return first < index ? [`Rule ${index} says the same as rule ${first}: a second one changes nothing.`] : []
  })
}
