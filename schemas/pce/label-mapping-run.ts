import { Type } from '@sinclair/typebox'
import { Maybe, MaybeFlag, MaybeList, MaybeNumber, MaybeText, Reference, type Read } from './reference.js'

/** A run of label mapping rules: a job that finds, and on demand assigns, the labels they give. */
export const LabelMappingRun = Type.Object({
  href: Type.String(),
  status: Type.String(),
  progress_percent: MaybeNumber,
  /** Where the result is; absent until there is one. */
  result: MaybeText,
  created_at: Type.Optional(Type.String()),
  created_by: Maybe(Reference),
  updated_at: MaybeText,
  label_mapping_params: Maybe(
    Type.Object({
      workloads: MaybeList(Reference),
      rules: MaybeList(Reference),
      assign_labels: MaybeFlag,
    }),
  ),
})
export type LabelMappingRun = Read<typeof LabelMappingRun>

/** What to run: an absent list means all of them. */
export interface LabelMappingRunRequest {
  workloads?: readonly Reference[]
  rules?: readonly Reference[]
  assign_labels?: boolean
}
