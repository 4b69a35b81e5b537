import { Type } from '@sinclair/typebox'
import { StringEnum } from './common.js'
import { LabelReference } from './label-reference.js'
import { MAX_TRAFFIC_ROWS, POLICY_DECISIONS } from './pce/traffic.js'

const include = (description: string) =>
  Type.Optional(
    Type.Array(Type.Union([...LabelReference.anyOf, Type.Array(LabelReference, { maxItems: 50 })]), {
      maxItems: 200,
      description,
    }),
  )
const exclude = (description: string) => Type.Optional(Type.Array(LabelReference, { maxItems: 200, description }))
const services = (description: string) =>
  Type.Optional(
    Type.Array(
      Type.Object(
        {
          port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535, description: 'Port' })),
          to_port: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535, description: 'End of range' })),
          proto: Type.Optional(Type.Union([Type.String(), Type.Integer()], { description: 'Name or number' })),
          process_name: Type.Optional(Type.String({ minLength: 1, description: 'Part of the path' })),
          windows_service_name: Type.Optional(Type.String({ minLength: 1, description: 'Name' })),
        },
        { additionalProperties: false },
      ),
      { maxItems: 100, description },
    ),
  )

/** Arguments of every tool that runs a traffic query of the caller's making (tools contract, A6 and A7). */
export const TrafficInput = {
  start_date: Type.String({ description: 'YYYY-MM-DD, ISO timestamp or epoch; UTC' }),
  end_date: Type.String({ description: 'Same; a bare date is the end of that day' }),
  include_sources: include(
    'key=value or {key, value}, iplist:NAME, labelgroup:NAME, workload:NAME, href, IP or CIDR. Same key or kind ORed, others ANDed; a list of lists is ORed blocks',
  ),
  exclude_sources: exclude('Same forms; any match excludes'),
  include_destinations: include('As include_sources, and host names (FQDN)'),
  exclude_destinations: exclude('Same forms; any match excludes'),
  include_services: services('Any of these'),
  exclude_services: services('None of these'),
  policy_decisions: Type.Optional(
    Type.Array(StringEnum(POLICY_DECISIONS), { maxItems: POLICY_DECISIONS.length, description: '[] is all' }),
  ),
  exclude_workloads_from_ip_list_query: Type.Optional(
    Type.Boolean({ default: true, description: 'IP list filters match no workload addresses' }),
  ),
  max_results: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_TRAFFIC_ROWS,
      default: MAX_TRAFFIC_ROWS,
      description: 'Rows the PCE may return',
    }),
  ),
}
