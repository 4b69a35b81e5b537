import { Type, type Static } from '@sinclair/typebox'
import type { ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { ToolContext } from '../../domain/call.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { LabelOut } from '../../schemas/label-reference.js'
import { Nullable } from '../../schemas/common.js'

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

/** Profiles as answers show them, with key and value beside each label's href. */
export async function showProfiles(
  profiles: readonly ContainerWorkloadProfile[],
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
): Promise<ProfileOut[]> {
  const expand = await labelExpander(ctx.pce, profiles.flatMap(labelsIn), ctx)
  const show = (reference: LabelRef) => {
    const { href, key = '', value = '' } = expand(reference)
    return { href, key, value }
  }
  return profiles.map((profile) => ({
    href: profile.href,
    name: profile.name ?? null,
    namespace: profile.namespace ?? null,
    is_default: (profile.namespace ?? null) === null,
    managed: profile.managed === true,
    enforcement_mode: profile.enforcement_mode ?? null,
    assign_labels: (profile.assign_labels ?? []).map(show),
    labels: (profile.labels ?? []).map((entry) => {
      const { key } = entry
      return 'assignment' in entry
        ? { key, assignment: show({ ...entry.assignment, key }) }
        : { key, restriction: (entry.restriction ?? []).map((choice) => show({ ...choice, key })) }
    }),
  }))
}

function labelsIn({ assign_labels: assigned, labels }: ContainerWorkloadProfile): LabelRef[] {
  const chosen = (labels ?? []).flatMap((entry) => {
    const { key } = entry
    const references = 'assignment' in entry ? [entry.assignment] : (entry.restriction ?? [])
    return references.map((reference) => ({ ...reference, key }))
  })
  return [...(assigned ?? []), ...chosen]
}
