import type {
  FlowNode,
  TrafficFlow,
  TrafficQuery,
  TrafficSelector,
  TrafficServiceFilter,
} from '../../schemas/pce/traffic.js'
import { POLICY_DECISIONS, type PolicyDecision } from '../../schemas/pce/policy-decisions.js'
import { TCP, UDP } from '../inventory/protocols.js'

/** A sample of a query's rows, counted by each property by which the query could be divided. */
export interface TrafficSample {
  readonly add: (flow: TrafficFlow) => void
  /**
   * Divides a query into at most `most` queries with about the same number of rows each. Each row belongs to exactly
   * one of them. Returns null if every possible division would leave more than nine in ten rows in one query.
   */
  divide(query: TrafficQuery, most: number): TrafficQuery[] | null
}

/** Maximum number of alternatives on one side of a query, and maximum number of its service filters. */
const MOST_ALTERNATIVES = 1000
/**
 * If one of the queries after a division would still have more than this share of the rows, the division is useless.
 */
const LARGEST_SHARE = 0.9
/**
 * Maximum number of queries that one division creates. With more, a division could use up all parts that are still
 * allowed; with fewer, the resulting queries would soon have to be divided again.
 */
const AT_ONCE = 4

type Side = 'sources' | 'destinations'

/** One way to divide a query: the resulting queries, and the share of the sample's rows in the largest of them. */
interface Division {
  queries: TrafficQuery[]
  largest: number
}

export function sampleTraffic(): TrafficSample {
  let size = 0
  const decisions = new Map<string, number>()
  /** Row counts by protocol and port, combined into one number: the protocol times PORTS, plus the port. */
  const services = new Map<number, number>()
  /** Row counts by side, label key and label href. */
  const labels = {
    sources: new Map<string, Map<string, number>>(),
    destinations: new Map<string, Map<string, number>>(),
  }

  return {
    add({ src, dst, service, policy_decision: decision }) {
      size++
      count(decisions, decision)
      const { proto, port } = service
      if (typeof proto === 'number') {
        if (!hasPorts(proto)) count(services, proto * PORTS)
        else if (typeof port === 'number') count(services, proto * PORTS + port)
      }
      for (const [side, end] of [
        ['sources', src],
        ['destinations', dst],
      ] as const)
        for (const { href, key } of labelsOf(end)) {
          if (typeof href !== 'string' || typeof key !== 'string') continue
          const known = labels[side].get(key) ?? new Map<string, number>()
          labels[side].set(key, known)
          count(known, href)
        }
    },
    divide(query, most) {
      const pieces = Math.min(most, AT_ONCE)
      const divisions = [
        byDecision(query, decisions, size, pieces),
        byService(query, services, size, pieces),
        ...(['destinations', 'sources'] as const).flatMap((side) =>
          [...labels[side].values()].map((weights) => byLabel(query, side, weights, size, pieces)),
        ),
      ].filter((one) => one !== null && one.queries.length > 1 && one.largest <= LARGEST_SHARE) as Division[]
      // If several divisions are equally good, the first one is used. The list begins with the division that costs the
      // PCE least.
      return divisions.toSorted((a, b) => a.largest - b.largest)[0]?.queries ?? null
    },
  }
}

const PORTS = 65_536

const hasPorts = (proto: number) => proto === TCP || proto === UDP

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

const labelsOf = ({ workload }: FlowNode): readonly { href?: unknown; key?: unknown }[] => workload?.labels ?? []

/**
 * Divides a query by policy decision. A row has exactly one of four decisions (P52), so each row belongs to one query.
 */
function byDecision(query: TrafficQuery, seen: ReadonlyMap<string, number>, size: number, pieces: number): Division {
  const asked: readonly PolicyDecision[] = query.policy_decisions.length > 0 ? query.policy_decisions : POLICY_DECISIONS
  const groups = share(
    asked.map((decision) => ({ item: decision, weight: seen.get(decision) ?? 0 })),
    pieces,
  )
  return {
    queries: groups.map(({ items }) => ({ ...query, policy_decisions: items })),
    largest: Math.max(...groups.map(({ weight }) => weight)) / size,
  }
}

/**
 * Divides a query by services: ranges of TCP and UDP ports, and other protocols as a whole, in ascending order. The
 * last query covers all remaining services.
 */
function byService(
  query: TrafficQuery,
  seen: ReadonlyMap<number, number>,
  size: number,
  pieces: number,
): Division | null {
  // A filter with a port but no protocol cannot be combined with a protocol that has no ports.
  const isPortAlone = query.services.include.some(({ port, proto }) => port !== undefined && proto === undefined)
  const places = [...seen]
    .filter(([place]) => !isPortAlone || hasPorts(Math.floor(place / PORTS)))
    .sort(([a], [b]) => a - b)
  const groups: { from: number; to: number; weight: number }[] = []
  let [weight, from] = [0, 0]
  let left = size
  for (const [place, rows] of places) {
    weight += rows
    if (groups.length === pieces - 1 || weight < left / (pieces - groups.length)) continue
    groups.push({ from, to: place, weight })
    left -= weight
    weight = 0
    from = place + 1
  }
  if (groups.length === 0) return null
  const filters = groups.map(({ from: first, to }) => rangesBetween(first, to, places))
  const others = { ...query.services, exclude: [...query.services.exclude, ...filters.flat()] }
  const queries = filters.flatMap((ranges) => {
    const include = within(query.services.include, ranges)
    return include.length === 0 ? [] : [{ ...query, services: { ...query.services, include } }]
  })
  if (others.exclude.length > MOST_ALTERNATIVES) return null
  return {
    queries: [...queries, { ...query, services: others }],
    largest: Math.max(left, ...groups.map((group) => group.weight)) / size,
  }
}

/**
 * Builds service filters for the protocols and ports in the sample that lie between two places. A place is a protocol
 * and a port combined into one number.
 */
function rangesBetween(from: number, to: number, seen: readonly (readonly [number, number])[]): TrafficServiceFilter[] {
  const [first, last] = [Math.floor(from / PORTS), Math.floor(to / PORTS)]
  const protocols = new Set(seen.map(([place]) => Math.floor(place / PORTS)))
  return [...protocols]
    .filter((proto) => proto >= first && proto <= last)
    .flatMap((proto) => {
      if (!hasPorts(proto)) return [{ proto }]
      const port = proto === first ? from % PORTS : 0
      const toPort = proto === last ? to % PORTS : PORTS - 1
      return [{ proto, port, to_port: toPort }]
    })
}

/** Intersects service filters with ranges. An empty list of filters stands for everything. */
function within(
  filters: readonly TrafficServiceFilter[],
  ranges: readonly TrafficServiceFilter[],
): TrafficServiceFilter[] {
  if (filters.length === 0) return [...ranges]
  return filters.flatMap((filter) =>
    ranges.flatMap((range): TrafficServiceFilter[] => {
      if (filter.proto !== undefined && filter.proto !== range.proto) return []
      const { port, to_port: toPort, ...rest } = filter
      if (range.port === undefined || range.port === null) return [{ ...filter, proto: range.proto }]
      const first = Math.max(port ?? 0, range.port)
      const last = Math.min(port === undefined ? PORTS - 1 : (toPort ?? port ?? 0), range.to_port ?? range.port)
      return first > last ? [] : [{ ...rest, proto: range.proto, port: first, to_port: last }]
    }),
  )
}

/**
 * Divides a query by the labels with one key on one side. A workload has at most one label per key (P16). The last
 * query covers the ends that have none of the labels in the other queries. Returns null if the query already filters by
 * this key, because it is not known how a PCE combines two values of one key.
 */
function byLabel(
  query: TrafficQuery,
  side: Side,
  seen: ReadonlyMap<string, number>,
  size: number,
  pieces: number,
): Division | null {
  const { include, exclude } = query[side]
  const blocks = include.length === 0 ? [[]] : include
  if (
    blocks.some((block) =>
      block.some(
        ({ label, label_group: group }) => group !== undefined || (label !== undefined && seen.has(label.href)),
      ),
    )
  )
    return null
  const items = [...seen].map(([item, weight]) => ({ item, weight }))
  const none = size - items.reduce((sum, { weight }) => sum + weight, 0)
  const [rest, ...groups] = share([...items, { item: null, weight: none }], pieces).toSorted(
    (a, b) => Number(b.items.includes(null)) - Number(a.items.includes(null)),
  )
  if (rest === undefined || groups.length === 0) return null
  const narrow = (conditions: TrafficQuery['sources']) => ({ ...query, [side]: conditions })
  const selectors = groups.map(({ items: hrefs }) => hrefs.map((href): TrafficSelector => ({ label: { href: href! } })))
  const alternatives = Math.max(...selectors.map((list) => list.length * blocks.length))
  if (alternatives > MOST_ALTERNATIVES || exclude.length + selectors.flat().length > MOST_ALTERNATIVES) return null
  return {
    queries: [
      ...selectors.map((list) =>
        narrow({ include: blocks.flatMap((block) => list.map((label) => [...block, label])), exclude }),
      ),
      narrow({ include, exclude: [...exclude, ...selectors.flat()] }),
    ],
    largest: Math.max(rest.weight, ...groups.map(({ weight }) => weight)) / size,
  }
}

/**
 * Distributes items over at most `pieces` groups of about equal weight. Items are placed from heaviest to lightest,
 * each into the group that is lightest at that point. Empty groups are dropped.
 */
function share<T>(items: readonly { item: T; weight: number }[], pieces: number): { items: T[]; weight: number }[] {
  const groups = Array.from({ length: pieces }, () => ({ items: [] as T[], weight: 0 }))
  for (const { item, weight } of items.toSorted((a, b) => b.weight - a.weight)) {
    const lightest = groups.reduce((best, group) => (group.weight < best.weight ? group : best))
    lightest.items.push(item)
    lightest.weight += weight
  }
  return groups.filter((group) => group.items.length > 0)
}
