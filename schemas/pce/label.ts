import { Type, type Static } from '@sinclair/typebox'
import { AnyFields, EXTERNAL_FIELDS, Maybe, MaybeFlag, MaybeText, OBJECT_FIELDS, type Read } from './reference.js'

/** A label as other objects bear it; older releases give the href alone. */
export const LabelRef = Type.Object({
  href: Type.String(),
  key: Type.Optional(Type.String()),
  value: Type.Optional(Type.String()),
})
export type LabelRef = Static<typeof LabelRef>

export const LabelGroupRef = Type.Object({
  href: Type.String(),
  key: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
})

/** A label: a key (dimension) and a value. Not versioned: changes act at once (P14). */
export const Label = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  key: Type.String(),
  value: Type.String(),
  deleted: MaybeFlag,
  /** Which kinds of objects use it; only when asked for. */
  usage: Type.Optional(Type.Record(Type.String(), Type.Boolean())),
})
export type Label = Read<typeof Label>

/** A key that labels can have, such as role or app. */
export const LabelDimension = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  key: Type.String(),
  display_name: Type.String(),
  /** Icon, initial, colours and order of the console. */
  display_info: Maybe(AnyFields),
  usage: Maybe(Type.Object({ labels: MaybeFlag, label_groups: MaybeFlag })),
  deleted: MaybeFlag,
  deleted_at: MaybeText,
})
export type LabelDimension = Read<typeof LabelDimension>
