import { Type, type Static } from '@sinclair/typebox'
import { LabelRef } from './label.js'
import {
  AnyFields,
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OneOf,
  Reference,
  type Read,
} from './reference.js'
import { POLICY_DECISIONS } from './policy-decisions.js'

/** One condition of a traffic filter, with exactly one field. `fqdn` and `transmission` are for destinations only. */
export const TrafficSelector = Type.Object({
  label: Type.Optional(Reference),
  label_group: Type.Optional(Reference),
  workload: Type.Optional(Reference),
  ip_list: Type.Optional(Reference),
  /** An address as a plain string; if it is sent as an object, the PCE answers 406 (P25). */
  ip_address: Type.Optional(Type.String()),
  actors: Type.Optional(OneOf('ams')),
  fqdn: Type.Optional(Type.String()),
  transmission: Type.Optional(OneOf('unicast', 'broadcast', 'multicast')),
  cloud_resource: Type.Optional(Type.Object({ resource_uuid: Type.String() })),
  data_center: Type.Optional(Type.Object({ type: Type.String() })),
})
export type TrafficSelector = Static<typeof TrafficSelector>

/**
 * The filter for the sources or the destinations. In `include`, entries of an inner list are ANDed, the inner lists are
 * ORed, and `[[]]` means anything. In `exclude`, a match of any entry excludes the flow.
 */
const TrafficSide = Type.Object({
  include: Type.Array(Type.Array(TrafficSelector)),
  exclude: Type.Array(TrafficSelector),
})

export const TrafficServiceFilter = Type.Object({
  port: MaybeNumber,
  to_port: MaybeNumber,
  proto: MaybeNumber,
  process_name: Type.Optional(Type.String()),
  windows_service_name: Type.Optional(Type.String()),
})
export type TrafficServiceFilter = Static<typeof TrafficServiceFilter>

/** Body of POST /traffic_flows/async_queries. The client adds `query_name`. */
export const TrafficQuery = Type.Object({
  /** The start of the time window, as an ISO 8601 time with a time zone. */
  start_date: Type.String(),
  end_date: Type.String(),
  sources: TrafficSide,
  destinations: TrafficSide,
  services: Type.Object({
    include: Type.Array(TrafficServiceFilter),
    exclude: Type.Array(TrafficServiceFilter),
  }),
  sources_destinations_query_op: Type.Optional(OneOf('and', 'or')),
  /** The policy decisions that the rows may have; an empty list means all decisions. */
  policy_decisions: Type.Array(OneOf(...POLICY_DECISIONS)),
  boundary_decisions: Type.Optional(Type.Array(Type.String())),
  /** The types of agents that may have reported the flows: `server`, `endpoint`, `flowlink`, `scanner`. */
  data_sources: Type.Optional(Type.Object({ include: Type.Array(Type.String()), exclude: Type.Array(Type.String()) })),
  exclude_workloads_from_ip_list_query: MaybeFlag,
  /** Maximum number of rows in the query's result, from 0 to 200,000. */
  max_results: Type.Integer(),
})
export type TrafficQuery = Static<typeof TrafficQuery>

/** The workload that is the source or destination of a flow. */
const FlowWorkload = Type.Object({
  href: Type.String(),
  hostname: MaybeText,
  name: MaybeText,
  os_type: Type.Optional(Type.String()),
  managed: MaybeFlag,
  managed_by: Type.Optional(Type.String()),
  enforcement_mode: Type.Optional(Type.String()),
  /** True for a laptop or desktop, false for a server. */
  endpoint: MaybeFlag,
  labels: MaybeList(LabelRef),
})

export const FlowNode = Type.Object({
  ip: Type.String(),
  /** The domain name. The schemas of release 26 call it `fqdn_name`, real answers `fqdn` (P25). */
  fqdn: MaybeText,
  fqdn_name: MaybeText,
  ip_lists: MaybeList(Type.Object({ href: Type.String(), name: Type.Optional(Type.String()), size: MaybeNumber })),
  workload: Maybe(FlowWorkload),
  virtual_service: Maybe(AnyFields),
  virtual_server: Maybe(AnyFields),
})
export type FlowNode = Static<typeof FlowNode>

/**
 * One aggregated row of a traffic query's result: the flows with the same source, destination, service, process and
 * decision within the time window.
 */
export const TrafficFlow = Type.Object({
  src: FlowNode,
  dst: FlowNode,
  service: Type.Object({
    port: Maybe(Type.Integer()),
    proto: Maybe(Type.Integer()),
    process_name: MaybeText,
    windows_service_name: MaybeText,
    user_name: MaybeText,
  }),
  num_connections: Maybe(Type.Integer()),
  state: MaybeText,
  policy_decision: Type.String(),
  boundary_decision: MaybeText,
  /**
   * The draft decision. It is present only after `updateAsyncQueryRules`, like the fields from `rules` to
   * `override_deny_rules`.
   */
  draft_policy_decision: MaybeText,
  /** The rules behind the draft decision: each by its href, or an essential rule by its name, since it has no href. */
  rules: MaybeList(
    Type.Object({ href: Type.Optional(Type.String()), essential_service_rule: Type.Optional(Type.String()) }),
  ),
  enforcement_boundaries: MaybeList(Reference),
  override_deny_rules: MaybeList(Reference),
  flow_direction: Maybe(OneOf('inbound', 'outbound')),
  transmission: MaybeText,
  timestamp_range: Maybe(Type.Object({ first_detected: Type.String(), last_detected: Type.String() })),
  network: Maybe(Type.Object({ href: Type.Optional(Type.String()), name: MaybeText })),
  /** Number of bytes sent to the destination. `dst_bo` is the number of bytes that the destination sent. */
  dst_bi: Maybe(Type.Integer()),
  dst_bo: Maybe(Type.Integer()),
  icmp_type: Maybe(Type.Integer()),
  icmp_code: Maybe(Type.Integer()),
  client_type: MaybeText,
  caps: MaybeList(Type.String()),
})
export type TrafficFlow = Read<typeof TrafficFlow>

const TrafficQueryStatus = OneOf(
  'queued',
  'working',
  'completed',
  'done',
  'failed',
  'cancel_requested',
  'cancelled',
  'canceled',
)
export type TrafficQueryStatus = Static<typeof TrafficQueryStatus>

/** An asynchronous traffic query, as the PCE reports it while it runs. */
export const AsyncTrafficQuery = Type.Object({
  href: Type.String(),
  status: TrafficQueryStatus,
  /** The place where the query's rows can be downloaded, or the reason why there are none. */
  result: Maybe(
    Type.Union([
      Type.String(),
      Type.Object({ href: Type.Optional(Type.String()), message: Type.Optional(Type.String()) }),
    ]),
  ),
  created_at: Type.Optional(Type.String()),
  created_by: Maybe(Reference),
  updated_at: MaybeText,
  /** The query parameters as the PCE accepted them, including `query_name`. */
  query_parameters: Maybe(AnyFields),
  /**
   * Number of raw observations before the PCE aggregates them into rows. This number says nothing about the number of
   * rows.
   */
  matches_count: MaybeNumber,
  flows_count: MaybeNumber,
  /** Status of the lookup of rules that `updateAsyncQueryRules` has started. */
  rules: Type.Optional(Type.Unknown()),
  regions: MaybeList(
    Type.Object({
      pce_fqdn: Type.String(),
      responded: Type.Boolean(),
      matches_count: MaybeNumber,
      flows_count: MaybeNumber,
    }),
  ),
})
export type AsyncTrafficQuery = Read<typeof AsyncTrafficQuery>

const FlowSpace = Type.Object({
  num_flows_days: MaybeNumber,
  num_flows_days_limit: MaybeNumber,
  flows_oldest_day: MaybeText,
  flows_size_gb: Type.Optional(Type.Number()),
  flows_size_gb_limit: Type.Optional(Type.Number()),
  num_daily_tables: Type.Optional(Type.Number()),
  num_weekly_tables: Type.Optional(Type.Number()),
})

/** The amount of traffic that the PCE keeps, and the space that it takes. */
export const TrafficDatabaseMetrics = Type.Object({
  flows_days: Type.Integer(),
  flows_days_limit: Type.Integer(),
  flows_oldest_day: MaybeText,
  flows_size_gb: Type.Number(),
  flows_size_gb_limit: Type.Number(),
  server: Maybe(FlowSpace),
  endpoint: Maybe(FlowSpace),
  backlog: Maybe(Type.Object({ total_disk_used_gb: Type.Optional(Type.Number()), total_file_count: MaybeNumber })),
  updated_at: Type.String(),
})
export type TrafficDatabaseMetrics = Read<typeof TrafficDatabaseMetrics>
