import type { PceEvent } from '../schemas/pce/event.js'
import type { IpList } from '../schemas/pce/ip-list.js'
import type { Label } from '../schemas/pce/label.js'
import type { EnforcementBoundary, IngressService, RuleSet } from '../schemas/pce/rule-set.js'
import type { PceObject } from '../schemas/pce/reference.js'
import type { Service } from '../schemas/pce/service.js'
import type { TrafficFlow } from '../schemas/pce/traffic.js'
import type { Workload } from '../schemas/pce/workload.js'

/** What an estate is made from. The same options give the same estate, byte for byte. */
export interface EstateOptions {
  seed: number
  workloads: number
  flows: number
  orgId: number
}

/**
 * A generated organisation as it stands right after its last provisioning: every versioned object is given once, with draft
 * hrefs, and is active as it is. `pending` lists edits made after that (drafts that differ from the active policy).
 */
export interface Estate {
  labels: Label[]
  workloads: Workload[]
  ipLists: IpList[]
  services: Service[]
  /** With `rules` and `deny_rules` embedded. */
  ruleSets: RuleSet[]
  /** Read anew by every query, so that a long estate may make them while they are read. */
  conversations: Iterable<Conversation>
  users: { href: string; username: string; full_name: string }[]
  /** What the event log begins with, oldest first; absent: nothing. */
  events?: readonly PceEvent[]
  /** Absent: no containers, network devices or load balancers. */
  inventory?: Inventory
}

/** What nobody can make through the API because it is reported, by the last segment of its path, as the simulator stores it. */
export type Inventory = Readonly<Record<string, readonly PceObject[]>>

/** One end of a conversation: a workload of the estate, or an address outside it. */
export type Endpoint = { workload: string; ip: string } | { ip: string; fqdn?: string }

/**
 * A recurring conversation. A traffic query folds its occurrences inside the window into one row, so any window over the
 * estate's lifetime gives believable, reproducible traffic whatever the day is.
 */
export interface Conversation {
  src: Endpoint
  dst: Endpoint
  service: TrafficFlow['service']
  flowDirection: 'inbound' | 'outbound'
  /** First and last day it was seen, as days since the Unix epoch; `lastDay` null means it still goes on. */
  firstDay: number
  lastDay: number | null
  /** Every day is 1, weekly is 7. */
  everyDays: number
  /** Second of the day at which it occurs. */
  secondOfDay: number
  /** Connections of one occurrence. */
  connectionsPerDay: number
  /** Bytes of one occurrence, into and out of the destination. */
  bytesIn: number
  bytesOut: number
  state: 'active' | 'closed' | 'timed out' | 'snapshot' | 'new' | 'unknown' | 'incomplete'
  transmission?: 'unicast' | 'broadcast' | 'multicast'
  /** Protocols 1 and 58 only; `service.port` is absent then. */
  icmpType?: number
  icmpCode?: number
}

/**
 * One version of the policy with what its rules point at. Hrefs are compared by object, not by version: `/draft/` and
 * `/active/` forms of an href name the same object (see `sameObjectKey`).
 */
export interface PolicyView {
  ruleSets: readonly RuleSet[]
  ipLists: ReadonlyMap<string, IpList>
  services: ReadonlyMap<string, Service>
  /** Label hrefs of each label group, sub-groups expanded. */
  labelGroups: ReadonlyMap<string, readonly string[]>
  /** Absent: none. */
  boundaries?: readonly EnforcementBoundary[]
  /** Absent: none. */
  virtualServices?: readonly BoundService[]
}

/** A virtual service with the workloads that offer it; bindings are the same in every version of the policy. */
export interface BoundService {
  href: string
  labels: readonly string[]
  /** A service object, or ports. */
  services: readonly IngressService[]
  bindings: readonly { workload: string; portOverrides: readonly PortOverride[] }[]
}

/** On one workload a port of the virtual service is another. */
export interface PortOverride {
  port?: number
  proto?: number
  new_port: number
  new_to_port?: number
}

/** The href with its policy version taken out, so that draft and active forms compare equal. */
export function sameObjectKey(href: string): string {
  return href.replace(/\/sec_policy\/(?:draft|active|\d+)\//, '/sec_policy/*/')
}
export type Json = Record<string, unknown>
