import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './common.js'
import { RuleTypeOut } from './rule-shapes.js'

/** What a change does to the traffic that policy permits; `widening` may permit more and never less. */
export const CHANGE_EFFECTS = ['widening', 'narrowing', 'neutral'] as const
export type ChangeEffect = (typeof CHANGE_EFFECTS)[number]

export const RISKS = ['override_deny', 'any_to_any_all_services', 'scope_removed'] as const
export type Risk = (typeof RISKS)[number]

const EffectOut = Type.Optional(StringEnum(CHANGE_EFFECTS, { description: 'On permitted traffic; absent: undecided' }))

const FieldOut = Type.Object({
  field: Type.String({ description: 'Field' }),
  draft: Type.Unknown({ description: 'In draft' }),
  active: Type.Unknown({ description: 'In force' }),
})
export type FieldChange = Static<typeof FieldOut>

/** Who changed something, and when. */
const STAMPS = {
  updated_by: Type.Optional(
    Type.Object(
      { href: Type.String({ description: 'Href' }), name: Type.Optional(Type.String({ description: 'Name' })) },
      { description: 'Who' },
    ),
  ),
  updated_at: Type.Optional(Type.String({ description: 'When, UTC' })),
}

const RuleChangeOut = Type.Object({
  href: Type.String({ description: 'Draft href' }),
  rule_type: RuleTypeOut,
  change: StringEnum(['added', 'changed', 'removed'] as const, { description: 'Draft against active' }),
  fields: Type.Array(FieldOut, { description: 'What differs' }),
  effect: EffectOut,
  ...STAMPS,
})
export type RuleChangeShown = Static<typeof RuleChangeOut>

/** One pending object with its differences. */
export const PolicyChangeOut = Type.Object({
  href: Type.String(),
  type: Type.String({ description: 'rule_sets, ip_lists …' }),
  name: Type.String(),
  ...STAMPS,
  fields: Type.Optional(Type.Array(FieldOut, { description: 'What differs' })),
  rules: Type.Optional(Type.Array(RuleChangeOut, { description: 'Rule by rule' })),
  effect: EffectOut,
  risks: Type.Optional(Type.Array(StringEnum(RISKS), { description: 'To review' })),
  omitted: Type.Optional(Type.String({ description: 'What was left out, for size' })),
  diff_error: Type.Optional(Type.String({ description: 'Why differences are missing' })),
})
export type PolicyChange = Static<typeof PolicyChangeOut>
