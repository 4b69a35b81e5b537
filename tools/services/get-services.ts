import { Type, type Static } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import { PagingInput, PagingOutput } from '../../schemas/paging.js'
import type { Service } from '../../schemas/pce/service.js'
import { ServiceOut } from '../../schemas/service-shapes.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice } from '../answers/page-list.js'
import { fitRow } from '../answers/byte-budget.js'
import { parseProtocol } from '../../domain/inventory/protocols.js'
import { showService } from '../answers/show-policy-objects.js'

const NAME = 'get-services'
const Part = (what: string) => Type.Optional(Type.String({ minLength: 1, description: what }))

const output = Type.Object({
  services: Type.Array(ServiceOut, { description: 'This page' }),
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  area: 'services',
  summary: 'Draft services: ports, protocols, Windows programs.',
  effect: 'read',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      name: Part('Part'),
      description: Part('Part'),
      port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: 'Or its range' })),
      proto: Type.Optional(
        Type.Union([Type.String(), Type.Integer({ minimum: 0, maximum: 255 })], {
          description: 'Or number',
        }),
      ),
      process_name: Part('Part; listening'),
      egress_process_name: Part('Part; connecting'),
      ...PagingInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { port: 443, proto: 'tcp' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults, ...filters } = args
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const { name, description, port, process_name: ingress, egress_process_name: egress } = filters
    const proto = filters.proto === undefined ? undefined : parseProtocol(filters.proto)
    if (proto === null) {
      throw new ToolError('invalid_argument', `proto "${filters.proto}" is not a protocol name or number.`, {
        argument: 'proto',
      })
    }
    // The PCE cannot search programs (P9), so these run over everything it finds.
    const ownFilter =
      ingress === undefined && egress === undefined
        ? undefined
        : (service: Service) => names(service, ingress, listeners) && names(service, egress, connecting)
    const query = { api: pce.services, params: { name, description, port, proto }, signal }
    const slice = await fetchSlice(query, position, maxResults, limits, ownFilter)
    const shown = slice.items.map((item) => fitRow(showService(item), limits))
    const { rows, paging } = await answerPage(NAME, filters, slice, shown, ctx, { services: [] })
    return { services: rows, ...paging }
  },
})

const listeners = (service: Service) => [service, ...(service.windows_services ?? [])]
const connecting = (service: Service) => service.windows_egress_services ?? []

function names(service: Service, part: string | undefined, where: (service: Service) => object[]): boolean {
  if (part === undefined) return true
  const programs = where(service).map((entry) => (entry as { process_name?: unknown }).process_name)
  return programs.some((program) => typeof program === 'string' && program.toLowerCase().includes(part.toLowerCase()))
}
