import type { Conversation, Endpoint } from '../model.js'
import type { Process } from './data/processes.js'
import type { Host } from './place-hosts.js'
import type { Random } from './random.js'

/** One end as a relation draws it. */
export interface Participant {
  endpoint: Endpoint
  /** Runs a VEN, so it reports. */
  managed: boolean
  /** The person whose name the end's processes have; otherwise the process's own user. */
  user: string | null
}

export type Party = (random: Random) => Participant

/** A kind of traffic: who talks to whom, how. Conversations are drawn from it. */
export interface Relation {
  /** The applications it is about, as `app|env`. */
  about: readonly string[]
  /** How often it is drawn, relative to the others. */
  weight: number
  from: Party
  to: Party
  proto: number
  /** Absent for protocols without ports. */
  port?: number
  /** With `port`, any port in between. */
  toPort?: number
  icmp?: { type: number; code: number }
  /** The process at the destination; null where nobody can know. */
  listener: Process | null
  /** The process at the source; several paths where people choose their program. */
  client: Process | readonly string[] | null
  weekly?: boolean
  transmission?: Conversation['transmission']
  /** Powers of ten that connections per day go up to. */
  busy: number
}

/** Any of the hosts. Throws RangeError when there are none: leave such relations out (`join`). */
export const anyOf =
  (hosts: readonly Host[]): Party =>
  (random) => {
    const { endpoint, managed, user } = random.pick(hosts)
    return { endpoint, managed, user }
  }

/** An address nobody has registered. */
export const anyAddress =
  (make: (random: Random) => { ip: string; fqdn?: string }): Party =>
  (random) => ({ endpoint: make(random), managed: false, user: null })

/** The relation between two groups of hosts, if both have any. */
export function join(from: readonly Host[], to: readonly Host[], relation: Omit<Relation, 'from' | 'to'>): Relation[] {
  return from.length === 0 || to.length === 0 ? [] : [{ ...relation, from: anyOf(from), to: anyOf(to) }]
}

/** Scales the weights so that they sum to `share`. */
export function scale(relations: readonly Relation[], share: number): Relation[] {
  const sum = relations.reduce((total, { weight }) => total + weight, 0)
  return relations.map((relation) => ({ ...relation, weight: (relation.weight / sum) * share }))
}
