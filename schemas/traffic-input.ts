import { Type } from '@sinclair/typebox'
import { StringEnum } from './common.js'
import { DecideByInput } from './decided-traffic.js'
import { LabelReference } from './label-reference.js'
import { POLICY_DECISIONS } from './pce/policy-decisions.js'

/** Maximum number of entries in each list of a traffic filter. */
const MAX_FILTER_ENTRIES = 200

const include = (description: string, listed = description) =>
  Type.Optional(
    Type.Array(Type.Union([...LabelReference.anyOf, Type.Array(LabelReference)]), {
      maxItems: MAX_FILTER_ENTRIES,
      description,
      listed,
    }),
  )
const exclude = (description: string) =>
  Type.Optional(Type.Array(LabelReference, { maxItems: MAX_FILTER_ENTRIES, description, listed: '' }))
/** An entry of a filter by services. */
const Service = Type.Object(
  {
    port: Type.Optional(Type.Integer({ description: 'Port' })),
    to_port: Type.Optional(Type.Integer({ description: 'Last' })),
    proto: Type.Optional(Type.Union([Type.String(), Type.Integer()], { description: 'tcp, 6 …', listed: '' })),
    process_name: Type.Optional(Type.String({ description: 'Contains', listed: '' })),
    windows_service_name: Type.Optional(Type.String({ description: 'Name' })),
  },
  { additionalProperties: false },
)
/**
 * Creates the schema of a filter by services, which are objects or strings such as `443/tcp`. Strings, port ranges and
 * empty names are checked only when the entries are read (resolveTrafficServices).
 */
const services = (description: string, listed: string) =>
  Type.Optional(Type.Array(Type.Union([Service, Type.String()]), { description, listed }))

const serviceTexts = (description: string, listed: string) =>
  Type.Optional(Type.Array(Type.Union([Type.String(), Service]), { description, listed }))
/**
 * The filters by service, for tools whose entry in tools/list has no room for objects: tools/list shows strings such as
 * `443/tcp`. Objects are accepted all the same.
 */
export const ServiceTextsInput = {
  include_services: serviceTexts('443/tcp, 8000-8010/udp, icmp …', '443/tcp, icmp …'),
  exclude_services: serviceTexts('None of these', ''),
}

/**
 * Creates the schema of a filter by the network or type of the machine that reported a flow, or by the flow's process
 * or user. An empty list means all.
 */
const reporter = (description: string, listed: string) =>
  Type.Optional(Type.Array(Type.String(), { maxItems: MAX_FILTER_ENTRIES, description, listed }))

/** The argument that selects the policy decisions of the flows that a traffic query returns. */
export const DecisionsInput = Type.Optional(
  Type.Array(StringEnum(POLICY_DECISIONS), { description: '[] means all', listed: '' }),
)

/** The argument that allows the tool to split a query into several queries if it reaches the PCE's row limit (D136). */
export const CompleteInput = {
  complete: Type.Optional(Type.Boolean({ description: 'Past row limit' })),
}

/**
 * The forms in which the sources and destinations of flows can be named. Only one tool contains this full description,
 * and the others refer to it.
 */
export const FILTER_FORMS =
  'key=value, iplist:NAME, href, IP, CIDR … Same key or kind ORed, others ANDed; ORed blocks: a=b&c=d'

/**
 * Returns the arguments of a tool whose callers define a traffic query (T6, T7). `forms` describes the forms in which
 * sources and destinations can be named. If it refers to another tool's description, tools/list leaves out the
 * descriptions of the other filters, because they are the same there.
 */
export const trafficInput = (forms: string, isFirst = forms === FILTER_FORMS) => ({
  include_sources: include(forms),
  exclude_sources: exclude('Any match'),
  include_destinations: include('Also FQDN', isFirst ? undefined : ''),
  exclude_destinations: exclude('Any match'),
  include_services: services('Any of these; 443/tcp, 8000-8010/udp, icmp too', isFirst ? 'Or 443/tcp' : ''),
  exclude_services: services('None of these; 443/tcp too', ''),
  policy_decisions: DecisionsInput,
  ...DecideByInput,
  exclude_workloads_from_ip_list_query: Type.Optional(
    Type.Boolean({ default: true, description: 'IP lists match no workloads', listed: '' }),
  ),
  network: reporter('Of the reporter: External …', isFirst ? 'Reporter: External …' : ''),
  client_type: reporter('endpoint, server …', isFirst ? 'endpoint, server …' : ''),
  process_name: reporter('Whole path or file name', isFirst ? 'Whole path or file name' : ''),
  user_name: reporter('Whole', ''),
  ...CompleteInput,
})
