import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { LabelIndex } from '../inventory/labels.js'
import { quote } from '../text/escape-text.js'
import type { PlannedRule } from './plan-rules.js'

type Rule = Pick<PlannedRule, 'providers' | 'consumers' | 'unscoped'>
type Scope = readonly ScopeEntry[]

/**
 * Warns if the labels on a side of a rule contradict every scope of its rule set. A workload has only one label per
 * key, so the rule would apply to no workload. Only sides that consist of labels alone are checked, because this needs
 * no requests to the PCE.
 */
export function warnOfNobody(labels: LabelIndex, scopes: readonly Scope[], rule: Rule): string[] {
  const sides = [
    { name: 'providers', actors: rule.providers, isBound: true, advice: 'Providers are always within the scope.' },
    {
      name: 'consumers',
      actors: rule.consumers,
      isBound: !rule.unscoped,
      advice: 'Did you mean unscoped_consumers: true?',
    },
  ]
  return sides.flatMap(({ name, actors, isBound, advice }) => {
    const own = isBound ? readLabels(actors, labels) : null
    if (own === null || scopes.length === 0) return []
    const [first, ...others] = scopes.map((scope) => findContradiction(own, scope, labels))
    if (first == null || others.includes(null)) return []
    const where = others.length === 0 ? `the scope ${first.scope}` : `every scope, such as ${first.scope}`
    return [`The rule names nobody: its ${name} have ${first.own}, and ${where}. ${advice}`]
  })
}

/** Returns the label values on a side of a rule, by key; null if the side contains anything but labels. */
function readLabels(actors: readonly Actor[], labels: LabelIndex): Map<string, Set<string>> | null {
  const values = new Map<string, Set<string>>()
  for (const { label, exclusion } of actors) {
    const known = label === undefined ? undefined : labels.get(label.href)
    if (known === undefined || exclusion === true) return null
    values.set(known.key, (values.get(known.key) ?? new Set()).add(known.value))
  }
  return values
}

/**
 * Returns a key for which the labels on a side of a rule and those of a scope have no value in common; null if there is
 * none.
 */
function findContradiction(
  own: ReadonlyMap<string, ReadonlySet<string>>,
  scope: Scope,
  labels: LabelIndex,
): { own: string; scope: string } | null {
  for (const { label, exclusion } of scope) {
    const known = label === undefined || exclusion === true ? undefined : labels.get(label.href)
    const values = known === undefined ? undefined : own.get(known.key)
    if (known === undefined || values === undefined || values.has(known.value)) continue
    const { key, value } = known
    return { own: [...values].map((one) => quote(`${key}=${one}`)).join(' or '), scope: quote(`${key}=${value}`) }
  }
  return null
}
