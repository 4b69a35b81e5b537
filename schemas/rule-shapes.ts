import { Type, type Static } from '@sinclair/typebox'
import { StringEnum } from './common.js'

export const RULE_TYPES = ['allow', 'deny', 'override_deny'] as const

/** One end of a rule in answers. */
export const ActorOut = Type.Object({
  type: Type.String({ description: 'ams, label, label_group, ip_list, workload …' }),
  href: Type.Optional(Type.String({ description: 'Absent for ams' })),
  key: Type.Optional(Type.String({ description: 'Label key' })),
  value: Type.Optional(Type.String({ description: 'Label value' })),
  name: Type.Optional(Type.String({ description: 'Name' })),
  exclusion: Type.Optional(Type.Boolean({ description: 'All but this' })),
})
export type ActorOut = Static<typeof ActorOut>

/** One condition of a scope in answers. */
export const ScopeOut = Type.Object({
  href: Type.String({ description: 'Label or label group' }),
  key: Type.Optional(Type.String({ description: 'Label key' })),
  value: Type.Optional(Type.String({ description: 'Label value' })),
  name: Type.Optional(Type.String({ description: 'Label group' })),
  exclusion: Type.Optional(Type.Boolean({ description: 'All but this' })),
})
export type ScopeOut = Static<typeof ScopeOut>

export const RuleTypeOut = StringEnum(RULE_TYPES, { description: 'Kind of rule' })
