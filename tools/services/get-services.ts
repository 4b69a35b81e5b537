import { Type, type Static } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import { pagingInput, PagingOutput, SHORT_ROWS } from '../../schemas/paging.js'
import type { Service } from '../../schemas/pce/service.js'
import { ExactInput, Part, PolicyVersionInput, PolicyVersionOut } from '../../schemas/search-filters.js'
import { ServiceOut } from '../../schemas/service-shapes.js'
import { readPolicyVersion, requirePolicyVersion, versionInCursor } from '../../domain/inventory/policy-version.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, fetchSlice, pageSize } from '../answers/page-list.js'
import { selectFields } from '../answers/select-fields.js'
import { fitRow } from '../answers/byte-budget.js'
import { allOf, matchExactly } from '../../domain/inventory/match-exactly.js'
import { parseProtocol } from '../../domain/inventory/protocols.js'
import { quote } from '../../domain/text/escape-text.js'
import { mapInTurns } from '../../domain/text/pace-work.js'
import { showService, withoutNulls } from '../answers/show-policy-objects.js'

const NAME = 'get-services'

const Row = Type.Object({
  ...ServiceOut.properties,
  ransomware: Type.Optional(Type.Object({}, { description: 'Category, severity, os_platforms' })),
})

const output = Type.Object({
  services: Type.Array(Type.Partial(Row), { description: 'This page' }),
  ...PolicyVersionOut,
  ...PagingOutput,
})

export default defineTool({
  name: NAME,
  summary: 'Services: ports, protocols, Windows programs.',
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
      port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535, description: 'Or a range with it', listed: '' })),
      proto: Type.Optional(
        Type.Union([Type.Integer({ minimum: 0, maximum: 255 }), Type.String()], {
          description: '6 tcp …',
        }),
      ),
      process_name: Part('listening'),
      egress_process_name: Part('connecting'),
      ...ExactInput,
      ...PolicyVersionInput,
      ...pagingInput(SHORT_ROWS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { port: 443, proto: 6 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { pce, limits, signal } = ctx
    const { cursor, max_results: maxResults = SHORT_ROWS, fields, policy_version: asked, ...given } = args
    const policyVersion = readPolicyVersion(asked)
    const question = { ...given, ...versionInCursor(policyVersion) }
    const select = selectFields(fields, Row)
    const { exact, ...filters } = given
    const position = await decodeCursor(ctx, NAME, question, cursor)
    await requirePolicyVersion(pce, policyVersion, signal)
    const { name, description, port, process_name: ingress, egress_process_name: egress } = filters
    const proto = filters.proto === undefined ? undefined : parseProtocol(filters.proto)
    if (proto === null) {
      throw new ToolError(
        'invalid_argument',
        `proto ${quote(String(filters.proto))} is not a protocol name or number.`,
        {
          argument: 'proto',
        },
      )
    }
    const ownFilter = allOf<Service>(
      matchExactly(exact, filters, EXACT),
      // The PCE cannot search for programs (P9) or port 0 (P66), so these filters are applied here to everything that
      // it returns.
      ingress === undefined ? undefined : (service) => names(listeners(service), ingress),
      egress === undefined ? undefined : (service) => names(connecting(service), egress),
      port === 0 ? hasPortZero : undefined,
    )
    const params = { name, description, port: port || undefined, proto }
    const query = { api: pce.services, policyVersion, params, signal }
    const slice = await fetchSlice(query, position, pageSize(maxResults, limits, fields), ownFilter)
    // Services may have thousands of ports, so their conversion pauses regularly to let other calls run.
    const show = (item: Service) => fitRow(select({ ...showService(item), ...showRisk(item) }), limits)
    const shown = await mapInTurns(slice.items, show, signal)
    const { rows, paging } = await answerPage(NAME, question, slice, shown, ctx, {
      services: [],
      policy_version: String(policyVersion),
    })
    return { services: rows, policy_version: String(policyVersion), ...paging }
  },
})

/** Returns the ransomware risk that the PCE assigns to a service, if there is any. */
const showRisk = ({ risk_details: risk }: Service) =>
  risk?.ransomware != null && { ransomware: withoutNulls(risk.ransomware) }

const listeners = (service: Service) => [service, ...(service.windows_services ?? [])].map(programOf)
const connecting = (service: Service) => (service.windows_egress_services ?? []).map(programOf)
const programOf = (entry: object) => (entry as { process_name?: string | null }).process_name

const EXACT = {
  name: ({ name }: Service) => [name],
  description: ({ description }: Service) => [description],
  process_name: listeners,
  egress_process_name: connecting,
}

const names = (programs: readonly (string | null | undefined)[], part: string) =>
  programs.some((program) => program?.toLowerCase().includes(part.toLowerCase()))

/** Returns true if a service has port 0, alone or as the start of a range. The value for all ports is -1 (P18). */
const hasPortZero = ({ service_ports: ports, windows_services: windows }: Service) =>
  [...(ports ?? []), ...(windows ?? [])].some((entry) => (entry as { port?: number | null }).port === 0)
