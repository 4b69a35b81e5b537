import type { Conversation, Endpoint } from '../model.js'
import type { Process } from './data/processes.js'
import type { Host } from './place-hosts.js'
import type { Random } from './random.js'

/** One end of a conversation that was drawn from a relation. */
export interface Participant {
  endpoint: Endpoint
  /** True if the end runs a VEN and therefore reports its connections. */
  managed: boolean
  /** The person who runs the end's processes; null if the processes run as their usual user. */
  user: string | null
}

export type Party = (random: Random) => Participant

/** A kind of traffic: the ends that communicate, and how they do so. Conversations are drawn from relations. */
export interface Relation {
  /** The applications concerned, as `app|env`. */
  about: readonly string[]
  /** How often the relation is drawn, relative to other relations. */
  weight: number
  from: Party
  to: Party
  proto: number
  /** The port; undefined for protocols without ports. */
  port?: number
  /** The last port of a range that starts at `port`. */
  toPort?: number
  icmp?: { type: number; code: number }
  /** The process at the destination; null if no VEN could report it. */
  listener: Process | null
  /** The process at the source; several paths if people choose the program themselves. */
  client: Process | readonly string[] | null
  weekly?: boolean
  transmission?: Conversation['transmission']
  /** The exponent of the largest power of ten that the number of connections per day can reach. */
  busy: number
}

/** Draws one of the hosts. Throws RangeError if there are none; `join` omits relations without hosts. */
export const anyOf =
  (hosts: readonly Host[]): Party =>
  (random) => {
    const { endpoint, managed, user } = random.pick(hosts)
    return { endpoint, managed, user }
  }

/** Draws an address that belongs to no workload. */
export const anyAddress =
  (make: (random: Random) => { ip: string; fqdn?: string }): Party =>
  (random) => ({ endpoint: make(random), managed: false, user: null })

/** Creates the relation between two groups of hosts, unless one is empty. */
export function join(from: readonly Host[], to: readonly Host[], relation: Omit<Relation, 'from' | 'to'>): Relation[] {
  return from.length === 0 || to.length === 0 ? [] : [{ ...relation, from: anyOf(from), to: anyOf(to) }]
}

/** Scales the weights of the relations to the sum `share`. */
export function scale(relations: readonly Relation[], share: number): Relation[] {
  const sum = relations.reduce((total, { weight }) => total + weight, 0)
  return relations.map((relation) => ({ ...relation, weight: (relation.weight / sum) * share }))
}
