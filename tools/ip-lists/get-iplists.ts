import { Type, type Static } from '@sinclair/typebox'
import { IpListOut } from '../../schemas/ip-list-shapes.js'
import { PagingInput, PagingOutput } from '../../schemas/paging.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice } from '../answers/page-list.js'
import { fitRow } from '../answers/byte-budget.js'
import { showIpList } from '../answers/show-policy-objects.js'

const NAME = 'get-iplists'
const Part = Type.Optional(Type.String({ minLength: 1, description: 'Part' }))

const output = Type.Object({
  ip_lists: Type.Array(IpListOut, { description: 'This page' }),
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  area: 'ip-lists',
  summary: 'Draft IP lists: addresses and domain names.',
  effect: 'read',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: Part,
      description: Part,
      fqdn: Part,
      ip_address: Part,
      ...PagingInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'partner' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults, ...filters } = args
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const slice = await fetchSlice({ api: pce.ipLists, params: filters, signal }, position, maxResults, limits)
    const shown = slice.items.map((item) => fitRow(showIpList(item), limits))
    const { rows, paging } = await answerPage(NAME, filters, slice, shown, ctx, { ip_lists: [] })
    return { ip_lists: rows, ...paging }
  },
})
