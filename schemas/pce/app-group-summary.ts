import { Type } from '@sinclair/typebox'
import { AnyFields, Maybe, MaybeList, MaybeText, type Read } from './reference.js'

/** Application groups with their sizes: one object without an href, known from clients only (P28). */
export const AppGroupSummary = Type.Object({
  nodes: MaybeList(AnyFields),
  labels: Maybe(AnyFields),
  mode_key: MaybeList(Type.Unknown()),
  visibility_level_key: MaybeList(Type.Unknown()),
  signature: MaybeText,
  updated_at: MaybeText,
  version: Type.Optional(Type.Unknown()),
  cached: Type.Optional(Type.Boolean()),
})
export type AppGroupSummary = Read<typeof AppGroupSummary>
