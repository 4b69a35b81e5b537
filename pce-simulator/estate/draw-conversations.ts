import type { Conversation, Endpoint } from '../model.js'
import type { Process } from './data/processes.js'
import { createWeightedDraw, type Random } from './random.js'
import type { Participant, Relation } from './relation.js'

/** 1 January 2026, in days since the epoch. No traffic was observed earlier. */
export const HISTORY_STARTS = 20454

/** Number of consecutive failed attempts to pick a new conversation after which a relation counts as exhausted. */
const PATIENCE = 30

const STATES: readonly Conversation['state'][] = [
  'closed',
  'closed',
  'closed',
  'closed',
  'active',
  'active',
  'timed out',
  'new',
  'unknown',
  'incomplete',
]

/**
 * Generates random conversations until a query without filters would return exactly `rows` rows. First, one
 * conversation is generated from each relation (type of traffic), in order; after that, relations are chosen at random
 * by their weights. A connection between two managed hosts is often reported by both hosts and then makes two rows. A
 * conversation that ended and later started again makes no additional row.
 *
 * At least one relation must have an unlimited number of conversations. Throws RangeError if all relations are
 * exhausted before there are enough rows.
 */
export function drawConversations(random: Random, relations: readonly Relation[], rows: number): Conversation[] {
  const conversations: Conversation[] = []
  const seen = new Set<string>()
  const share = createSharing()
  const add = (conversation: Conversation): Conversation | null => {
    const { key, shared } = share(conversation)
    if (seen.has(key)) return null
    seen.add(key)
    conversations.push(shared)
    return shared
  }
  const drawFrom = (relation: Relation): boolean => {
    const [first, second] = observe(random, relation)
    const added = first === undefined ? null : add(first)
    if (added === null) return false
    if (second !== undefined && seen.size < rows) add(second)
    if (added.lastDay !== null && random.chance(0.3)) conversations.push(resume(random, added, added.lastDay))
    return true
  }

  for (const relation of relations) if (seen.size < rows) drawFrom(relation)
  const choice = createWeightedDraw(relations.map(({ weight }) => weight))
  const misses = relations.map(() => 0)
  while (seen.size < rows) {
    const index = choice.draw(random)
    if (index === null) throw new RangeError(`the estate is too small for ${rows} flows`)
    misses[index] = drawFrom(relations[index]!) ? 0 : (misses[index] ?? 0) + 1
    if (misses[index] === PATIENCE) choice.remove(index)
  }
  return conversations
}

/**
 * Generates one random conversation and returns it as one row, or as two rows if both hosts report it. A host without a
 * VEN reports nothing; if neither host has a VEN, a network device reports the conversation. Returns no row if the same
 * host was picked as source and destination.
 */
function observe(random: Random, relation: Relation): Conversation[] {
  const [from, to] = [relation.from(random), relation.to(random)]
  if (from.endpoint === to.endpoint) return []
  const { proto, port, toPort, icmp, transmission } = relation
  const chosen = port !== undefined && toPort !== undefined ? random.integer(port, toPort) : port
  const connectionsPerDay = Math.floor(2 + 10 ** (random.next() * relation.busy))
  const anonymous = random.chance(0.06)
  const report = (
    flowDirection: Conversation['flowDirection'],
    reporter: Participant,
    process: Relation['client'],
  ): Conversation => ({
    src: from.endpoint,
    dst: to.endpoint,
    service: {
      ...(chosen === undefined ? {} : { port: chosen }),
      proto,
      ...(anonymous || process === null || !reporter.managed ? {} : describeProcess(random, process, reporter)),
    },
    flowDirection,
    ...schedule,
    connectionsPerDay,
    bytesIn: connectionsPerDay * size.in,
    bytesOut: connectionsPerDay * size.out,
    state: proto === 6 ? state : 'unknown',
    ...(transmission === undefined ? {} : { transmission }),
    ...(icmp === undefined ? {} : { icmpType: icmp.type, icmpCode: icmp.code }),
  })
  const schedule = drawSchedule(random, relation.weekly === true)
  const size = { in: random.integer(200, 4000), out: random.integer(300, 60_000) }
  const state = random.pick(STATES)
  const inbound = () => report('inbound', to, relation.listener)
  const outbound = () => report('outbound', from, relation.client)
  if (!from.managed) return [inbound()]
  if (!to.managed) return [outbound()]
  const order = random.chance(0.7) ? [inbound, outbound] : [outbound, inbound]
  return order.slice(0, random.chance(0.35) ? 2 : 1).map((observed) => observed())
}

function describeProcess(random: Random, process: Process | readonly string[], reporter: Participant) {
  const { path, user, service }: Process = 'path' in process ? process : { path: random.pick(process), user: '' }
  const name = reporter.user !== null && (user === '' || service === undefined) ? reporter.user : user
  return {
    process_name: path,
    ...(service === undefined ? {} : { windows_service_name: service }),
    ...(name === '' ? {} : { user_name: name }),
  }
}

/**
 * Picks the dates and the time of day of a conversation at random. Most conversations have taken place daily since
 * January, some take place weekly, some started later, and one in twenty has ended since.
 */
function drawSchedule(random: Random, weekly: boolean) {
  const firstDay =
    HISTORY_STARTS +
    (random.chance(0.75) ? random.integer(0, 6) : random.chance(0.8) ? random.integer(7, 60) : random.integer(61, 180))
  const ended = random.chance(0.05)
  return {
    firstDay,
    lastDay: ended ? Math.max(firstDay + 7, HISTORY_STARTS + random.integer(60, 300)) : null,
    everyDays: weekly || random.chance(0.06) ? 7 : 1,
    secondOfDay: random.integer(0, 86_399),
  }
}

const resume = (random: Random, conversation: Conversation, endedOn: number): Conversation => ({
  ...conversation,
  firstDay: endedOn + random.integer(3, 20),
  lastDay: null,
  secondOfDay: random.integer(0, 86_399),
})

/**
 * Creates a function that replaces all equal endpoints, and all equal services, with one shared object each. Sharing
 * saves most of an estate's memory. The function also gives each conversation a key; conversations that a query
 * combines into one row have the same key.
 */
function createSharing(): (conversation: Conversation) => { key: string; shared: Conversation } {
  const ends = createPool<Endpoint>()
  const services = createPool<Conversation['service']>()
  return (conversation) => {
    const { flowDirection } = conversation
    const src = ends(endpointKey(conversation.src), conversation.src)
    const dst = ends(endpointKey(conversation.dst), conversation.dst)
    const { proto, port, process_name, windows_service_name, user_name } = conversation.service
    const words = [proto, port, process_name, windows_service_name, user_name].join('\n')
    const service = services(words, conversation.service)
    return {
      key: `${src.number} ${dst.number} ${service.number} ${flowDirection}`,
      shared: { ...conversation, src: src.value, dst: dst.value, service: service.value },
    }
  }
}

function createPool<T>(): (key: string, value: T) => { number: number; value: T } {
  const pool = new Map<string, { number: number; value: T }>()
  return (key, value) => {
    let entry = pool.get(key)
    if (entry === undefined) pool.set(key, (entry = { number: pool.size, value }))
    return entry
  }
}

const endpointKey = (endpoint: Endpoint) =>
  'workload' in endpoint ? endpoint.workload : `${endpoint.ip} ${endpoint.fqdn ?? ''}`
