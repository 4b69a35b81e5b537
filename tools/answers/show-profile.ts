import { Type, type Static } from '@sinclair/typebox'
import type { ContainerWorkloadProfile } from '../../schemas/pce/container-cluster.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { ToolContext } from '../../domain/call.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { LabelOut, LabelsOut } from '../../schemas/label-reference.js'
import { Nullable } from '../../schemas/common.js'
import { showLabelOf } from './show-label.js'

const Written = Type.Union([Type.String(), LabelOut], { description: 'key=value' })
const Text = (description: string) => Nullable(Type.String({ description }))

/**
 * The output form of a container workload profile, which defines how the workloads of a namespace are managed and
 * labelled.
 */
export const ProfileOut = Type.Object(
  {
    href: Type.String(),
    name: Text('Name'),
    namespace: Text('null: the default profile'),
    is_default: Type.Optional(Type.Boolean()),
    managed: Type.Boolean(),
    enforcement_mode: Text('Mode of its pods'),
    assign_labels: LabelsOut(LabelOut, 'Labels its workloads get, key=value'),
    labels: Type.Optional(
      Type.Array(
        Type.Object({
          key: Type.String(),
          assignment: Type.Optional(Written),
          restriction: Type.Optional(Type.Array(Written, { description: 'Or a choice of these' })),
        }),
        { description: 'Newer form, where it says more: per key, the label or a choice' },
      ),
    ),
  },
  { description: 'A profile' },
)
export type ProfileOut = Static<typeof ProfileOut>

/** Converts profiles to their output form, with labels in the form that callers use. */
export async function showProfiles(
  profiles: readonly ContainerWorkloadProfile[],
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
): Promise<ProfileOut[]> {
  const expand = await labelExpander(ctx.pce, profiles.flatMap(labelsIn), ctx)
  const show = (reference: LabelRef) => showLabelOf(expand(reference))
  return profiles.map((profile) => {
    const { assign_labels: assigned, labels } = profile
    return {
      href: profile.href,
      name: profile.name ?? null,
      namespace: profile.namespace ?? null,
      ...((profile.namespace ?? null) === null && { is_default: true }),
      managed: profile.managed === true,
      enforcement_mode: profile.enforcement_mode ?? null,
      assign_labels: (assigned ?? []).map(show),
      ...(!isSame(assigned, labels) && {
        labels: (labels ?? []).map((entry) => {
          const { key } = entry
          return 'assignment' in entry
            ? { key, ...(entry.assignment !== null && { assignment: show({ ...entry.assignment, key }) }) }
            : { key, restriction: (entry.restriction ?? []).map((choice) => show({ ...choice, key })) }
        }),
      }),
    }
  })
}

/** Returns true if the newer form of the labels (P24) contains exactly the same labels as the older form. */
function isSame(
  assigned: ContainerWorkloadProfile['assign_labels'],
  labels: ContainerWorkloadProfile['labels'],
): boolean {
  const older = new Set((assigned ?? []).map(({ href }) => href))
  const newer = new Set(
    (labels ?? []).map((entry) => ('assignment' in entry ? (entry.assignment?.href ?? null) : null)),
  )
  return older.size === newer.size && [...newer].every((href) => href !== null && older.has(href))
}

function labelsIn({ assign_labels: assigned, labels }: ContainerWorkloadProfile): LabelRef[] {
  const chosen = (labels ?? []).flatMap((entry) => {
    const { key } = entry
    const references = 'assignment' in entry ? [entry.assignment] : (entry.restriction ?? [])
    return references.filter(Boolean).map((reference) => ({ ...reference, key }))
  })
  return [...(assigned ?? []), ...chosen]
}
