import { Type, type Static } from '@sinclair/typebox'
import { PceError } from '../../pce-client/index.js'
import { StringEnum } from '../../schemas/common.js'
import { LONG_ROWS, MAX_PAGE, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import { Workload } from '../../schemas/pce/workload.js'
import { WorkloadSelection } from '../../schemas/workload-selection.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { answerPage, type Paging, decodeCursor, fetchSlice, pageSize, defaultSize } from '../answers/page-list.js'
import { createListTally, TotalsOut } from '../answers/tally-list.js'
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
    ...pagingInput(LONG_ROWS),
    fields: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Only these; with name, also what identifies those without one',
        listed: '',
      }),
    ),
  },
  { additionalProperties: false },
)

// By specification, this tool's output has the field `total` instead of `total_count`.
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
  in_every_row: Type.Optional(Type.Object({}, { description: 'Columns that the filters fix, left out of data' })),
  data: Type.Optional(Type.Array(Type.Array(Type.Unknown()), { description: 'One row per workload; null is missing' })),
  workloads: Type.Optional(
    Type.Array(Type.Unknown(), { description: 'detail_level full: PCE objects, labels with key and value' }),
  ),
  ...TotalsOut,
  message: Type.Optional(Type.String({ description: 'Set when nothing matches' })),
})

export default defineTool({
  name: NAME,
  summary: 'Workloads (servers, laptops, unmanaged hosts) with addresses, mode, labels.',
  effect: 'read',
  reads: 'shown',
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
    const isUsual = cursor === undefined && maxResults === undefined && detail !== 'full'
    const tally = isUsual ? createListTally(DIVISIONS, labelsOf) : undefined
    const size = pageSize(maxResults ?? defaultSize(detail, LONG_ROWS), ctx.limits, fields)
    const [slice, leftOut] = await Promise.all([
      fetchSlice(query, position, size, ownFilter, tally),
      cursor === undefined ? countPods(ctx, asked, selection) : {},
    ])

    const borne = [...slice.items.flatMap(labelsOf), ...(slice.more ? (tally?.labels() ?? []) : [])]
    const expand = await labelExpander(ctx.pce, borne, ctx)
    const labelled = slice.items.map((workload) => ({ workload, labels: labelsOf(workload).map(expand) }))
    const isCut = slice.totalCount > (maxResults ?? MAX_PAGE)
    const totals = tally?.totals(slice, ctx.limits, expand)
    const counts = { total: slice.totalCount, returned: 0, ...leftOut, pce_truncated: isCut, ...totals }
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
      const select = (object: Workload) => {
        if (fields === undefined) return object
        const shown = new Set([...fields, ...identifying(fields, [object])])
        return Object.fromEntries(Object.entries(object).filter(([name]) => shown.has(name)))
      }
      const objects = labelled.map(({ workload, labels }) =>
        select({ ...workload, labels, managed: isManaged(workload) }),
      )
      const { rows, paging } = await answerPage(NAME, question, slice, objects, ctx, counts)
      return { ...counts, ...furtherOf(paging), returned: rows.length, workloads: rows }
    }
    const keys = [...new Set(labelled.flatMap(({ labels }) => labels.flatMap(({ key }) => key ?? [])))].sort()
    const own = detail === 'compact' ? COMPACT_COLUMNS : COMPACT_COLUMNS.slice(0, 3)
    const records = labelled.map(({ workload, labels }) => toCompactRecord(workload, labels))
    const all = [...own, ...keys.map(labelColumnName)]
    const fixed =
      fields === undefined ? findFixed(records, all, [...filteredBy(asked), ...fixedKeys(labelled, params)]) : {}
    const columns =
      fields === undefined
        ? all.filter((column) => !Object.hasOwn(fixed, column))
        : [...new Set([...fields, ...identifying(fields, records)])]
    const facts = { ...counts, columns, ...(Object.keys(fixed).length > 0 && { in_every_row: fixed }) }
    const data = rowsByColumn(columns, records)
    const { rows, paging } = await answerPage(NAME, question, slice, data, ctx, facts)
    return { ...facts, ...furtherOf(paging), returned: rows.length, data: rows }
  },
})

/**
 * The property, besides labels, by which totals break down the workloads. A mode counts only with a VEN, because it has
 * no effect without one.
 */
const DIVISIONS = {
  enforcement_mode: (workload: Workload) => (isManaged(workload) ? (workload.enforcement_mode ?? null) : 'unmanaged'),
}
const labelsOf = ({ labels }: Workload) => labels ?? []

/**
 * Returns the columns that have one value because of the filters, with this value, so that it need not be repeated in
 * every row. A column counts only if all rows of this page confirm the value.
 */
function findFixed(
  records: readonly Record<string, unknown>[],
  columns: readonly string[],
  filtered: readonly string[],
): Record<string, unknown> {
  const fixed = columns.filter((column) => {
    const value = records[0]?.[column] ?? null
    return filtered.includes(column) && value !== null && records.every((record) => record[column] === value)
  })
  return Object.fromEntries(fixed.map((column) => [column, records[0]?.[column]]))
}

const filteredBy = (asked: WorkloadSelection) =>
  (['managed', 'online', 'enforcement_mode'] as const).filter((name) => asked[name] !== undefined)

/** Returns the label columns that every alternative of the label filter requires. */
function fixedKeys(
  labelled: readonly { labels: readonly LabelRef[] }[],
  { labels: alternatives }: ResolvedSelection['params'],
): string[] {
  if (!Array.isArray(alternatives)) return []
  const isRequired = ({ href }: LabelRef) => alternatives.every((all) => all.includes(href))
  return (labelled[0]?.labels ?? [])
    .filter(isRequired)
    .flatMap(({ key }) => (key === undefined ? [] : labelColumnName(key)))
}

/**
 * Returns the fields that identify workloads without a name, if names were requested and the page has such workloads. A
 * workload with a VEN often has a host name but no name.
 */
function identifying(
  fields: readonly string[],
  workloads: readonly { name?: unknown; hostname?: unknown }[],
): ('hostname' | 'href')[] {
  if (!fields.includes('name')) return []
  const nameless = workloads.filter(({ name }) => !name)
  return [
    ...(nameless.some(({ hostname }) => hostname) ? ['hostname' as const] : []),
    ...(nameless.some(({ hostname }) => !hostname) ? ['href' as const] : []),
  ]
}

/** Counts the Kubernetes workloads that also match the filters. The PCE keeps them in a separate list. */
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
 * Throws invalid_argument for fields that are not columns. Every label key is a column, even if no workload on the page
 * has such a label.
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
