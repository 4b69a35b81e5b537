import ipaddr from 'ipaddr.js'
import type { IpList, IpRange } from '../../schemas/pce/ip-list.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { joinIntervals } from './classify-numbers.js'
import { compileName } from './compile-name.js'
import { isWithin } from './intervals.js'
import { unknown, type Answer } from './three-valued.js'

/**
 * The class of an address for the purposes of segmentation. `private`: used inside organisations and never routed on
 * the internet. `special`: loopback, multicast, broadcast, or not a host address at all. `public`: every other address.
 * Addresses reserved for documentation or future use count as public: nothing says that they are local, and a
 * compliance control must not pass because of such an address (P61).
 */
export type AddressClass = 'public' | 'private' | 'special'

/**
 * The class of each named address range of ipaddr.js. A range that is missing from this table has the class `public`.
 */
const CLASS_OF: Readonly<Record<string, AddressClass>> = {
  private: 'private',
  carrierGradeNat: 'private',
  uniqueLocal: 'private',
  linkLocal: 'private',
  deprecatedSiteLocal: 'private',
  loopback: 'special',
  multicast: 'special',
  broadcast: 'special',
  unspecified: 'special',
  discard: 'special',
}

/**
 * Returns the class of an address, or null if the string is not an address. An IPv4-mapped IPv6 address is classified
 * by its IPv4 address.
 */
export function classifyAddress(ip: string): AddressClass | null {
  return isAddress(ip) ? (CLASS_OF[ipaddr.process(ip).range()] ?? 'public') : null
}

/**
 * Returns an address in canonical form if it identifies a single machine. Returns null for a loopback, multicast,
 * broadcast or unspecified address, for a link-local address (which many machines may have, each in its own network),
 * and for a string that is not an address.
 */
export function machineAddress(ip: string): string | null {
  if (!isAddress(ip)) return null
  const address = ipaddr.process(ip)
  const range = address.range()
  return CLASS_OF[range] === 'special' || range === 'linkLocal' ? null : address.toString()
}

export type Family = 'ipv4' | 'ipv6'

/**
 * For each address family, whether an IP list contains all addresses of the family (`yes`), none of them (`no`), or
 * whether this is undecided.
 */
export type Families = Readonly<Record<Family, Answer>>

/** A range of addresses of one family, with both ends as numbers. Both ends are included. */
export interface Range {
  family: Family
  from: bigint
  to: bigint
  exclusion: boolean
}

/** The last address of each family as a number. The first address is 0. */
export const LAST = { ipv4: 2n ** 32n - 1n, ipv6: 2n ** 128n - 1n }

/**
 * Determines, for each address family, whether an IP list contains all addresses of the family or none of them. The
 * answer is undecided if the list has no ranges, or has unreadable ranges, gaps or exclusions.
 */
export const coverFamilies = ({ ip_ranges: listed }: Pick<IpList, 'ip_ranges'>): Families =>
  familiesOf((listed ?? []).map(readRange))

function familiesOf(ranges: readonly (Range | null)[]): Families {
  const isOpen = ranges.length === 0 || ranges.includes(null)
  const of = (family: Family): Answer => {
    const own = ranges.filter((range): range is Range => range?.family === family)
    if (own.some(({ exclusion }) => exclusion)) return unknown('ip_list')
    if (own.some(({ from, to }) => from === 0n && to === LAST[family])) return 'yes'
    return own.length > 0 || isOpen ? unknown('ip_list') : 'no'
  }
  return { ipv4: of('ipv4'), ipv6: of('ipv6') }
}

/** The properties of one end of a connection that decide whether an IP list contains it. Null means unknown. */
export interface Addressed {
  readonly ip: string | null
  readonly fqdn: string | null
}

/**
 * Returns a function that tests whether an IP list contains one end of a connection. The list contains the end if one
 * of its ranges includes the address and no exclusion removes it, or if one of its domain names matches. A domain name
 * may belong to any address, so for a list with domain names the answer is never a certain 'no'.
 */
export function compileIpList(list: Pick<IpList, 'ip_ranges' | 'fqdns'>): (end: Addressed) => Answer {
  const ranges = (list.ip_ranges ?? []).map(readRange)
  const isReadable = !ranges.includes(null)
  const patterns = (list.fqdns ?? []).map(({ fqdn }) => fqdn.toLowerCase())
  const names = new Set(patterns)
  const wide = patterns.filter((pattern) => pattern.includes('*')).map(compileName)
  const beside: Answer = names.size > 0 ? unknown('domain_name') : ranges.length === 0 ? unknown('ip_list') : 'no'
  const families = familiesOf(ranges)
  const of = (family: Family, exclusion: boolean) =>
    joinIntervals(ranges.flatMap((one) => (one?.family === family && one.exclusion === exclusion ? [one] : [])))
  const held = { ipv4: of('ipv4', false), ipv6: of('ipv6', false) }
  const taken = { ipv4: of('ipv4', true), ipv6: of('ipv6', true) }
  return ({ ip, fqdn }) => {
    const isNamed = () => fqdn !== null && (names.has(fqdn.toLowerCase()) || wide.some((matches) => matches(fqdn)))
    if (!isReadable) return unknown('ip_list')
    const address = ip === null ? null : readAddress(ip)
    if (address === null) {
      if (families.ipv4 === 'yes' && families.ipv6 === 'yes') return 'yes'
      return isNamed() ? 'yes' : unknown('address')
    }
    const { family, value } = address
    // It is not documented whether a matching domain name takes precedence over an exclusion.
    if (isWithin(taken[family], value)) return names.size > 0 ? unknown('domain_name') : 'no'
    return isWithin(held[family], value) || isNamed() ? 'yes' : beside
  }
}

interface Address {
  family: Family
  value: bigint
}

/** Maximum number of addresses whose numeric form is cached. */
const MOST_KEPT = 10_000
const kept = new Map<string, Address | null>()

/**
 * Converts an address to a number; returns null if the string is not an address. Results are cached, because each
 * address is compared with many IP lists.
 */
function readAddress(ip: string): Address | null {
  const known = kept.get(ip)
  if (known !== undefined) return known
  const address = isAddress(ip) ? ipaddr.process(ip) : null
  const read = address && { family: address.kind(), value: valueOf(address) }
  if (kept.size >= MOST_KEPT) kept.clear()
  kept.set(ip, read)
  return read
}

/**
 * Converts a range of an IP list to numbers. Returns null unless the range is a network, a single address, or a pair of
 * addresses of the same family.
 */
export function readRange({ from_ip: from, to_ip: to, exclusion }: IpRange): Range | null {
  try {
    const isRange = to !== undefined && to !== null && to !== ''
    const [address, bits] = from.includes('/') ? ipaddr.parseCIDR(from) : [ipaddr.parse(from), null]
    // It is not known which family the PCE assigns to an IPv4-mapped IPv6 address.
    if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress()) return null
    const family = address.kind()
    const first = valueOf(address)
    const width = family === 'ipv4' ? 32 : 128
    const size = 2n ** BigInt(width - (bits ?? width))
    const start = first - (first % size)
    const last = isRange ? ipaddr.parse(to) : null
    if (last !== null && last.kind() !== family) return null
    return {
      family,
      from: start,
      to: last === null ? start + size - 1n : valueOf(last),
      exclusion: exclusion === true,
    }
  } catch {
    return null
  }
}

/** Maximum number of ranges whose numeric form is cached. This many ranges take about 30 MB. */
const MOST_RANGES_KEPT = 100_000
let rangesOf = new WeakMap<readonly IpRange[], readonly (Range | null)[]>()
let rangesKept = 0

/**
 * Converts all ranges of an IP list to numbers, like `readRange`. The result is cached by the identity of the array,
 * which must therefore not be changed afterwards: reading thousands of ranges takes tens of milliseconds, and the same
 * list is needed several times in a row. The cache is emptied when it is full.
 */
export function readRanges(ranges: readonly IpRange[] | null | undefined): readonly (Range | null)[] {
  if (ranges == null) return []
  const known = rangesOf.get(ranges)
  if (known !== undefined) return known
  const read = ranges.map(readRange)
  rangesKept += read.length
  if (rangesKept > MOST_RANGES_KEPT) {
    rangesOf = new WeakMap()
    rangesKept = read.length
  }
  rangesOf.set(ranges, read)
  return read
}

const valueOf = (address: ipaddr.IPv4 | ipaddr.IPv6) =>
  address.toByteArray().reduce((value, byte) => value * 256n + BigInt(byte), 0n)
