import type { Actor, ScopeEntry } from '../../schemas/pce/rule-set.js'
import type { LabelIndex } from '../inventory/labels.js'
import type { PlannedRule } from './plan-rules.js'

type Rule = Pick<PlannedRule, 'providers' | 'consumers' | 'unscoped'>
type Scope = readonly ScopeEntry[]

/**
 * Warnings for the ends of a rule that every scope of its rule set contradicts: no workload has two labels of one key, so the rule would be
 * written nowhere. Only ends that are labels alone are judged, against the labels of scopes: nothing is read for it.
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

/** The values of each key; null where there is anything but labels. */
function readLabels(actors: readonly Actor[], labels: LabelIndex): Map<string, Set<string>> | null {
  const values = new Map<string, Set<string>>()
  for (const { label, exclusion } of actors) {
    const known = label === undefined ? undefined : labels.get(label.href)
    if (known === undefined || exclusion === true) return null
    values.set(known.key, (values.get(known.key) ?? new Set()).add(known.value))
  }
  return values
}

/** A key of which the labels of an end and those of a scope share none; null where there is no such key. */
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
    return { own: [...values].map((one) => `${key}=${one}`).join(' or '), scope: `${key}=${value}` }
  }
  return null
}
