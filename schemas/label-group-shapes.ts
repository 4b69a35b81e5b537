import { Type, type Static } from '@sinclair/typebox'
import { LabelOut, LabelReference, LabelsOut } from './label-reference.js'

/**
 * Maximum numbers of labels and of groups that one call can name as members. A larger label group is built in several
 * calls.
 */
const MOST_LABELS = 1_000
const MOST_GROUPS = 100

/** The arguments that together name all members of a label group. */
export const MembersInput = {
  labels: Type.Optional(Type.Array(LabelReference, { maxItems: MOST_LABELS, description: 'All, of one key' })),
  sub_groups: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: MOST_GROUPS,
      description: 'Names or hrefs of all groups inside',
      listed: 'Groups inside',
    }),
  ),
}

/**
 * Creates the schema of an argument that names some members of a label group: labels, or groups as `labelgroup:NAME`.
 */
export const SomeMembersInput = (description: string) =>
  Type.Optional(Type.Array(LabelReference, { minItems: 1, maxItems: MOST_LABELS, description }))

/** The form in which answers show a label group that was just written. */
export const LabelGroupWrittenOut = Type.Object({
  href: Type.String(),
  name: Type.String(),
  key: Type.String(),
  description: Type.Optional(Type.String()),
  labels: LabelsOut(LabelOut, 'Its own, as key=value'),
  sub_groups: Type.Array(Type.String(), { description: 'Names of the label groups directly in it' }),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
})
export type LabelGroupWrittenOut = Static<typeof LabelGroupWrittenOut>
