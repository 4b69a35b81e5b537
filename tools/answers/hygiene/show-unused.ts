import { Type, type Static } from '@sinclair/typebox'
import { Counts, Text, Total } from '../../../schemas/common.js'
import type { Limits } from '../../../schemas/config.js'
import { RuleTypeOut } from '../../../schemas/rule-shapes.js'
import type { HitReport } from '../../../domain/hygiene/assess-hits.js'
import {
  type IdleRules,
  type KindUse,
  USED_KINDS,
  type UnusedObject,
  type UsedKind,
} from '../../../domain/hygiene/find-unused.js'
import { COUNTING } from '../../../domain/hygiene/rule-hits.js'
import type { ReferenceNames } from '../../../domain/inventory/reference-names.js'
import { toDraftHref } from '../../../domain/inventory/parse-href.js'
import { nameRule } from '../../../domain/policy/name-rule.js'
import type { AnyRule } from '../../../domain/policy/rule-in-force.js'
import { countOf } from '../../../domain/text/describe-numbers.js'
import { quote } from '../../../domain/text/escape-text.js'
import { adviseOnRows, showSections, Truncation } from '../byte-budget.js'

/** The kinds of objects for which the caller can ask whether they are unused. */
export const UNUSED_KINDS = [...USED_KINDS, 'rule_sets', 'rules', 'rule_hits'] as const
export type UnusedKind = (typeof UNUSED_KINDS)[number]

const Unused = Type.Object({
  href: Type.String(),
  name: Text('key=value of a label'),
  created_at: Type.Optional(Type.String()),
  pending: Type.Optional(Text('Change that is not provisioned')),
  only_in: Type.Optional(Type.Array(Type.String(), { description: 'Unused label groups that hold it' })),
  external_data_set: Type.Optional(Text('Whose integration made it, and may make it again')),
})
const objects = (what: string) => Type.Optional(Type.Array(Unused, { description: what }))

const RuleLine = {
  href: Type.String(),
  rule: Text('In one line'),
  unscoped_consumers: Type.Optional(Type.Boolean()),
  rule_set: Text('Its name'),
}

export const UnusedOutput = Type.Object({
  summary: Text('What was found'),
  counts: Counts('Unused, by kind, shown or not'),
  looked_at: Counts('Objects there are, by kind'),
  excluded: Type.Optional(Counts('Built in or marked for deletion, by kind')),
  excluded_why: Type.Optional(Type.Array(Type.String(), { description: 'Which these are, 20 at most' })),
  established_by: Type.Record(Type.String(), Type.Array(Type.String()), { description: 'Where a use was looked for' }),
  not_assessed: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Kinds of which nothing is called unused, and why' }),
  ),
  rule_hits: Type.Optional(
    Type.Object(
      {
        from: Type.String(),
        to: Type.String(),
        report: Text('Of the PCE'),
        counts: Counts(
          'Rules in force: only without_hits were counted everywhere over the whole window; partly_counted are also written to VENs that do not count',
        ),
      },
      { description: 'What was counted' },
    ),
  ),
  labels: objects('Labels'),
  label_groups: objects('Label groups'),
  ip_lists: objects('IP lists'),
  services: objects('Services'),
  rule_sets: Type.Optional(
    Type.Array(
      Type.Object({
        href: Type.String(),
        name: Type.String(),
        why: Type.Array(Type.String(), { description: 'empty, disabled' }),
        rules: Total,
        pending: Type.Optional(Text('Change that is not provisioned')),
      }),
      { description: 'Draft rule sets that do nothing' },
    ),
  ),
  rules: Type.Optional(
    Type.Array(Type.Object({ ...RuleLine, updated_at: Type.Optional(Type.String()) }), {
      description: 'Disabled rules in enabled rule sets',
    }),
  ),
  rules_without_hits: Type.Optional(
    Type.Array(Type.Object({ rule_type: RuleTypeOut, ...RuleLine }), { description: 'Of the active policy' }),
  ),
  ...Truncation,
})

const STANDARD_ROWS = 10

interface Found {
  kinds: ReadonlyMap<UsedKind, KindUse>
  idle: IdleRules
  /**
   * The report on rules that no traffic has hit, or a sentence that says why hits could not be assessed; undefined if
   * it was not requested.
   */
  hits: HitReport | string | undefined
}

/** Maximum number of objects that an answer names as not checked, each with the reason. */
const MOST_EXCLUDED = 20

/**
 * Builds the answer about unused objects. `wanted` lists the requested kinds of objects; `names` returns the names of
 * the objects to which disabled rules refer.
 */
export function showUnused(
  { kinds, idle, hits }: Found,
  wanted: ReadonlySet<UnusedKind>,
  names: ReferenceNames,
  { detail, limits }: { detail: 'standard' | 'full'; limits: Limits },
): Static<typeof UnusedOutput> {
  const sections: Record<string, { rows: object[]; total: number }> = {}
  const add = (name: string, rows: object[]) => (sections[name] = { rows, total: rows.length })
  for (const [kind, { unused, notAssessed }] of kinds) if (notAssessed === undefined) add(kind, unused.map(showObject))
  if (wanted.has('rule_sets'))
    add(
      'rule_sets',
      idle.ruleSets.map(({ ruleSet: { href, name, update_type: pending }, why, rules }) => {
        return { href, name: namedOf(name), why, rules, ...(pending != null && { pending }) }
      }),
    )
  if (wanted.has('rules'))
    add(
      'rules',
      idle.rules.map(({ rule, ruleSet }) => {
        const { updated_at: at } = rule as AnyRule
        return { ...lineOf(rule as AnyRule, namedOf(ruleSet.name), names), ...(at != null && { updated_at: at }) }
      }),
    )
  if (typeof hits === 'object')
    add(
      'rules_without_hits',
      hits.without.map(({ type, rule, ruleSet }) => ({
        rule_type: type,
        ...lineOf(rule, namedOf(ruleSet), hits.names),
      })),
    )
  const counts = Object.fromEntries(Object.entries(sections).map(([name, { total }]) => [name, total]))
  const notAssessed = Object.fromEntries([
    ...[...kinds].flatMap(([kind, { notAssessed: why }]) => (why === undefined ? [] : [[kind, why]])),
    ...(typeof hits === 'string'
      ? [['rule_hits', `${hits} Counting takes PCE ${COUNTING.pce} and VEN ${COUNTING.ven}.`]]
      : []),
  ]) as Record<string, string>
  const excluded = [...kinds].filter(([, { left }]) => left.length > 0)
  const why = excluded.flatMap(([, { left }]) => left.map(({ object, why }) => `${quote(nameOf(object))}: ${why}`))
  return showSections(
    {
      summary: summarise(counts, Object.keys(notAssessed)),
      counts,
      looked_at: Object.fromEntries([...kinds].map(([kind, { total }]) => [kind, total])),
      ...(excluded.length > 0 && {
        excluded: Object.fromEntries(excluded.map(([kind, { left }]) => [kind, left.length])),
        excluded_why: why.slice(0, MOST_EXCLUDED),
      }),
      established_by: Object.fromEntries([...kinds].map(([kind, { established }]) => [kind, established])),
      ...(Object.keys(notAssessed).length > 0 && { not_assessed: notAssessed }),
      ...(typeof hits === 'object' && {
        rule_hits: { from: hits.from, to: hits.to, report: hits.report, counts: hits.counts },
      }),
    },
    sections,
    {
      detail,
      limits,
      standard: STANDARD_ROWS,
      hint: (limit, isFull) =>
        `Each list shows ${limit} at most; ${adviseOnRows(detail, isFull, 'kinds shows fewer lists.')}`,
    },
  )
}

function showObject({ object, onlyIn }: UnusedObject): Static<typeof Unused> {
  const { update_type: pending } = object as { update_type?: string | null }
  return {
    href: object.href,
    name: nameOf(object),
    ...(object.created_at != null && { created_at: object.created_at }),
    ...(pending != null && { pending }),
    ...(onlyIn.length > 0 && { only_in: onlyIn }),
    ...(object.external_data_set && { external_data_set: object.external_data_set }),
  }
}

/** Returns a name, or an empty string for null, because any string field of a PCE object may be null (P43). */
const namedOf = (name: string | null): string => name ?? ''

function nameOf(object: UnusedObject['object']): string {
  const { key, value, name } = object as Partial<Record<'key' | 'value' | 'name', string | null>>
  // Both labels and label groups have a key, but only label groups also have a name.
  return name === undefined && key !== undefined ? `${key ?? ''}=${value ?? ''}` : (name ?? '')
}

const lineOf = (rule: AnyRule, ruleSet: string, names: ReferenceNames) => ({
  href: toDraftHref(rule.href),
  rule: nameRule(rule, names),
  ...(rule.unscoped_consumers === true && { unscoped_consumers: true }),
  rule_set: ruleSet,
})

const NOUNS: Record<string, string> = {
  labels: 'label',
  label_groups: 'label group',
  ip_lists: 'IP list',
  services: 'service',
  rule_sets: 'empty or disabled rule set',
  rules: 'disabled rule',
  rules_without_hits: 'rule without hit',
}

function summarise(counts: Record<string, number>, notAssessed: readonly string[]): string {
  const named = Object.entries(counts).filter(([, count]) => count > 0)
  const found = named.map(([kind, count]) =>
    kind === 'rules_without_hits' ? `${countOf(count, 'rule')} without hits` : countOf(count, NOUNS[kind] ?? kind),
  )
  return [
    found.length === 0 ? 'Nothing unused was found.' : `Unused: ${found.join(', ')}.`,
    ...(notAssessed.length > 0 ? [`Not assessed: ${notAssessed.join(', ')}.`] : []),
  ].join(' ')
}
