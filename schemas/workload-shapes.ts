import { Type, type Static } from '@sinclair/typebox'
import { LabelOut, LabelsOut } from './label-reference.js'

/** The form in which tools that write a workload show it in their answers. */
export const WorkloadOut = Type.Object(
  {
    href: Type.String(),
    name: Type.String(),
    hostname: Type.String(),
    interfaces: Type.Array(
      Type.Object({
        name: Type.String(),
        address: Type.String({ description: 'Address' }),
      }),
      { description: 'One per address' },
    ),
    labels: LabelsOut(LabelOut, 'key=value'),
    managed: Type.Optional(Type.Boolean()),
    enforcement_mode: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
  },
  { description: 'As the PCE stored it, or a dry run would' },
)
export type WorkloadOut = Static<typeof WorkloadOut>

const LabelObject = Type.Object(
  {
    key: Type.Optional(Type.String({ description: 'Key' })),
    value: Type.Optional(Type.String({ description: 'Value' })),
    href: Type.Optional(Type.String({ description: 'Or href' })),
  },
  { additionalProperties: false },
)

/** Creates the schema of labels to assign to a workload, or to the workloads of a profile. */
export const WorkloadLabelsInput = (description: string) =>
  Type.Optional(Type.Array(Type.Union([Type.String(), LabelObject]), { maxItems: 50, description }))
