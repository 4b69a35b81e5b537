import { Type, type Static } from '@sinclair/typebox'
import { IpListOut } from '../../schemas/ip-list-shapes.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { IpList } from '../../schemas/pce/ip-list.js'
import { ExactInput, Part, PolicyVersionInput, PolicyVersionOut } from '../../schemas/search-filters.js'
import { addressFilter, matchExactly } from '../../domain/inventory/match-exactly.js'
import { readPolicyVersion, requirePolicyVersion, versionInCursor } from '../../domain/inventory/policy-version.js'
import { mapInTurns } from '../../domain/text/pace-work.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { fitRow } from '../answers/byte-budget.js'
import { showIpList } from '../answers/show-policy-objects.js'

const NAME = 'get-iplists'

const output = Type.Object({
  ip_lists: Type.Array(Type.Partial(IpListOut), { description: 'This page' }),
  ...PolicyVersionOut,
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'IP lists: addresses and domain names.',
  effect: 'read',
  reads: 'shown',
  toolset: 'inventory',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: Part(),
      description: Part(),
      fqdn: Part(),
      ip_address: Part(),
      ...ExactInput,
      ...PolicyVersionInput,
      ...pagingInput(LONG_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { name: 'partner' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults = LONG_ROWS, fields, policy_version: asked, ...given } = args
    const policyVersion = readPolicyVersion(asked)
    const question = { ...given, ...versionInCursor(policyVersion) }
    const select = selectFields(fields, IpListOut)
    const { exact, ...filters } = given
    const position = await decodeCursor(ctx, NAME, question, cursor)
    await requirePolicyVersion(pce, policyVersion, signal)
    const ownFilter = matchExactly<IpList>(exact, filters, {
      name: ({ name }) => [name],
      description: ({ description }) => [description],
      fqdn: ({ fqdns }) => (fqdns ?? []).map(({ fqdn }) => fqdn),
      ip_address: ({ ip_ranges: ranges }) => (ranges ?? []).flatMap(({ from_ip: from, to_ip: to }) => [from, to]),
    })
    const query = {
      api: pce.ipLists,
      policyVersion,
      params: { ...filters, ip_address: addressFilter(exact, filters.ip_address) },
      signal,
    }
    const slice = await fetchSlice(query, position, pageSize(maxResults, limits, fields), ownFilter)
    // Lists may have thousands of entries, so their conversion pauses regularly to let other calls run.
    const shown = await mapInTurns(slice.items, (item) => fitRow(select(showIpList(item)), limits), signal)
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, {
      ip_lists: [],
      policy_version: String(policyVersion),
    })
    return { ip_lists: rows, policy_version: String(policyVersion), ...paging }
  },
})
