import {
  dashed,
  endColumn,
  labelColumn,
  portColumn,
  protocolColumn,
  textColumn,
  wholeEndColumn,
  type Side,
} from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { tellingLists, type FlowEnd } from './flow-ends.js'
import { groupWithParts, type Parts } from './group-rows.js'
import { createMeasures, firstByName, type Measures } from './group-tables.js'

/** Maximum number of process names shown per row. */
const MOST_PROCESSES = 5

/**
 * Maximum number of decisions shown per row. There are four decisions today, so the limit matters only if a PCE adds
 * more.
 */
const MOST_DECISIONS = 10

/** The fields that the rows of all lists of unlabelled traffic have in common. */
interface UnlabelledTraffic extends Pick<Measures, 'connections' | 'first_detected' | 'last_detected'> {
  port: number | null
  /** The IANA number of the protocol. */
  proto: number | null
  /** Number of connections for each policy decision. */
  policy_decisions: Record<string, number>
  /** The busiest processes, named as the reporting end named them; absent if there are none. */
  processes?: string[]
}

/**
 * An address without an app label, and the application with which it exchanges traffic. `env` is `-` if the application
 * has no env label.
 */
export interface UnlabelledPeer extends UnlabelledAddress, UnlabelledTraffic {
  ip: string
  app: string
  env: string
}

/**
 * Traffic between a source and a destination neither of which has an app label. If the PCE knows no name for an end,
 * the field for its name is absent.
 */
export interface UnlabelledPair extends UnlabelledTraffic {
  src_ip: string
  src_kind: UnlabelledKind
  src_name?: string
  dst_ip: string
  dst_kind: UnlabelledKind
  dst_name?: string
}

/** The busiest rows of a list, and the total number of rows that have at least the required number of connections. */
interface UnlabelledList<T> {
  total: number
  rows: T[]
}

/**
 * The peers that have no app label. `distinctIps` is the number of distinct addresses in all rows with at least the
 * required number of connections, including rows that are not shown.
 */
interface UnlabelledPeers extends UnlabelledList<UnlabelledPeer> {
  distinctIps: number
}

/**
 * The lists into which traffic rows are sorted. The index is 0 if both ends have an app label, 1 if only the source
 * lacks one, 2 if only the destination lacks one, and 3 if both lack one.
 */
const SECTIONS = ['both_labelled', 'sources', 'destinations', 'both_unlabelled'] as const
type ConnectionsBySection = Record<(typeof SECTIONS)[number], number>

/**
 * Divides traffic rows into lists, depending on whether the source, the destination or both lack an app label (T13).
 */
export interface UnlabelledTrafficFinder {
  add(row: FlowRow): void
  /**
   * Returns the traffic in which one end has an app label and the other has none. If `side` is `src`, the source has
   * none; if it is `dst`, the destination.
   */
  peers(side: Side, limit: number, minConnections: number): UnlabelledPeers
  /** Returns the traffic in which neither end has an app label. */
  pairs(limit: number, minConnections: number): UnlabelledList<UnlabelledPair>
  /** Returns, for each list, the number of connections of all rows added to it. */
  connections(): ConnectionsBySection
}

export function createUnlabelledTrafficFinder(encoder: FlowEncoder): UnlabelledTrafficFinder {
  const app = { src: labelColumn(encoder, 'src', 'app'), dst: labelColumn(encoder, 'dst', 'app') }
  const ip = (side: Side) => endColumn(encoder, side, (end) => end.ip)
  const service = { port: portColumn, proto: protocolColumn }
  const inside = { decision: dashed(textColumn(encoder, 'decision')), process: textColumn(encoder, 'process') }
  const peersOn = (side: Side) => {
    const other = side === 'src' ? 'dst' : 'src'
    return groupWithParts(
      { ip: ip(side), app: dashed(app[other]), env: dashed(labelColumn(encoder, other, 'env')), ...service },
      { end: wholeEndColumn(encoder, side), ...inside },
    )
  }
  const peers = { src: peersOn('src'), dst: peersOn('dst') }
  const pairs = groupWithParts(
    { src_ip: ip('src'), dst_ip: ip('dst'), ...service },
    { src: wholeEndColumn(encoder, 'src'), dst: wholeEndColumn(encoder, 'dst'), ...inside },
  )
  const sums = createMeasures()

  return {
    add(row) {
      const section = (app.src.code(row) === 0 ? 1 : 0) + (app.dst.code(row) === 0 ? 2 : 0)
      sums.add(section, row)
      if (section === 1) peers.src.add(row)
      else if (section === 2) peers.dst.add(row)
      else if (section === 3) pairs.add(row)
    },
    peers(side, limit, minConnections) {
      const { total, groups } = peers[side].busiest(limit, minConnections)
      return {
        total,
        distinctIps: peers[side].distinct('ip', minConnections),
        rows: groups.map(({ keys: { ip, app, env, port, proto }, measures, parts }) => ({
          ip: ip ?? '-',
          ...describeUnlabelled(parts.end.values()).facts,
          app,
          env,
          ...showTraffic({ port, proto }, measures, parts),
        })),
      }
    },
    pairs(limit, minConnections) {
      const { total, groups } = pairs.busiest(limit, minConnections)
      return {
        total,
        rows: groups.map(({ keys: { src_ip: from, dst_ip: to, port, proto }, measures, parts }) => {
          const src = describeUnlabelled(parts.src.values())
          const dst = describeUnlabelled(parts.dst.values())
          return {
            src_ip: from ?? '-',
            src_kind: src.kind,
            ...(src.name !== undefined && { src_name: src.name }),
            dst_ip: to ?? '-',
            dst_kind: dst.kind,
            ...(dst.name !== undefined && { dst_name: dst.name }),
            ...showTraffic({ port, proto }, measures, parts),
          }
        }),
      }
    },
    connections: () =>
      Object.fromEntries(SECTIONS.map((name, at) => [name, sums.connections(at)])) as ConnectionsBySection,
  }
}

function showTraffic(
  service: Pick<UnlabelledTraffic, 'port' | 'proto'>,
  { connections, first_detected: first, last_detected: last }: Measures,
  { decision, process }: { decision: Parts<string>; process: Parts<string | null> },
): UnlabelledTraffic {
  const processes = process.busiest(MOST_PROCESSES).flatMap(({ value }) => value ?? [])
  return {
    ...service,
    connections,
    policy_decisions: Object.fromEntries(
      decision.busiest(MOST_DECISIONS).map(({ value, connections: count }) => [value, count]),
    ),
    ...(processes.length > 0 && { processes }),
    first_detected: first,
    last_detected: last,
  }
}

/** Maximum number of names shown per address. */
const NAMES_SHOWN = 10

/**
 * The possible categories of an address without an app label: a workload that needs labels, an address in a known IP
 * list, or an unknown address.
 */
export const UNLABELLED_KINDS = ['unlabelled_workload', 'ip_list', 'unknown_ip'] as const
type UnlabelledKind = (typeof UNLABELLED_KINDS)[number]

/** The description of an address without an app label in answers. Facts that the PCE does not know are absent. */
interface UnlabelledAddress {
  kind: UnlabelledKind
  /** The name of a workload, if it differs from the host name. */
  name?: string
  hostname?: string
  fqdn?: string
  /** The names of all IP lists that contain the address, except the built-in Any list. */
  ip_lists?: string[]
}

/**
 * The description of an address in two forms. `name` is the single name to show: that of the workload, or else the
 * FQDN, or else the names of the IP lists. `facts` contains all names.
 */
interface Description {
  kind: UnlabelledKind
  name?: string
  facts: UnlabelledAddress
}

/**
 * Describes an address from everything that traffic rows report about it. The same address may be a workload in one row
 * and unknown in another, or have several names. Being a workload, managed or not, takes precedence over being in an IP
 * list (T13).
 */
function describeUnlabelled(ends: readonly FlowEnd[]): Description {
  const lists = [...new Set(ends.flatMap(tellingLists))].sort()
  const hostname = joinNames(ends.flatMap((end) => end.hostname ?? []))
  const fqdn = joinNames(ends.flatMap((end) => end.fqdn ?? []))
  const isWorkload = ends.some(({ workload }) => workload !== null)
  const kind = isWorkload ? 'unlabelled_workload' : lists.length > 0 ? 'ip_list' : 'unknown_ip'
  const own = joinNames(ends.flatMap((end) => end.name ?? []))
  const name = own || fqdn || joinNames(lists)
  return {
    kind,
    ...(name !== '' && { name }),
    facts: {
      kind,
      ...(own !== hostname && { name: own }),
      ...(hostname !== '' && { hostname }),
      ...(fqdn !== '' && { fqdn }),
      ...(lists.length > 0 && { ip_lists: lists }),
    },
  }
}

/** Joins the alphabetically first names into one string, followed by the number of names left out. */
function joinNames(texts: readonly string[]): string {
  const names = [...new Set(texts)]
  const first = firstByName(names, NAMES_SHOWN).join(', ')
  return names.length > NAMES_SHOWN ? `${first} and ${names.length - NAMES_SHOWN} more` : first
}
