import { Type } from '@sinclair/typebox'
import { pagingInput, PagingOutput, SHORT_ROWS } from '../../schemas/paging.js'
import type { Label } from '../../schemas/pce/label.js'
import { ExactInput, Part } from '../../schemas/search-filters.js'
import { allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { createListTally, TotalsOut } from '../answers/tally-list.js'
import { selectFields } from '../answers/select-fields.js'

const NAME = 'get-labels'

const Row = Type.Object({
  href: Type.String({ description: 'Label href' }),
  key: Type.String({ description: 'Key' }),
  value: Type.String({ description: 'Value' }),
  deleted: Type.Optional(Type.Boolean({ description: 'Deleted' })),
  usage: Type.Optional(Type.Record(Type.String(), Type.Boolean(), { description: 'Kinds of objects that use it' })),
  external_data_set: Type.Optional(Type.String({ description: 'Source it was imported from' })),
  external_data_reference: Type.Optional(Type.String({ description: 'Its id there' })),
  created_at: Type.Optional(Type.String({ description: 'UTC' })),
  updated_at: Type.Optional(Type.String({ description: 'UTC; absent: as created' })),
})

export default defineTool({
  name: NAME,
  summary: 'Labels: a key (role, app, env, loc …) and a value.',
  effect: 'read',
  reads: 'shown',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      key: Type.Optional(Type.String({ minLength: 1, description: 'Exact key' })),
      value: Part(),
      include_deleted: Type.Optional(Type.Boolean({ description: 'Also deleted', listed: '' })),
      usage: Type.Optional(Type.Boolean({ description: 'Add where used', listed: 'Where used' })),
      ...ExactInput,
      ...pagingInput(SHORT_ROWS),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    labels: Type.Array(Type.Partial(Row), { description: 'Labels of this page' }),
    ...PagingOutput,
    ...TotalsOut,
  }),
  example: { key: 'app' },
  async handler(args, ctx) {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults = SHORT_ROWS, fields, ...question } = args
    const select = selectFields(fields, Row)
    const { exact, ...filters } = question
    const position = await decodeCursor(ctx, NAME, question, cursor)
    // The PCE matches any part of key and value. So before the page is cut, this server compares all results exactly:
    // always by key, and by value if the caller requested it.
    const ownFilter = allOf<Label>(
      matchExactly(true, filters, { key: ({ key }) => [key] }),
      matchExactly(exact, filters, { value: ({ value }) => [value] }),
    )
    const query = { api: pce.labels, params: filters, signal }
    const isUsual = cursor === undefined && args.max_results === undefined
    const tally = isUsual ? createListTally<Label>({ key: ({ key }) => key }) : undefined
    const slice = await fetchSlice(query, position, pageSize(maxResults, limits, fields), ownFilter, tally)
    const totals = tally?.totals(slice, limits)
    const shown = slice.items.map((label) => select(showListedLabel(label, fields)))
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, { labels: [], ...totals })
    return { labels: rows, ...paging, ...totals }
  },
})

/** Shows a label. If it was never changed, the date of the last change is shown only on request. */
function showListedLabel(label: Label, fields: readonly string[] | undefined) {
  const { href, key, value, deleted, usage, external_data_set, external_data_reference, created_at, updated_at } = label
  return {
    href,
    key,
    value,
    ...(deleted === true && { deleted }),
    ...(usage !== undefined && { usage }),
    ...(external_data_set != null && { external_data_set }),
    ...(external_data_reference != null && { external_data_reference }),
    ...(created_at !== undefined && { created_at }),
    ...(updated_at !== undefined && (updated_at !== created_at || fields !== undefined) && { updated_at }),
  }
}
