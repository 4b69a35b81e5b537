import { Type } from '@sinclair/typebox'
import { LabelRef } from './label.js'
import { EXTERNAL_FIELDS, MaybeList, MaybeText, VERSIONED_FIELDS, type Read } from './reference.js'

/** Labels of one key under one name (P15). */
export const LabelGroup = Type.Object({
  ...VERSIONED_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.String(),
  key: Type.String(),
  description: MaybeText,
  labels: MaybeList(LabelRef),
  sub_groups: MaybeList(Type.Object({ href: Type.String(), name: Type.String() })),
  /** Which kinds of objects use it; only when asked for. */
  usage: Type.Optional(Type.Record(Type.String(), Type.Boolean())),
})
export type LabelGroup = Read<typeof LabelGroup>
