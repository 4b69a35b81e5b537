import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, Nullable } from '../../schemas/common.js'
import { LabelOut, LabelsOut } from '../../schemas/label-reference.js'
import { LONG_ROWS, pagingInput, PagingOutput } from '../../schemas/paging.js'
import type { LabelRef } from '../../schemas/pce/label.js'
import type { VirtualService } from '../../schemas/pce/virtual-service.js'
import { ExactInput, Part, PolicyVersionInput, PolicyVersionOut } from '../../schemas/search-filters.js'
import { EntriesOut } from '../../schemas/service-shapes.js'
import { labelExpander } from '../../domain/inventory/labels.js'
import { matchExactly } from '../../domain/inventory/match-exactly.js'
import { readPolicyVersion, requirePolicyVersion, versionInCursor } from '../../domain/inventory/policy-version.js'
import { defineTool } from '../define.js'
import { fitRow } from '../answers/byte-budget.js'
import { answerPage, decodeCursor, fetchSlice, pageSize, defaultSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { showLabelOf } from '../answers/show-label.js'
import { withoutNulls } from '../answers/show-policy-objects.js'

const NAME = 'get-virtual-services'

const AddressOut = Type.Object({
  ip: Type.Optional(Type.String({ description: 'Address' })),
  network: Type.Optional(Type.String({ description: 'href of the network that the address is in' })),
  fqdn: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  port: Type.Optional(Type.Integer()),
})

const Row = Type.Object({
  href: Type.String(),
  name: Type.String(),
  description: Nullable(Type.String()),
  service: Type.Optional(
    Type.Object(
      { href: Type.String(), name: Type.Optional(Type.String()) },
      { description: 'The service it offers; absent: service_ports has its ports' },
    ),
  ),
  service_ports: EntriesOut,
  labels: LabelsOut(LabelOut, 'As key=value'),
  apply_to: Type.Optional(Type.String({ description: 'host_only or internal_bridge_network' })),
  service_addresses: Type.Optional(
    Type.Array(AddressOut, { description: 'Where it is reached, beside the workloads bound to it' }),
  ),
  ip_overrides: Type.Optional(
    Type.Array(Type.String(), { description: 'Addresses in place of those of its workloads' }),
  ),
  pce_fqdn: Type.Optional(Type.String({ description: 'The PCE that owns it, in a group of PCEs' })),
  update_type: Type.Optional(Type.String({ description: 'Pending change' })),
  omitted: Type.Optional(Type.String({ description: 'What was cut' })),
})

const output = Type.Object({
  virtual_services: Type.Array(Type.Partial(Row), { description: 'This page' }),
  ...PolicyVersionOut,
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Virtual services: what workloads offer under one name.',
  effect: 'read',
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
    const shown = slice.items.map((item) => fitRow(select(show(item, expand, detail)), limits))
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

/** Converts a virtual service to its output form. It contains either the service or the ports, and no empty lists. */
function show(
  item: VirtualService,
  expand: (label: LabelRef) => LabelRef,
  detail: 'standard' | 'full' | undefined,
): Static<typeof Row> {
  const { service, service_ports: ports, service_addresses: addresses, ip_overrides: overrides } = item
  return {
    href: item.href,
    name: item.name,
    description: item.description ?? null,
    ...(service != null && {
      service: { href: service.href, ...(service.name != null && { name: service.name }) },
    }),
    ...(ports != null && { service_ports: ports.map(withoutNulls) }),
    labels: (item.labels ?? []).map((label) => showLabelOf(expand(label), detail)),
    ...(item.apply_to !== undefined && { apply_to: item.apply_to }),
    ...(addresses != null && addresses.length > 0 && { service_addresses: addresses.map(showAddress) }),
    ...(overrides != null && overrides.length > 0 && { ip_overrides: [...overrides] }),
    ...(item.pce_fqdn != null && { pce_fqdn: item.pce_fqdn }),
    ...(item.update_type != null && { update_type: item.update_type }),
  }
}

function showAddress(address: NonNullable<VirtualService['service_addresses']>[number]): Static<typeof AddressOut> {
  const { port } = address
  const shownPort = port != null && { port }
  if ('ip' in address)
    return { ip: address.ip, ...(address.network != null && { network: address.network.href }), ...shownPort }
  const { fqdn, description } = address
  return { fqdn, ...(description != null && description !== '' && { description }), ...shownPort }
}
