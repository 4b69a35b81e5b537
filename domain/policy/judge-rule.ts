import type { Effect } from '../../schemas/policy-changes.js'
import type { DenyRule, Rule } from '../../schemas/pce/rule-set.js'
import { diffFields } from './diff-fields.js'
import { combineExtents, compareEnds, compareServices, type Extent } from './judge-ends.js'
import type { PolicyFacts } from './load-policy-facts.js'
import type { RuleType } from './rule-type.js'

export type AnyRule = Rule | DenyRule

/** What widening an allow rule is to a deny rule, and the other way round. */
export const OPPOSITE = { same: 'neutral', wider: 'narrowing', narrower: 'widening' } as const
export const DIRECT = { same: 'neutral', wider: 'widening', narrower: 'narrowing' } as const

/**
 * What a change of one rule does to permitted traffic: `before` and `now` as far as they are in force, null where they are not.
 * Undefined: it cannot be told.
 */
export function judgeRule(
  { type, now, before }: { type: RuleType; now: AnyRule | null; before: AnyRule | null },
  facts: PolicyFacts,
): Effect | undefined {
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
  // Its IP lists are what it does not concern: more of them is less.
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

/** Networks, principals, encryption, processes: what a change of these does cannot be told from the fields. */
function otherChanges(now: AnyRule, before: AnyRule): Extent[] {
  return diffFields(now, before).every(({ field }) => JUDGED.has(field)) ? [] : [undefined]
}
