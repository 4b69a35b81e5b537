import { Type } from '@sinclair/typebox'
import { DifferencesOut } from './differences.js'
import { DryRunOutput } from './dry-run.js'
import { LabelOut } from './label-reference.js'
import { WorkloadOut } from './workload-shapes.js'

/** Answer of create-workload: the new workload, or the plan of a dry run. */
export const WorkloadCreated = Type.Object({
  message: Type.String({ description: 'What happened' }),
  workload: Type.Optional(WorkloadOut),
  labels_created: Type.Optional(Type.Array(LabelOut, { description: 'Labels that did not exist before' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to look at' })),
  differences: DifferencesOut,
  ...DryRunOutput,
})
