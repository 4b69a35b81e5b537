import type { Conversation, Endpoint } from '../model.js'
import type { Process } from './data/processes.js'
import type { Host } from './place-hosts.js'
import type { Random } from './random.js'

/** The source or the destination of one conversation, picked at random for a relation (a type of traffic). */
export interface Participant {
  endpoint: Endpoint
  /** True if the host runs a VEN and therefore reports its connections. */
  managed: boolean
  /** The person who runs the process on the host; null if it runs as its usual user. */
  user: string | null
}

export type Party = (random: Random) => Participant

/**
 * One type of traffic: the hosts or addresses that communicate, and the service that they use. Random conversations are
 * generated from relations.
 */
export interface Relation {
  /** The applications to which this traffic belongs, as `app|env`. */
  about: readonly string[]
  /** The frequency with which this relation is chosen for the next conversation, relative to other relations. */
  weight: number
  from: Party
  to: Party
  proto: number
  /** The destination port; undefined for protocols without ports. */
  port?: number
  /** The last port of the range that starts at `port`; undefined for a single port. */
  toPort?: number
  icmp?: { type: number; code: number }
  /** The process at the destination; null if no VEN could report it. */
  listener: Process | null
  /** The process at the source, or a list of programs' paths from which the person at the host chooses one. */
  client: Process | readonly string[] | null
  weekly?: boolean
  transmission?: Conversation['transmission']
  /** The number of connections per day, as an exponent of ten: a conversation has at most about 10^`busy` of them. */
  busy: number
}

/**
 * Creates a function that picks one of the hosts at random. The picker throws RangeError if there are no hosts; `join`
 * creates no relation if there are none.
 */
export const anyOf =
  (hosts: readonly Host[]): Party =>
  (random) => {
    const { endpoint, managed, user } = random.pick(hosts)
    return { endpoint, managed, user }
  }

/** Creates a function that generates a random address which belongs to no workload. */
export const anyAddress =
  (make: (random: Random) => { ip: string; fqdn?: string }): Party =>
  (random) => ({ endpoint: make(random), managed: false, user: null })

/** Returns a list with the relation between two groups of hosts. The list is empty if one of the groups is empty. */
export function join(from: readonly Host[], to: readonly Host[], relation: Omit<Relation, 'from' | 'to'>): Relation[] {
  return from.length === 0 || to.length === 0 ? [] : [{ ...relation, from: anyOf(from), to: anyOf(to) }]
}

/** Scales the weights of the relations so that their sum is `share`. */
export function scale(relations: readonly Relation[], share: number): Relation[] {
  const sum = relations.reduce((total, { weight }) => total + weight, 0)
  return relations.map((relation) => ({ ...relation, weight: (relation.weight / sum) * share }))
}
