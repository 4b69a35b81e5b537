import type { PceEvent } from '../schemas/pce/event.js'
import type { IpList } from '../schemas/pce/ip-list.js'
import type { Label } from '../schemas/pce/label.js'
import type { EnforcementBoundary, IngressService, RuleSet } from '../schemas/pce/rule-set.js'
import type { PolicyDecision } from '../schemas/pce/policy-decisions.js'
import type { PceObject } from '../schemas/pce/reference.js'
import type { Service } from '../schemas/pce/service.js'
import type { TrafficFlow } from '../schemas/pce/traffic.js'
import type { Workload } from '../schemas/pce/workload.js'

/** The options from which an estate is generated. Equal options give equal estates, byte for byte. */
export interface EstateOptions {
  seed: number
  workloads: number
  flows: number
  orgId: number
}

/**
 * A generated organisation right after its last provisioning. Each versioned object occurs once, with draft hrefs, and
 * is active in this form. `pending` lists later edits: drafts that differ from the active policy.
 */
export interface Estate {
  labels: Label[]
  workloads: Workload[]
  ipLists: IpList[]
  services: Service[]
  /** The rule sets of the estate, including their `rules` and `deny_rules`. */
  ruleSets: RuleSet[]
  /**
   * The recorded traffic. Every query iterates over the conversations anew, so a large estate can generate them on the
   * fly instead of storing them.
   */
  conversations: Iterable<Conversation>
  users: { href: string; username: string; full_name: string }[]
  /** The initial entries of the event log, oldest first; none by default. */
  events?: readonly PceEvent[]
  /** The containers, network devices and load balancers of the estate; none by default. */
  inventory?: Inventory
}

/**
 * The objects that the API cannot create because agents report them. They are grouped by the last segment of their
 * path, in the form in which the simulator stores them.
 */
export type Inventory = Readonly<Record<string, readonly PceObject[]>>

/** The source or destination of a conversation: a workload of the estate, or an address outside it. */
export type Endpoint = { workload: string; ip: string } | { ip: string; fqdn?: string }

/**
 * A recurring conversation. A traffic query combines its occurrences in the window into one row, so any window within
 * the estate's lifetime returns believable and reproducible traffic, whatever the current date is.
 */
export interface Conversation {
  src: Endpoint
  dst: Endpoint
  service: TrafficFlow['service']
  flowDirection: 'inbound' | 'outbound'
  /**
   * The first and last day of the conversation, in days since the Unix epoch. `lastDay` is null if the conversation is
   * still going on.
   */
  firstDay: number
  lastDay: number | null
  /** The interval of the occurrences in days: 1 is daily, 7 weekly. */
  everyDays: number
  /** The second of the day at which the conversation occurs. */
  secondOfDay: number
  /** The number of connections on each day on which the conversation occurs. */
  connectionsPerDay: number
  /** The numbers of bytes that the destination receives and sends on each day on which the conversation occurs. */
  bytesIn: number
  bytesOut: number
  state: 'active' | 'closed' | 'timed out' | 'snapshot' | 'new' | 'unknown' | 'incomplete'
  transmission?: 'unicast' | 'broadcast' | 'multicast'
  /** The ICMP type, which only conversations of protocols 1 and 58 have. Their `service.port` is undefined. */
  icmpType?: number
  icmpCode?: number
  /**
   * The decision that was recorded when the conversation took place, while the policy or the enforcement modes were
   * different. If absent, the active policy decides.
   */
  recorded?: PolicyDecision
}

/**
 * One version of the policy, with everything that its rules refer to. Hrefs are compared by object, not by version: the
 * `/draft/` and `/active/` forms of an href mean the same object (see `sameObjectKey`).
 */
export interface PolicyView {
  ruleSets: readonly RuleSet[]
  ipLists: ReadonlyMap<string, IpList>
  services: ReadonlyMap<string, Service>
  /** The label hrefs of each label group, including those of sub-groups. */
  labelGroups: ReadonlyMap<string, readonly string[]>
  /** The enforcement boundaries in this version of the policy; none by default. */
  boundaries?: readonly EnforcementBoundary[]
  /** The virtual services in this version of the policy; none by default. */
  virtualServices?: readonly BoundService[]
}

/** A virtual service with the workloads bound to it. Bindings are the same in every version of the policy. */
export interface BoundService {
  href: string
  labels: readonly string[]
  /** The services that the virtual service provides: service objects, or ports. */
  services: readonly IngressService[]
  bindings: readonly { workload: string; portOverrides: readonly PortOverride[] }[]
}

/** A port override for one workload: there, the virtual service uses `new_port` instead of its own port. */
export interface PortOverride {
  port?: number
  proto?: number
  new_port: number
  new_to_port?: number
}

/**
 * Replaces the policy version in an href with a placeholder, so that the draft and the active href of an object become
 * equal.
 */
export function sameObjectKey(href: string): string {
  return href.replace(/\/sec_policy\/(?:draft|active|\d+)\//, '/sec_policy/*/')
}
export type Json = Record<string, unknown>
