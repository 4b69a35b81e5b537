import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './common.js'

export const RULE_TYPES = ['allow', 'deny', 'override_deny'] as const

/** One end of a rule in answers. */
export const ActorOut = Type.Object({
  type: Type.String({ description: 'ams, label, ip_list …' }),
  href: Type.Optional(Type.String()),
  key: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  exclusion: Type.Optional(Type.Boolean()),
})
export type ActorOut = Static<typeof ActorOut>

/** One condition of a scope in answers. */
export const ScopeOut = Type.Object({
  href: Type.String(),
  key: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  exclusion: Type.Optional(Type.Boolean()),
})
export type ScopeOut = Static<typeof ScopeOut>

export const RuleTypeOut = StringEnum(RULE_TYPES)

/** A rule that names Windows programs, and admits more than that from consumers that cannot check them. */
export const WideningOut = Type.Optional(
  Type.Object(
    {
      warning: Type.String(),
      services: Type.Array(Type.String()),
      non_windows_consumer_count: Type.Integer(),
      examples: Type.Array(Type.String()),
      message: Type.String(),
    },
    { description: 'The rule admits more than it reads' },
  ),
)
