import type { LabelGroup } from '../../schemas/pce/label.js'
import type { LabelGroupWrittenOut } from '../../schemas/label-group-shapes.js'
import type { ToolContext } from '../../domain/call.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { toDraftHref } from '../../domain/inventory/parse-href.js'
import { showLabelOf } from './show-label.js'

/**
 * Converts a label group that was just written, or that a dry run predicts, to its output form. A predicted group names
 * its members by href alone, so the names of groups inside it are taken from `known`.
 */
export async function showWrittenGroup(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  group: LabelGroup,
  known: readonly { href: string; name: string }[],
): Promise<LabelGroupWrittenOut> {
  const { href, name, key, description, labels, sub_groups: groups, update_type: updateType } = group
  const expand = await labelExpander(ctx.pce, labels ?? [], ctx)
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
