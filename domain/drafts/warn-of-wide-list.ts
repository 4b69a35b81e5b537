import type { IpList } from '../../schemas/pce/ip-list.js'
import type { Service } from '../../schemas/pce/service.js'
import { type Family, LAST, readRange } from '../policy/addresses.js'
import { type Interval, joinIntervals } from '../policy/classify-numbers.js'
import { holdAddresses } from '../policy/hold-addresses.js'
import { intersectIntervals, sizeOf, subtractIntervals } from '../policy/intervals.js'
import { TCP, UDP } from '../inventory/protocols.js'
import { type Steps, workInTurns } from '../text/pace-work.js'

type Ranges = Pick<IpList, 'ip_ranges'>

/** How much a set of IP lists covers of all addresses, or a service of all ports. */
export interface Width {
  /** The covered shares as messages write them, such as `75 % of IPv4 and 0 % of IPv6`. */
  shares: string
  /** `any`: practically any address, or practically every port. `many`: thousands of public addresses. */
  size: 'any' | 'many'
}

/** Minimum number of IPv4 addresses outside private ranges, or of IPv6 sites (/48 networks), for the size `many`. */
const MANY = 2_000n
const SITE = 2n ** 80n
const NOT_PUBLIC = {
  ipv4: [
    '10.0.0.0/8',
    '172.16.0.0/12',
    '192.168.0.0/16',
    '100.64.0.0/10',
    '169.254.0.0/16',
    '127.0.0.0/8',
    '224.0.0.0/4',
  ],
  ipv6: ['fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
}

/**
 * Measures how many addresses IP lists cover together, in the same way as a policy review (D92). At least half of IPv4,
 * or an eighth of IPv6 (the size of its public range), is practically any address (`any`). Thousands of addresses
 * outside private ranges count as `many`, because such lists hardly narrow down who is meant. Returns undefined if the
 * lists cover less.
 */
export function* measureLists(lists: readonly Ranges[]): Steps<Width | undefined> {
  const held = function* (family: Family): Steps<Interval[]> {
    const own: Interval[][] = []
    for (const list of lists) {
      yield
      own.push(holdAddresses(list, family).held)
    }
    return joinIntervals(own.flat())
  }
  const [ipv4, ipv6] = [yield* held('ipv4'), yield* held('ipv6')]
  const [four, six] = [sizeOf(ipv4), sizeOf(ipv6)]
  const shares = `${writeShare(four, LAST.ipv4 + 1n)} of IPv4 and ${writeShare(six, LAST.ipv6 + 1n)} of IPv6`
  if (2n * four > LAST.ipv4 || 8n * six > LAST.ipv6) return { shares, size: 'any' }
  const isMany = countPublic(ipv4, 'ipv4') >= MANY || countPublic(ipv6, 'ipv6') >= MANY * SITE
  return isMany ? { shares, size: 'many' } : undefined
}

const countPublic = (held: readonly Interval[], family: Family) =>
  sizeOf(
    subtractIntervals(held, joinIntervals(NOT_PUBLIC[family].flatMap((from) => readRange({ from_ip: from }) ?? []))),
  )

/** Warns of an IP list that covers practically any address or thousands of public addresses. */
export async function warnOfWideList(entries: Ranges, signal: AbortSignal): Promise<string[]> {
  const width = await workInTurns(measureLists([entries]), signal)
  if (width === undefined) return []
  return [
    width.size === 'any'
      ? `The list is any address in effect: it has ${width.shares}. A rule that allows it allows nearly everybody.`
      : `The list has thousands of addresses beyond private ranges: ${width.shares}. A rule that allows it allows whoever has one of them.`,
  ]
}

const LAST_PORT = 65_535n
export type Entry = Partial<Record<'port' | 'to_port' | 'proto' | 'process_name' | 'service_name', unknown>>
type Listed = Partial<Pick<Service, 'service_ports' | 'windows_services' | 'process_name'>>

/** Returns the ports of a service, each with the program or Windows service that restricts it. */
export const entriesOf = ({
  service_ports: ports,
  windows_services: windows,
  process_name: process,
}: Listed): Entry[] =>
  [...(ports ?? []), ...(windows ?? [])].map((entry) => ({
    ...entry,
    ...(process != null && { process_name: process }),
  }))

/**
 * Measures how many ports the given service entries cover together: at least half of the TCP ports or of the UDP ports
 * counts as practically every port. Entries for a program or a Windows service do not count. Returns undefined if they
 * cover fewer ports.
 */
export function measurePorts(entries: readonly Entry[]): Width | undefined {
  const sizeAt = (proto: number) => sizeOf(joinIntervals(entries.flatMap((entry) => portsOf(entry, proto))))
  const [tcp, udp] = [sizeAt(TCP), sizeAt(UDP)]
  if (2n * tcp <= LAST_PORT && 2n * udp <= LAST_PORT) return undefined
  const of = (size: bigint) => writeShare(size, LAST_PORT + 1n)
  return { shares: `${of(tcp)} of TCP and ${of(udp)} of UDP`, size: 'any' }
}

function portsOf({ port, to_port: toPort, proto, process_name: process, service_name: name }: Entry, of: number) {
  const isNamed = [process, name].some((text) => typeof text === 'string' && text !== '')
  const isMeant = proto === undefined || proto === null || Number(proto) === -1 || Number(proto) === of
  if (isNamed || !isMeant) return []
  if (port === undefined || port === null || Number(port) === -1) return [{ from: 0n, to: LAST_PORT }]
  const [from, to] = [Number(port), Number(toPort ?? port)]
  const isRange = Number.isInteger(from) && Number.isInteger(to)
  return isRange ? intersectIntervals([{ from: BigInt(from), to: BigInt(to) }], [{ from: 0n, to: LAST_PORT }]) : []
}

/** Warns of a service that covers practically every port. */
export function warnOfWideService(service: Listed): string[] {
  const width = measurePorts(entriesOf(service))
  if (width === undefined) return []
  return [
    `The service is every port in effect: it has ${width.shares}. A rule that allows it allows nearly everything.`,
  ]
}

/**
 * Formats a share as a percentage with one decimal. `0 %` and `100 %` are used only for exactly nothing and everything.
 */
function writeShare(size: bigint, whole: bigint): string {
  if (size === 0n || size === whole) return size === 0n ? '0 %' : '100 %'
  const tenths = Number((size * 1000n) / whole)
  return tenths === 0 ? 'less than 0.1 %' : `${tenths / 10} %`
}
