import { Type, type Static } from '@sinclair/typebox'
import { Nullable } from './common.js'
import { LabelOut } from './label-reference.js'

const Text = (description: string) => Nullable(Type.String({ description }))

/** A container workload profile in answers: how the workloads of a namespace are managed and labelled. */
export const ProfileOut = Type.Object(
  {
    href: Type.String(),
    name: Text('Name'),
    namespace: Text('null: the default profile'),
    is_default: Type.Boolean(),
    managed: Type.Boolean(),
    enforcement_mode: Text('Mode of its pods'),
    assign_labels: Type.Array(LabelOut, { description: 'Labels its workloads get' }),
    labels: Type.Array(
      Type.Object({
        key: Type.String(),
        assignment: Type.Optional(LabelOut),
        restriction: Type.Optional(Type.Array(LabelOut, { description: 'Or a choice of these' })),
      }),
      { description: 'Newer form: per key, the label or a choice' },
    ),
  },
  { description: 'A profile' },
)
export type ProfileOut = Static<typeof ProfileOut>
