import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel } from '../../schemas/common.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { VirtualService } from '../../schemas/pce/virtual-service.js'
import { ExactInput, Part, PolicyVersionInput, PolicyVersionOut } from '../../schemas/search-filters.js'
import { VirtualServiceOut } from '../../schemas/virtual-service-shapes.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { matchExactly } from '../../domain/inventory/match-exactly.js'
import { readPolicyVersion, requirePolicyVersion, versionInCursor } from '../../domain/inventory/policy-version.js'
import { defineTool } from '../define.js'
import { fitRow } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, fetchSlice, pageSize, defaultSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { showVirtualService } from '../answers/show-virtual-service.js'

const NAME = 'get-virtual-services'

const Row = VirtualServiceOut

const output = Type.Object({
  virtual_services: Type.Array(Type.Partial(Row), { description: 'This page' }),
  ...PolicyVersionOut,
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Virtual services: what workloads offer under one name.',
  effect: 'read',
  reads: 'shown',
  toolset: 'virtual-services',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  pceRequests: { atMost: 4 },
  input: Type.Object(
    {
      name: Part(),
      description: Part(),
      ...ExactInput,
      ...PolicyVersionInput,
      detail_level: DetailLevel('full: labels as objects'),
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'web' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults, fields, policy_version: asked, detail_level: detail, ...given } = args
    const policyVersion = readPolicyVersion(asked)
    const question = { ...given, ...versionInCursor(policyVersion) }
    const select = selectFields(fields, Row)
    const { exact, ...filters } = given
    const position = await decodeCursor(ctx, NAME, question, cursor)
    await requirePolicyVersion(pce, policyVersion, signal)
    const ownFilter = matchExactly<VirtualService>(exact, filters, EXACT)
    const query = { api: pce.virtualServices, policyVersion, params: filters, signal }
    const slice = await fetchSlice(
      query,
      position,
      pageSize(maxResults ?? defaultSize(detail, LONG_ROWS), limits, fields),
      ownFilter,
    )
    const expand = await labelExpander(
      pce,
      slice.items.flatMap(({ labels }) => labels ?? []),
      ctx,
    )
    const shown = slice.items.map((item) => fitRow(select(showVirtualService(item, expand, detail)), limits))
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, {
      virtual_services: [],
      policy_version: String(policyVersion),
    })
    return { virtual_services: rows, policy_version: String(policyVersion), ...paging }
  },
})

const EXACT = {
  name: ({ name }: VirtualService) => [name],
  description: ({ description }: VirtualService) => [description],
}
