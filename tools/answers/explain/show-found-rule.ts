import { Type, type Static } from '@sinclair/typebox'
import { Many, StringEnum } from '../../../schemas/common.js'
import { RULE_TYPES } from '../../../schemas/rule-shapes.js'
import type { MissedRule } from '../../../domain/explain/find-near-misses.js'
import { NEAR_MISSES } from '../../../domain/explain/find-near-misses.js'
import { speaks, type FoundRule } from '../../../domain/explain/judge-members.js'
import type { PceCheck } from '../../../domain/explain/hold-against-pce.js'
import type { HeldRule } from '../../../domain/explain/place-rules.js'
import type { ReferenceNames } from '../../../domain/inventory/reference-names.js'
import { nameRule } from '../../../domain/policy/name-rule.js'
import type { AnyRule } from '../../../domain/policy/rule-in-force.js'
import { tellMany } from '../../../domain/text/describe-numbers.js'
import { writeScopes } from '../show-rules.js'
import { reasonsOf } from './tell-verdict.js'

const AUTHOR = 'Name, otherwise href'
const PLACE = {
  rule: Type.String({ description: 'In one line' }),
  href: Type.String({ description: 'Of the draft rule' }),
  ruleset: Type.String({ description: 'Its name; of an enforcement boundary its own' }),
  ruleset_href: Type.Optional(Type.String({ description: 'Absent: an enforcement boundary' })),
}

/** A rule that applies, or may apply, to a flow. */
export const FoundRuleOut = Type.Object({
  rule_type: StringEnum(RULE_TYPES),
  ...PLACE,
  scopes: Type.Array(Type.Array(Type.Unknown()), { description: 'Of its rule set' }),
  in: Type.Array(Type.String(), { description: 'active, draft' }),
  applies: StringEnum(['yes', 'uncertain'] as const, { description: 'Whether it is about the flow' }),
  undecided_because: Type.Optional(Type.String({ description: 'Why it is uncertain' })),
  pce_says: Type.Optional(Type.String({ description: 'By its policy check, where we are uncertain' })),
  unscoped_consumers: Type.Optional(Type.Boolean({ description: 'Sources beyond the scope' })),
  written_to: Type.Array(Type.String(), { description: 'The ends that have it: source, destination' }),
  pairs: Type.Optional(Many('It is about, where not all')),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
  created_by: Type.Optional(Type.String({ description: AUTHOR })),
  updated_by: Type.Optional(Type.String({ description: AUTHOR })),
  updated_at: Type.Optional(Type.String({ description: 'Time' })),
})

/** A rule that would have allowed a flow if one condition were different. */
export const NearMissOut = Type.Object({
  ...PLACE,
  but: Type.String({ description: 'Why it does not' }),
})

const placeOf = (held: HeldRule, names: ReferenceNames): Static<typeof NearMissOut> => ({
  rule: nameRule(held.source as AnyRule, names),
  href: held.href,
  ruleset: held.ruleSet?.name ?? ('name' in held.source ? String(held.source.name) : ''),
  ...(held.ruleSet !== null && { ruleset_href: held.ruleSet.href }),
  but: '',
})

export function showNearMiss({ held, why }: MissedRule, names: ReferenceNames): Static<typeof NearMissOut> {
  return { ...placeOf(held, names), but: NEAR_MISSES[why] }
}

/** Converts a found rule to its output form. `all` is the number of evaluated pairs of source and destination. */
export function showFoundRule(
  found: FoundRule,
  names: ReferenceNames,
  authors: ReadonlyMap<string, string>,
  check: PceCheck | null,
  all: number,
): Static<typeof FoundRuleOut> {
  const { held, atSource, atDestination, versions, pairs } = found
  const { but: _none, ...place } = placeOf(held, names)
  const answer = speaks(found)
  const settled = check?.settled.get(held.href)
  const { created_by: creator, updated_by: editor, updated_at: at, update_type: pending } = held.source
  const nameOf = (author: { href: string }) => authors.get(author.href) ?? author.href
  return {
    rule_type: held.kind,
    ...place,
    scopes: writeScopes(held.scopes, names),
    in: [...versions],
    applies: answer === 'yes' ? 'yes' : 'uncertain',
    ...(answer !== 'yes' && { undecided_because: reasonsOf(atSource, atDestination) ?? '' }),
    ...(answer !== 'yes' &&
      settled !== undefined && { pce_says: `that it ${settled ? 'applies' : 'does not apply'} to this flow` }),
    ...(held.ruleSet !== null && held.rule.unscoped_consumers === true && { unscoped_consumers: true }),
    written_to: [...(atSource === 'no' ? [] : ['source']), ...(atDestination === 'no' ? [] : ['destination'])],
    ...(pairs < all && { pairs: tellMany(pairs) }),
    ...(pending != null && { update_type: pending }),
    ...(creator != null && { created_by: nameOf(creator) }),
    ...(editor != null && { updated_by: nameOf(editor) }),
    ...(at !== undefined && { updated_at: at }),
  }
}

/** Returns the hrefs of all users who created or last changed one of these rules. */
export const authorsOf = (rules: readonly Pick<FoundRule, 'held'>[]): string[] =>
  rules.flatMap(({ held: { source } }) => [source.created_by?.href ?? [], source.updated_by?.href ?? []].flat())
