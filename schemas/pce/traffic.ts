import type { LabelRef } from './label.js'
import type { Reference } from './reference.js'

export const POLICY_DECISIONS = ['allowed', 'potentially_blocked', 'blocked', 'unknown'] as const
export type PolicyDecision = (typeof POLICY_DECISIONS)[number]

/** One condition of a traffic filter; exactly one field. `fqdn` and `transmission` exist for destinations only. */
export interface TrafficSelector {
  label?: Reference
  label_group?: Reference
  workload?: Reference
  ip_list?: Reference
  /** A plain string: the PCE answers 406 to an object (pce-api e.12). */
  ip_address?: string
  actors?: 'ams'
  fqdn?: string
  transmission?: 'unicast' | 'broadcast' | 'multicast'
}

export interface TrafficServiceFilter {
  port?: number
  to_port?: number
  proto?: number
  process_name?: string
  windows_service_name?: string
}

/** Body of POST /traffic_flows/async_queries; the client adds `query_name`. */
export interface TrafficQuery {
  /** ISO 8601 with zone. */
  start_date: string
  end_date: string
  /** `include`: outer list OR, inner list AND, `[[]]` is anything. `exclude`: any match excludes. */
  sources: { include: TrafficSelector[][]; exclude: TrafficSelector[] }
  destinations: { include: TrafficSelector[][]; exclude: TrafficSelector[] }
  services: { include: TrafficServiceFilter[]; exclude: TrafficServiceFilter[] }
  sources_destinations_query_op?: 'and' | 'or'
  /** Empty means all. */
  policy_decisions: PolicyDecision[]
  exclude_workloads_from_ip_list_query?: boolean
  /** 0..200000 */
  max_results: number
}

export interface FlowNode {
  ip: string
  fqdn?: string | null
  fqdn_name?: string | null
  ip_lists?: { href: string; name?: string; size?: number }[] | null
  workload?: {
    href: string
    hostname?: string | null
    name?: string | null
    os_type?: string
    managed?: boolean
    managed_by?: string
    enforcement_mode?: string
    /** A laptop or desktop rather than a server. */
    endpoint?: boolean
    labels?: LabelRef[] | null
  } | null
}

/** One aggregated row of a traffic query's result: same ends, service, process and decision inside the window. */
export interface TrafficFlow {
  src: FlowNode
  dst: FlowNode
  service: {
    port?: number | null
    proto?: number | null
    process_name?: string | null
    windows_service_name?: string | null
    user_name?: string | null
  }
  num_connections?: number | null
  state?: string | null
  policy_decision: string
  boundary_decision?: string | null
  draft_policy_decision?: string | null
  rules?: Reference[] | null
  flow_direction?: 'inbound' | 'outbound' | null
  transmission?: string | null
  timestamp_range?: { first_detected: string; last_detected: string } | null
  /** Bytes into and out of the destination. */
  dst_bi?: number | null
  dst_bo?: number | null
  icmp_type?: number | null
  icmp_code?: number | null
  [field: string]: unknown
}

export type TrafficQueryStatus =
  'queued' | 'working' | 'completed' | 'done' | 'failed' | 'cancel_requested' | 'cancelled' | 'canceled'

/** The asynchronous query object as the PCE reports it while it works. */
export interface AsyncTrafficQuery {
  href: string
  status: TrafficQueryStatus
  result?: string | { href?: string; message?: string } | null
  /** Raw observations before the PCE aggregates them into rows; never a count of rows. */
  matches_count?: number
  flows_count?: number
  [field: string]: unknown
}

/** No traffic query returns more rows than this (pce-api h). */
export const MAX_TRAFFIC_ROWS = 200_000
