import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { StringEnum } from '../../schemas/common.js'
import { MAX_PAGE, PagingInput, PagingOutput } from '../../schemas/paging.js'
import { Workload } from '../../schemas/pce/workload.js'
import { WorkloadSelection } from '../../schemas/workload-selection.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { answerPage, type Paging, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { requireFields } from '../answers/select-fields.js'
import { countLeftOutCheaply, resolveSelection, type ResolvedSelection } from '../../domain/hygiene/select-workloads.js'
import { hintAtHostname } from '../../domain/inventory/hint-at-hostname.js'
import { labelExpander, loadLabels } from '../../domain/inventory/labels.js'
import { COMPACT_COLUMNS, labelColumnName, toCompactRecord } from '../answers/show-workload.js'
import { isManaged } from '../../domain/inventory/workloads.js'
import { rowsByColumn } from '../answers/byte-budget.js'

const NAME = 'get-workloads'

const input = Type.Object(
  {
    ...WorkloadSelection,
    detail_level: Type.Optional(
      StringEnum(['compact', 'full', 'labels_only'] as const, {
        default: 'compact',
        description: 'full: PCE objects',
      }),
    ),
    ...PagingInput,
  },
  { additionalProperties: false },
)

// The specified output of this tool has the field `total` instead of `total_count`.
const { total_count: Total, ...FurtherPaging } = PagingOutput

const output = Type.Object({
  total: Total,
  returned: Type.Integer({ description: 'Workloads in this answer' }),
  ...FurtherPaging,
  kubernetes_workloads_left_out: Type.Optional(
    Type.Union([Type.Integer(), Type.Null()], { description: 'Match too: get-kubernetes-workloads; null: not known' }),
  ),
  pce_truncated: Type.Boolean({ description: 'More match than max_results' }),
  columns: Type.Optional(Type.Array(Type.String(), { description: 'Of data; label keys last' })),
  data: Type.Optional(Type.Array(Type.Array(Type.Unknown()), { description: 'One row per workload; null is missing' })),
  workloads: Type.Optional(
    Type.Array(Type.Unknown(), { description: 'detail_level full: PCE objects, labels with key and value' }),
  ),
  message: Type.Optional(Type.String({ description: 'Set when nothing matches' })),
})

export default defineTool({
  name: NAME,
  summary: 'Workloads (servers, laptops, unmanaged hosts) with addresses, mode, labels.',
  effect: 'read',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input,
  output,
  example: { labels: ['app=payments', 'env=prod'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: maxResults, detail_level: detail = 'compact', fields, ...asked } = args
    const question = { ...asked, detail }
    const position = await decodeCursor(ctx, NAME, question, cursor)
    if (fields !== undefined && detail !== 'full') await requireColumns(fields, ctx)
    const selection = await resolveSelection(ctx.pce, asked, ctx)
    const { params, ownFilter } = selection
    const query = { api: ctx.pce.workloads, params, signal: ctx.signal }
    const [slice, leftOut] = await Promise.all([
      fetchSlice(query, position, pageSize(maxResults, ctx.limits, fields), ownFilter),
      cursor === undefined ? countPods(ctx, asked, selection) : {},
    ])

    const expand = await labelExpander(
      ctx.pce,
      slice.items.flatMap((workload) => workload.labels ?? []),
      ctx,
    )
    const labelled = slice.items.map((workload) => ({ workload, labels: (workload.labels ?? []).map(expand) }))
    const isCut = slice.totalCount > (maxResults ?? MAX_PAGE)
    const counts = { total: slice.totalCount, returned: 0, ...leftOut, pce_truncated: isCut }
    if (fields !== undefined && detail === 'full') {
      // The fields of a workload depend on the PCE's release, so all fields that the PCE returned are also accepted.
      const found = slice.items.flatMap((workload) => Object.keys(workload))
      requireFields(fields, [...new Set([...Object.keys(Workload.properties), ...found])])
    }
    if (slice.items.length === 0) {
      const { paging } = await answerPage(NAME, question, slice, [], ctx)
      const hint =
        slice.totalCount === 0 ? await hintAtHostname({ ...query, isNarrowed: ownFilter !== undefined }) : null
      const message = `No workload matches.${hint === null ? '' : ` ${hint}`}`
      return { ...counts, ...furtherOf(paging), message }
    }
    if (detail === 'full') {
      const select = (object: object) =>
        fields === undefined
          ? object
          : Object.fromEntries(Object.entries(object).filter(([name]) => fields.includes(name)))
      const objects = labelled.map(({ workload, labels }) =>
        select({ ...workload, labels, managed: isManaged(workload) }),
      )
      const { rows, paging } = await answerPage(NAME, question, slice, objects, ctx, counts)
      return { ...counts, ...furtherOf(paging), returned: rows.length, workloads: rows }
    }
    const keys = [...new Set(labelled.flatMap(({ labels }) => labels.flatMap(({ key }) => key ?? [])))].sort()
    const fixed = detail === 'compact' ? COMPACT_COLUMNS : COMPACT_COLUMNS.slice(0, 3)
    const columns = fields === undefined ? [...fixed, ...keys.map(labelColumnName)] : [...new Set(fields)]
    const records = labelled.map(({ workload, labels }) => toCompactRecord(workload, labels))
    const data = rowsByColumn(columns, records)
    const { rows, paging } = await answerPage(NAME, question, slice, data, ctx, { ...counts, columns })
    return { ...counts, ...furtherOf(paging), returned: rows.length, columns, data: rows }
  },
})

/** Counts the Kubernetes workloads that match the filters, too. The PCE has them in a separate list. */
async function countPods(
  { pce, signal }: Pick<ToolContext<true>, 'pce' | 'signal'>,
  asked: WorkloadSelection,
  selection: ResolvedSelection,
): Promise<{ kubernetes_workloads_left_out?: number | null }> {
  try {
    const { left, unread } = await countLeftOutCheaply(pce, asked, selection, signal)
    if (unread !== null) return { kubernetes_workloads_left_out: null }
    return left === 0 ? {} : { kubernetes_workloads_left_out: left }
  } catch (error) {
    if (!(error instanceof PceError) || signal.aborted) throw error
    return { kubernetes_workloads_left_out: null }
  }
}

/**
 * Throws invalid_argument for fields that are not columns. Every label key counts as a column, even if no workload of
 * the page has this label.
 */
async function requireColumns(fields: readonly string[], ctx: ToolContext<true>): Promise<void> {
  const isKnown = (known: readonly string[]) => fields.every((field) => known.includes(field))
  if (fields.length > 0 && isKnown(COMPACT_COLUMNS)) return
  const withLabels = async (freshness: 'recent' | 'fresh') => {
    const index = await loadLabels(ctx.pce, ctx, freshness)
    return [...COMPACT_COLUMNS, ...index.keys().map(labelColumnName)]
  }
  const recent = await withLabels('recent')
  requireFields(fields, isKnown(recent) ? recent : await withLabels('fresh'))
}

const furtherOf = ({ total_count: _total, ...further }: Paging) => further
