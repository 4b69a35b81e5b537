import { Type } from '@sinclair/typebox'
import { DifferencesOut } from './differences.js'
import { DryRunOutput } from './dry-run.js'
import { LabelOut } from './label-reference.js'

/** Answer of create-workload: the new workload, or the plan of a dry run. */
export const WorkloadCreated = Type.Object({
  message: Type.String({ description: 'What happened' }),
  workload: Type.Optional(
    Type.Object(
      {
        href: Type.String({ description: 'Workload href' }),
        name: Type.String({ description: 'Name' }),
        hostname: Type.String({ description: 'Host name' }),
        interfaces: Type.Array(
          Type.Object({
            name: Type.String({ description: 'eth0 …' }),
            address: Type.String({ description: 'Address' }),
          }),
          { description: 'One per address' },
        ),
        labels: Type.Array(LabelOut, { description: 'Its labels' }),
      },
      { description: 'As the PCE stored it' },
    ),
  ),
  labels_created: Type.Optional(Type.Array(LabelOut, { description: 'Labels that did not exist before' })),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What to look at' })),
  differences: DifferencesOut,
  ...DryRunOutput,
})
