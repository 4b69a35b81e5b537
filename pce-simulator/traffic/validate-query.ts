import { isIP } from 'node:net'
import { Type, type Static, type TProperties } from '@sinclair/typebox'
import { POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { MAX_TRAFFIC_ROWS } from '../../schemas/pce/words.js'
import { singleOf } from '../kinds/single-kind.js'
import { invalidInput, invalidUri, notAcceptable } from '../refusal.js'
import { orgSettings } from '../kinds/generic-kinds.js'
import { readTime } from '../validate/query-filters.js'
import { CLOSED, Href, OneOf, Port, Shape } from '../validate/shape.js'
import type { World } from '../world.js'

/** The maximum number of rows of a synchronous query (P25). */
const MAX_SYNCHRONOUS_ROWS = 100_000
const DAY = 86_400_000

const only = (properties: TProperties) => Type.Object(properties, CLOSED)
const BOTH_SIDES = [
  only({ label: Href }),
  only({ label_group: Href }),
  only({ workload: Href }),
  only({ ip_list: Href }),
  only({ ip_address: Type.String() }),
  // Estates contain no cloud resources or data centers, but a query may filter by them.
  only({ cloud_resource: Type.Object({ resource_uuid: Type.String() }) }),
  only({ data_center: Type.Object({ type: OneOf('core', 'cloud', 'aws', 'azure', 'gcp') }) }),
]
const AMS = only({ actors: OneOf('ams') })
const FQDN = only({ fqdn: Type.String() })
const TRANSMISSION = only({ transmission: OneOf('broadcast', 'multicast', 'unicast') })

const Sources = Type.Object(
  {
    include: Type.Array(Type.Array(Type.Union([...BOTH_SIDES, AMS]))),
    exclude: Type.Array(Type.Union(BOTH_SIDES)),
  },
  CLOSED,
)
const Destinations = Type.Object(
  {
    include: Type.Array(Type.Array(Type.Union([...BOTH_SIDES, FQDN, AMS]))),
    exclude: Type.Array(Type.Union([...BOTH_SIDES, FQDN, TRANSMISSION])),
  },
  CLOSED,
)
const Services = Type.Array(
  Type.Object(
    {
      port: Type.Optional(Port),
      to_port: Type.Optional(Port),
      proto: Type.Optional(Type.Integer()),
      process_name: Type.Optional(Type.String()),
      windows_service_name: Type.Optional(Type.String()),
    },
    CLOSED,
  ),
)
const DataSources = Type.Array(OneOf('server', 'endpoint', 'flowlink', 'scanner'))

const FIELDS = {
  start_date: Type.Optional(Type.String()),
  end_date: Type.Optional(Type.String()),
  sources_destinations_query_op: Type.Optional(OneOf('and', 'or')),
  sources: Sources,
  destinations: Destinations,
  services: Type.Object({ include: Services, exclude: Services }, CLOSED),
  policy_decisions: Type.Array(OneOf(...POLICY_DECISIONS)),
  boundary_decisions: Type.Optional(
    Type.Array(OneOf('blocked', 'blocked_by_override_deny', 'blocked_non_illumio_rule')),
  ),
  data_sources: Type.Optional(
    Type.Object({ include: Type.Optional(DataSources), exclude: Type.Optional(DataSources) }, CLOSED),
  ),
  exclude_workloads_from_ip_list_query: Type.Optional(Type.Boolean()),
}

/** The schema of an asynchronous traffic query. */
const TrafficQueryShape = Type.Object(
  { query_name: Type.String(), ...FIELDS, max_results: Type.Integer({ minimum: 0, maximum: MAX_TRAFFIC_ROWS }) },
  CLOSED,
)
const QUERY = new Shape('traffic_flows_async_queries_post', TrafficQueryShape)
const SYNCHRONOUS = new Shape(
  'traffic_flows_traffic_analysis_queries_post',
  Type.Object({ ...FIELDS, max_results: Type.Integer({ minimum: 0, maximum: MAX_SYNCHRONOUS_ROWS }) }, CLOSED),
)

type SentQuery = Omit<Static<typeof TrafficQueryShape>, 'query_name'>
export type AcceptedQuery = SentQuery & { start_date: string; end_date: string }

interface Selector {
  label?: { href: string }
  label_group?: { href: string }
  workload?: { href: string }
  ip_list?: { href: string }
  ip_address?: string
}

/**
 * Reads the body of a traffic query and fills in missing dates of its time window. Throws 406 for any query that P25
 * does not allow.
 */
export function readTrafficQuery(world: World, body: unknown): AcceptedQuery {
  return acceptQuery(world, QUERY.read(body))
}

/** Reads a traffic query in the synchronous form, which has no name. */
export function readSynchronousQuery(world: World, body: unknown): AcceptedQuery {
  return acceptQuery(world, SYNCHRONOUS.read(body))
}

function acceptQuery(world: World, query: SentQuery): AcceptedQuery {
  const end = query.end_date === undefined ? world.clock() : readDate(query.end_date)
  const days = longestSpan(world)
  const start = query.start_date === undefined ? end - days * DAY : readDate(query.start_date)
  if (start > end) throw invalidInput('start_date must not be after end_date')
  if (end - start > days * DAY) {
    throw invalidInput(`The time span of a query must not exceed ${days} days`)
  }
  for (const side of [query.sources, query.destinations]) {
    for (const selector of [...side.include.flat(), ...side.exclude]) checkSelector(world, selector)
  }
  for (const { port, to_port } of [...query.services.include, ...query.services.exclude]) {
    if (to_port !== undefined && (port === undefined || to_port < port)) {
      throw invalidInput('to_port must not be below port')
    }
  }
  return { ...query, start_date: new Date(start).toISOString(), end_date: new Date(end).toISOString() }
}

/** Returns the maximum time span of a query in days, which is a setting of the organisation (P25). */
function longestSpan(world: World): number {
  return Number(singleOf(world, orgSettings).max_explorer_query_timespan_days)
}

function readDate(text: string): number {
  const time = readTime(text)
  if (time === null)
    throw invalidInput(`Input validation failed. Details: {${text} is not a timestamp with a time zone}`)
  return time
}

/**
 * Checks a selector: labels and workloads must exist, policy objects must be provisioned and may be named by their
 * draft or active href, and an address must not be a network.
 */
function checkSelector(world: World, { label, label_group, workload, ip_list, ip_address }: Selector): void {
  if (label && !world.labels.get(label.href)) throw invalidUri(label.href)
  if (workload && !world.workloads.get(workload.href)) throw invalidUri(workload.href)
  if (label_group) requirePolicyObject(world, 'label_groups', label_group.href)
  if (ip_list) requirePolicyObject(world, 'ip_lists', ip_list.href)
  if (ip_address !== undefined && isIP(ip_address) === 0) {
    throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
  }
}

function requirePolicyObject(world: World, type: 'label_groups' | 'ip_lists', href: string): void {
  const entry = world.policy.get(type, href.replace('/sec_policy/active/', '/sec_policy/draft/'))
  if (!entry?.active) throw invalidUri(href)
}
