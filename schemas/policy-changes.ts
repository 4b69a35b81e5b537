import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './common.js'
import { RuleTypeOut } from './rule-shapes.js'

/**
 * The possible effects of a change on the permitted traffic. They are effects of the changed object alone: rules
 * elsewhere in the policy are not taken into account.
 */
export const CHANGE_EFFECTS = ['widening', 'narrowing', 'neutral'] as const
export type ChangeEffect = (typeof CHANGE_EFFECTS)[number]

/** Explanations of the effects, in the words that answers use. */
export const EFFECT_MEANINGS: Readonly<Record<ChangeEffect | 'mixed', string>> = {
  widening: 'may permit more traffic than today and never less',
  narrowing: 'may permit less traffic than today and never more',
  neutral: 'permits exactly what is permitted today',
  mixed: 'permits some traffic that is not permitted today, and stops some that is',
}

/** Risks of a change that deserve a review, the most serious first. */
export const RISKS = ['any_to_any_all_services', 'override_deny', 'any_address', 'scope_removed'] as const
export type Risk = (typeof RISKS)[number]

/** Explanations of the risks, in the words that answers use. */
export const RISK_MEANINGS: Readonly<Record<Risk, string>> = {
  any_to_any_all_services: 'an allow rule that no scope limits opens all services between everything and everything',
  override_deny: 'an override deny rule blocks more: no allow rule outweighs it',
  any_address: 'an allow rule names at least half of all IPv4 addresses, or the IPv6 internet',
  scope_removed: 'a scope, or a condition of one, is gone: its rules no longer apply to the same workloads',
}

const RISKS_OUT = { risks: Type.Optional(Type.Array(StringEnum(RISKS), { description: 'To review' })) }

const EffectOut = Type.Optional(
  StringEnum(CHANGE_EFFECTS, {
    description: `On permitted traffic: ${CHANGE_EFFECTS.map((effect) => `${effect} ${EFFECT_MEANINGS[effect]}`).join('; ')}. Absent: effect_note says why`,
  }),
)
/** Texts for `effect_note`, which explains why a change has no single effect. */
export const NO_EFFECT = {
  mixed: `Mixed: it ${EFFECT_MEANINGS.mixed}.`,
  apart: 'Mixed: allow and deny rules differ (effect_by_rule_type).',
  unreadUses: 'Undecided: the rules that use it could not be read.',
  unjudged: 'Undecided: changes of this type of object are not analysed.',
} as const

/** Note beside the effect of a rule set when one of its rules has a different effect. */
export const ALONE_NOTE = 'Of all its rules together; the effect of each rule is of that rule alone.'

const DirectionOut = StringEnum(['widening', 'narrowing', 'mixed'] as const)
const EFFECT_NOTE = {
  effect_note: Type.Optional(
    Type.String({
      description: 'Why there is no effect: Mixed or Undecided, and what of; or why that of its rules is another',
    }),
  ),
  effect_by_rule_type: Type.Optional(
    Type.Object({ allow: DirectionOut, deny: DirectionOut }, { description: 'What each kind of its rules does' }),
  ),
}

const FieldOut = Type.Object({
  field: Type.String({ description: 'Field' }),
  draft: Type.Optional(Type.Unknown({ description: 'In draft' })),
  active: Type.Optional(Type.Unknown({ description: 'In force' })),
  same: Type.Optional(Type.Integer({ description: 'Items that both have, not shown' })),
})
export type FieldChange = Static<typeof FieldOut>

/** The person who changed an object, and the time of the change. */
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
  rule: Type.Optional(Type.String({ description: 'In one line, as it is in force; a new one as in draft' })),
  ...RISKS_OUT,
  effect: EffectOut,
  ...EFFECT_NOTE,
  fields: Type.Optional(Type.Array(FieldOut, { description: 'What differs' })),
  ...STAMPS,
})
export type RuleChangeShown = Static<typeof RuleChangeOut>

/** One object with a pending change, and the differences between its draft and its active version. */
export const PolicyChangeOut = Type.Object({
  href: Type.String(),
  type: Type.String({ description: 'rule_sets, ip_lists …' }),
  name: Type.String(),
  ...RISKS_OUT,
  effect: EffectOut,
  ...EFFECT_NOTE,
  scope_change: Type.Optional(
    StringEnum(['wider', 'narrower', 'same', 'different'] as const, {
      description: 'Workloads that the scopes reach; different: some more and some fewer',
    }),
  ),
  used_by: Type.Optional(
    Type.Object(
      {
        rules: Type.Integer({ description: 'How many' }),
        in: Type.Array(Type.String(), { description: 'Names of what holds them, the first few' }),
      },
      { description: 'Rules in force or in draft that use the object' },
    ),
  ),
  ...STAMPS,
  fields: Type.Optional(Type.Array(FieldOut, { description: 'What differs' })),
  rules: Type.Optional(
    Type.Array(RuleChangeOut, {
      description:
        'Rule by rule; each effect is that of the rule alone, absent where it is that of the object or its kind',
    }),
  ),
  omitted: Type.Optional(Type.String({ description: 'What was left out, for size' })),
  diff_error: Type.Optional(Type.String({ description: 'Why differences are missing' })),
})
export type PolicyChange = Static<typeof PolicyChangeOut>
/**
 * A pending change with the assumptions about the PCE on which its effect depends. An answer lists the assumptions of
 * all its changes together, each only once.
 */
export type JudgedChange = PolicyChange & { assumes?: readonly string[] }

const BeforeAfterOut = Type.Object({
  field: Type.String({ description: 'Field' }),
  before: Type.Optional(Type.Unknown({ description: 'In the earlier version' })),
  after: Type.Optional(Type.Unknown({ description: 'In the later version' })),
  same: Type.Optional(Type.Integer({ description: 'Items that both have, not shown' })),
})

/** One object that differs between two policy versions, and the differences. */
export const VersionChangeOut = Type.Object({
  ...PolicyChangeOut.properties,
  change: StringEnum(['created', 'updated', 'deleted'] as const, {
    description: 'From the first version to the second',
  }),
  used_by: Type.Optional(
    Type.Object(
      {
        rules: Type.Integer({ description: 'How many' }),
        in: Type.Array(Type.String(), { description: 'Names of what holds them, the first few' }),
      },
      { description: 'Rules in force in either version that use the object' },
    ),
  ),
  fields: Type.Optional(Type.Array(BeforeAfterOut, { description: 'What differs' })),
  rules: Type.Optional(
    Type.Array(
      Type.Object({
        ...RuleChangeOut.properties,
        change: StringEnum(['added', 'changed', 'removed'] as const, { description: 'From the first to the second' }),
        rule: Type.Optional(
          Type.String({ description: 'In one line, as the first version has it; a new one as the second' }),
        ),
        fields: Type.Optional(Type.Array(BeforeAfterOut, { description: 'What differs' })),
      }),
      { description: 'Rule by rule; each effect is that of the rule alone' },
    ),
  ),
})
export type VersionChange = Static<typeof VersionChangeOut>

/**
 * The form in which a pending change is shown by tools that discard pending changes or do not provision all of them.
 */
export const PendingOut = Type.Object({
  href: Type.String(),
  type: Type.String({ description: 'Object type' }),
  name: Type.Optional(Type.String()),
  update_type: Type.Optional(Type.String({ description: 'create, update or delete' })),
})
