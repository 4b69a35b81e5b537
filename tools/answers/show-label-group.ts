import type { LabelGroup, LabelRef } from '../../schemas/pce/label.js'
import type { LabelGroupWrittenOut } from '../../schemas/label-group-shapes.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { showLabelOf } from './show-label.js'

/**
 * Converts a label group that was just written, or that a dry run predicts, to its output form. A predicted group
 * refers to its members by href alone, so the names of nested groups are taken from `known`.
 */
export function showWrittenGroup(
  group: LabelGroup,
  expand: (label: LabelRef) => LabelRef,
  known: readonly { href: string; name: string }[],
): LabelGroupWrittenOut {
  const { href, name, key, description, labels, sub_groups: groups, update_type: updateType } = group
  const names = new Map(known.map((one) => [toDraftHref(one.href), one.name]))
  return {
    href: toDraftHref(href),
    name,
    key,
    ...(description != null && description !== '' && { description }),
    labels: (labels ?? []).map((label) => showLabelOf(expand(label))),
    sub_groups: (groups ?? []).map((inner: { href: string; name?: string }) => {
      return inner.name ?? names.get(toDraftHref(inner.href)) ?? inner.href
    }),
    ...(updateType != null && { update_type: updateType }),
  }
}
