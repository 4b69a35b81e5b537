import { Type, type Static, type TObject } from '@sinclair/typebox'
import { StringEnum } from './common.js'
import { LabelsFilter } from './label-reference.js'
import { ENFORCEMENT_MODES } from './pce/enforcement-modes.js'
import { ExactInput, Part } from './search-filters.js'

/**
 * Arguments that select workloads by filters, for get-workloads and for tools that change or assess the selected
 * workloads.
 */
export const WorkloadSelection = {
  name: Part(),
  hostname: Part(),
  ip_address: Part(),
  description: Part(),
  ...ExactInput,
  managed: Type.Optional(Type.Boolean({ description: 'Has a VEN', listed: '' })),
  online: Type.Optional(Type.Boolean({ description: 'VEN heartbeat' })),
  enforcement_mode: Type.Optional(StringEnum(ENFORCEMENT_MODES, { description: 'Mode', listed: '' })),
  labels: LabelsFilter,
}
export type WorkloadSelection = Static<TObject<typeof WorkloadSelection>>

/** Creates the schema of a list of label keys. */
export const LabelKeys = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 20, description }))
