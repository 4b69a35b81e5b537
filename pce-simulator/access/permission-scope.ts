import { Type, type Static } from '@sinclair/typebox'
import type { Reference } from '../../schemas/pce/reference.js'
import { renderLabels } from '../kinds/render-labels.js'
import { requireDraft, requireLabel } from '../validate/check-references.js'
import { CLOSED } from '../validate/shape.js'
import { draftPath, orgPath, type World } from '../world.js'

const Text = Type.Optional(Type.String())

/** The labels and label groups to which a permission is limited. An empty list means that it is not limited (P28). */
export const PermissionScope = Type.Array(
  Type.Object(
    {
      label: Type.Optional(Type.Object({ href: Type.String(), key: Text, value: Text }, CLOSED)),
      label_group: Type.Optional(Type.Object({ href: Type.String(), key: Text, name: Text }, CLOSED)),
    },
    CLOSED,
  ),
)

/**
 * Returns the stored form of a scope: the hrefs of its labels and label groups. Their names are not stored but looked
 * up each time the scope is shown. Throws 406 invalid_uri if a label or label group does not exist.
 */
export function readScope(world: World, scope: Static<typeof PermissionScope>): Record<string, Reference>[] {
  return scope.map(({ label, label_group }) => {
    if (label) requireLabel(world, label.href)
    if (label_group) requireDraft(world, 'label_groups', draftHref(world, label_group.href))
    return {
      ...(label && { label: { href: label.href } }),
      ...(label_group && { label_group: { href: label_group.href } }),
    }
  })
}

export function renderScope(world: World, scope: unknown): object[] {
  return (scope as { label?: Reference; label_group?: Reference }[]).map(({ label, label_group }) => ({
    ...(label && { label: renderLabels(world, [label])[0] }),
    ...(label_group && { label_group: { ...label_group, ...nameGroup(world, label_group.href) } }),
  }))
}

function nameGroup(world: World, href: string): { key?: unknown; name?: unknown } {
  const group = world.policy.get('label_groups', draftHref(world, href))?.draft
  return group ? { key: group.key, name: group.name } : {}
}

/**
 * Converts the active href of a label group to its draft href, because a scope may refer to either version of a group.
 */
function draftHref(world: World, href: string): string {
  return href.replace(orgPath(world, '/sec_policy/active/'), draftPath(world, '/'))
}
