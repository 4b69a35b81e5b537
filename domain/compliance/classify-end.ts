import ipaddr from 'ipaddr.js'
import { ANY_IP_LIST_NAME, type IpList } from '../../schemas/pce/ip-list.js'
import type { FlowEnd } from '../traffic/flow-ends.js'
import { isAddress } from '../inventory/match-addresses.js'

/** All that the evaluators tell ends of traffic apart by. */
export interface EndClass {
  /** Has the labels that were asked for; over the whole estate: is a workload. */
  inScope: boolean
  /** application: has app and env label. half: one of them. */
  identity: 'application' | 'half' | 'none'
  env: string | null
  /** workload: known to the PCE. public: an address of the internet, or known by its name alone. */
  network: 'workload' | 'public' | 'local'
  /** In an IP list that somebody made for some addresses, not for all. */
  isListed: boolean
  managed: boolean
  /** Of a managed workload; null where it is not known, or nothing is enforced. */
  mode: string | null
  /** A ringfence's deny rule covers what comes in: from anywhere, or from managed workloads alone. */
  inboundDenied: 'any' | 'ams' | null
}

/** What classifying needs to know of the estate. */
export interface EndFacts {
  isInScope(end: FlowEnd): boolean
  /** Names of IP lists that single nothing out. */
  broadLists: ReadonlySet<string>
  /** Of a workload that is assessed, as the PCE has it now; others are told by their rows. */
  modeOf(workload: string): string | null
  inboundDenied(end: FlowEnd): EndClass['inboundDenied']
}

export function classifyEnd(end: FlowEnd, facts: EndFacts): EndClass {
  const { app, env } = end.labels
  const isWorkload = end.workload !== null
  return {
    inScope: facts.isInScope(end),
    identity:
      app !== undefined && env !== undefined ? 'application' : app === undefined && env === undefined ? 'none' : 'half',
    env: env ?? null,
    network: isWorkload ? 'workload' : isPublic(end) ? 'public' : 'local',
    isListed: end.lists.some((name) => !facts.broadLists.has(name)),
    managed: end.managed,
    mode: end.workload !== null && end.managed ? (facts.modeOf(end.workload) ?? end.mode) : null,
    inboundDenied: facts.inboundDenied(end),
  }
}

/** Nobody's label and nobody's IP list: who it is cannot be told. */
export const isUnidentified = ({ identity, isListed }: EndClass): boolean => identity === 'none' && !isListed

/** Address ranges that cannot be reached over the internet, in the words of ipaddr.js. Those reserved for examples count as reachable. */
const LOCAL_RANGES = new Set([
  'private',
  'loopback',
  'linkLocal',
  'carrierGradeNat',
  'multicast',
  'broadcast',
  'unspecified',
  'uniqueLocal',
])

function isPublic({ ip, fqdn }: FlowEnd): boolean {
  if (ip === null || !isAddress(ip)) return fqdn !== null
  return !LOCAL_RANGES.has(ipaddr.process(ip).range())
}

/** The shortest prefix of a network that still singles something out: 10.0.0.0/8 does. */
const SHORTEST_PREFIX = { ipv4: 8, ipv6: 16 } as const

/** Names of the IP lists that cover the internet, or so much of it that being in them approves nothing. */
export function findBroadLists(lists: readonly IpList[]): ReadonlySet<string> {
  return new Set([ANY_IP_LIST_NAME, ...lists.filter(isBroad).map(({ name }) => name)])
}

export function isBroad({ ip_ranges: ranges, fqdns }: IpList): boolean {
  return (
    (ranges ?? []).some(({ from_ip: from, to_ip: to, exclusion }) => exclusion !== true && isWide(from, to)) ||
    (fqdns ?? []).some(({ fqdn }) => fqdn === '*')
  )
}

function isWide(from: string, to: string | null | undefined): boolean {
  const [address = '', prefix] = from.split('/')
  if (!isAddress(address)) return false
  const first = ipaddr.parse(address)
  const shortest = SHORTEST_PREFIX[first.kind()]
  if (prefix !== undefined) return Number(prefix) < shortest
  if (to === undefined || to === null || !isAddress(to)) return false
  return leadingByte(ipaddr.parse(to)) - leadingByte(first) > 1
}

const leadingByte = (address: ipaddr.IPv4 | ipaddr.IPv6): number => address.toByteArray()[0] ?? 0
