import { Type, type Static } from '@sinclair/typebox'
import type { LabelRef } from '../../../schemas/pce/label.js'
import {
  countWishes,
  describeRelabelling,
  type LabelCounts,
  type Relabelling,
} from '../../../domain/hygiene/plan-labels.js'
import type { RelabellingEffect, RuleSetEffect } from '../../../domain/hygiene/judge-relabelling.js'
import type { LabelOutcome, WrittenLabels } from '../../../domain/hygiene/write-labels.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'

export const RelabellingTable = Type.Object(
  {
    columns: Type.Array(Type.String(), { description: 'Of data' }),
    data: Type.Array(Type.Array(Type.String()), {
      description: 'One per workload; - is none; keeps: the labels that stay',
    }),
  },
  { description: 'What changes; what went wrong first' },
)

export const UnchangedTable = Type.Object(
  {
    columns: Type.Array(Type.String(), { description: 'Of data' }),
    data: Type.Array(Type.Array(Type.String()), { description: 'The first 50 that fit; already and left_alone count' }),
  },
  { description: 'In a dry run: workloads that stay as they are, with their labels' },
)

export const EffectOut = Type.Object(
  {
    enforced: Type.Integer({ description: 'Of the workloads that change, with a VEN in selective or full mode' }),
    left_all_scopes: Type.Integer({ description: 'In the scope of no rule set any more that has one, but before' }),
    rule_sets_total: Type.Integer({ description: 'Rule sets that are concerned' }),
    rule_sets: Type.Array(
      Type.Object({
        name: Type.String(),
        href: Type.String(),
        enter: Type.Integer({ description: 'Workloads that enter its scopes' }),
        leave: Type.Integer({ description: 'Workloads that leave them' }),
        undecided: Type.Integer({ description: 'Workloads of which that cannot be told' }),
        rules_gained: Type.Integer({ description: 'Rules that newly name some of them' }),
        rules_lost: Type.Integer({ description: 'Rules that no longer name some of them' }),
        by_type: Type.Record(
          Type.String(),
          Type.Object({
            gained: Type.Integer({ description: 'Newly' }),
            lost: Type.Integer({ description: 'No longer' }),
          }),
          {
            description: 'The same for allow, deny and override_deny; those without any are left out',
          },
        ),
      }),
      { description: 'Of the policy in force, most workloads first' },
    ),
    rules_skipped: Type.Boolean({ description: 'Too many rules to compare: scopes alone were' }),
  },
  { description: 'What the new labels do to the policy of these workloads, at once' },
)

/** Maximum number of rule sets named in an answer. */
export const MOST_RULE_SETS = 25

export const showEffect = ({ rule_sets: sets, ...effect }: RelabellingEffect): Static<typeof EffectOut> => ({
  ...effect,
  rule_sets_total: sets.length,
  rule_sets: sets.slice(0, MOST_RULE_SETS),
})

/** Describes the effect of a relabelling in one or two sentences, for the person who decides about it. */
export function describeEffect({ enforced, left_all_scopes: left, rule_sets: sets }: RelabellingEffect): string[] {
  const entered = sets.filter(({ enter }) => enter > 0).length
  const leaving = sets.filter(({ leave }) => leave > 0).length
  const rules = sets.filter(({ rules_gained: gained, rules_lost: lost }) => gained + lost > 0).length
  const moves = [
    ...(entered > 0 ? [`enter the scopes of ${countOf(entered, 'rule set')}`] : []),
    ...(leaving > 0 ? [`leave the scopes of ${countOf(leaving, 'rule set')}`] : []),
    ...(rules > 0 ? [`change which rules apply to them in ${countOf(rules, 'rule set')}`] : []),
  ]
  return [
    moves.length === 0
      ? 'By the policy in force, no rule set gains or loses any of them.'
      : `Labels are policy, at once and without provisioning: the workloads ${moves.join(', ')}.`,
    ...warnOfLost(sets),
    ...(enforced > 0
      ? [`${enforced} of them ${enforced === 1 ? 'enforces' : 'enforce'} (selective or full mode).`]
      : []),
    ...(left > 0 ? [`${left} of them will be in the scope of no rule set that has one.`] : []),
  ]
}

/** Maximum number of rule sets named in a warning. */
const MOST_WARNED = 3

/**
 * Warns of rules that would no longer apply to some workloads. Losing a deny rule permits traffic, and losing an allow
 * rule blocks it.
 */
function warnOfLost(sets: readonly RuleSetEffect[]): string[] {
  const lostOf = ({ by_type: by }: RuleSetEffect, types: readonly (keyof typeof by)[]) =>
    types.reduce((sum, type) => sum + (by[type]?.lost ?? 0), 0)
  const say = (types: Parameters<typeof lostOf>[1], noun: string, means: string): string[] => {
    const losing = sets.filter((set) => lostOf(set, types) > 0)
    const lost = losing.reduce((sum, set) => sum + lostOf(set, types), 0)
    if (lost === 0) return []
    const named = losing.slice(0, MOST_WARNED).map(({ name }) => quote(name))
    const more = losing.length > named.length ? ` and ${losing.length - named.length} more` : ''
    const verb = lost === 1 ? 'names' : 'name'
    return [`${countOf(lost, noun)} no longer ${verb} some of them (in ${named.join(', ')}${more}): ${means}`]
  }
  return [
    ...say(['deny', 'override_deny'], 'deny rule', 'traffic that only these rules blocked may pass.'),
    ...say(['allow'], 'allow rule', 'traffic that only these rules allowed is cut where the workloads enforce.'),
    ...(mayCut(sets) ? [NOT_OBSERVED] : []),
  ]
}

const NOT_OBSERVED =
  'How much of the observed traffic this cuts was not looked at: get-traffic-flows with decide_by active shows what these workloads have now.'

/** Returns true if workloads lose an allow rule or gain a deny rule. */
const mayCut = (sets: readonly RuleSetEffect[]): boolean =>
  sets.some(
    ({ by_type: { allow, deny, override_deny: override } }) =>
      (allow?.lost ?? 0) + (deny?.gained ?? 0) + (override?.gained ?? 0) > 0,
  )

/**
 * Maximum number of labels named in a sentence (MOST_NAMED), and of labels in an object that maps labels to counts
 * (MOST_COUNTED).
 */
const MOST_NAMED = 5
const MOST_COUNTED = 20

/** Returns the counts of the first MOST_COUNTED labels, and the sum of all other counts as `(others)`. */
export function firstOf(counts: LabelCounts): LabelCounts {
  const all = Object.entries(counts)
  const others = all.slice(MOST_COUNTED).reduce((sum, [, many]) => sum + many, 0)
  return Object.fromEntries([...all.slice(0, MOST_COUNTED), ...(others > 0 ? [['(others)', others] as const] : [])])
}

function listCounts(counts: LabelCounts): string {
  const all = Object.entries(counts)
  const more = all.length > MOST_NAMED ? ` and ${all.length - MOST_NAMED} more` : ''
  return `${all
    .slice(0, MOST_NAMED)
    .map(([label, many]) => `${quote(label)} (${many})`)
    .join(', ')}${more}`
}

/**
 * Returns the labels that change, with the number of workloads for each, as a string that begins with a colon: `: set
 * role=web (3); removed loc=ams (1)`. Returns an empty string if nothing changes.
 */
export function describeWishes(changes: readonly Relabelling[], remove: 'remove' | 'removed'): string {
  const { set, removed } = countWishes(changes)
  const parts = [
    ...(Object.keys(set).length > 0 ? [`set ${listCounts(set)}`] : []),
    ...(Object.keys(removed).length > 0 ? [`${remove} ${listCounts(removed)}`] : []),
  ]
  return parts.length === 0 ? '' : `: ${parts.join('; ')}`
}

interface Unchanged {
  already: number
  left_alone: number
  kept?: LabelCounts
}

/**
 * Returns sentences about workloads that do not change, and about labels that are kept although another value was
 * requested; empty if there are none.
 */
export function describeUnchanged({ already, left_alone: leftAlone, kept = {} }: Unchanged): string {
  return [
    ...(already > 0 ? [`${countOf(already, 'workload')} already as asked for`] : []),
    ...(leftAlone > 0 ? [`${countOf(leftAlone, 'workload')} left alone`] : []),
    ...(Object.keys(kept).length > 0 ? [`kept, since add replaces nothing: ${listCounts(kept)}`] : []),
  ].join('; ')
}

/** Returns the table of planned changes. */
export const planRows = (changes: readonly Relabelling[]): string[][] =>
  changes.map((change) => {
    const { before, after, keeps } = describeRelabelling(change)
    return [change.workload.name, change.workload.href, before, after, keeps]
  })

/** Returns the table of workloads that do not change, with all their labels. */
export const unchangedRows = (unchanged: readonly Relabelling[]): string[][] =>
  unchanged.map((one) => [one.workload.name, one.workload.href, describeRelabelling(one).keeps])
export const UNCHANGED_COLUMNS = ['workload', 'href', 'labels']
export const PLAN_COLUMNS = ['workload', 'href', 'before', 'after', 'keeps']
export const OUTCOME_COLUMNS = ['workload', 'href', 'before', 'after', 'outcome']

const ORDER: readonly LabelOutcome[] = ['differs', 'unknown', 'refused', 'not_done', 'updated']

/**
 * Returns the table of outcomes, failures first. `expand` adds key and value to labels that the PCE returned by href
 * only.
 */
export const outcomeRows = (results: readonly WrittenLabels[], expand: (label: LabelRef) => LabelRef): string[][] =>
  [...results]
    .sort((a, b) => ORDER.indexOf(a.outcome) - ORDER.indexOf(b.outcome))
    .map(({ change, outcome, message, token, stored }) => {
      const { before, after } = describeRelabelling(change)
      const why = outcome === 'refused' ? `: ${quote(message || token || '')}` : ''
      const has =
        stored === undefined
          ? ''
          : `: it has ${
              stored
                .map(expand)
                .map((label) => quote(writeShort(label)))
                .join(', ') || 'none'
            }`
      return [change.workload.name, change.workload.href, before, after, `${outcome}${why}${has}`]
    })

const writeShort = ({ key, value, href }: LabelRef) => (key == null || value == null ? href : `${key}=${value}`)

/** Returns the number of workloads for each outcome. */
export function countOutcomes(results: readonly WrittenLabels[]): Record<LabelOutcome, number> {
  const counts = { updated: 0, refused: 0, not_done: 0, unknown: 0, differs: 0 }
  for (const { outcome } of results) counts[outcome] += 1
  return counts
}
