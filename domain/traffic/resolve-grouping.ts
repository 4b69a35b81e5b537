import { ToolError } from '../../schemas/errors.js'
import type { ToolContext } from '../../tools/define.js'
import { loadLabels, type LabelIndex } from '../inventory/load-labels.js'
import { columnNames, NAMED_DIMENSIONS, RAW_COLUMNS } from './dimensions.js'

/** What traffic is grouped by unless the caller says otherwise (tools contract, get-traffic-flows). */
export const DEFAULT_GROUPING = [
  'source',
  'destination',
  'port',
  'proto',
  'policy',
  'process',
  'service_name',
  'user',
  'ip_list',
] as const

/**
 * The columns that a caller's dimensions stand for, and the label list they were looked up in. Without dimensions: the default ones
 * and every label key of both sides. Throws unknown_group_by {unknown, valid}, after a look at a fresh label list.
 */
export async function resolveGrouping(
  ctx: Pick<ToolContext<true>, 'pce' | 'now' | 'signal'>,
  dimensions: readonly string[] | undefined,
): Promise<{ labels: LabelIndex; names: string[] }> {
  const recent = await loadLabels(ctx.pce, ctx)
  const first = resolve(recent, dimensions)
  if (first.unknown.length === 0) return { labels: recent, names: first.names }
  const labels = await loadLabels(ctx.pce, ctx, 'fresh')
  const { names, unknown } = resolve(labels, dimensions)
  if (unknown.length === 0) return { labels, names }
  throw new ToolError('unknown_group_by', `Traffic cannot be grouped by ${unknown.join(', ')}.`, {
    unknown,
    valid: [
      ...Object.keys(NAMED_DIMENSIONS),
      ...labels.keys().flatMap((key) => [`source_${key}`, `destination_${key}`]),
      ...Object.keys(RAW_COLUMNS),
    ],
  })
}

function resolve(labels: LabelIndex, dimensions: readonly string[] | undefined) {
  const keys = labels.keys()
  if (dimensions !== undefined) return columnNames(dimensions, keys)
  return columnNames(
    [...DEFAULT_GROUPING, ...['src', 'dst'].flatMap((side) => keys.map((key) => `${side}_${key}`))],
    keys,
  )
}
