import ipaddr from 'ipaddr.js'
import type { IpList, IpRange } from '../../schemas/pce/ip-list.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { quote } from '../text/escape-text.js'
import { type Family, readRange, readRanges } from './addresses.js'
import type { Interval } from './classify-numbers.js'
import { intersectIntervals, sizeOf, subtractIntervals } from './intervals.js'

/** The addresses that a caller asks about: a single address, a network, or a range. */
export interface AskedAddresses extends Interval {
  family: Family
}

/**
 * Parses a string with addresses: `10.0.0.1`, `10.0.0.0/8`, `10.0.0.1-10.0.0.9`, or the same forms for IPv6. Any
 * address in a network may stand for the network. An IPv4-mapped IPv6 address becomes its IPv4 address. If the string
 * is invalid, returns a sentence that says what is wrong.
 */
export function readAsked(text: string): AskedAddresses | string {
  const [first = '', last, ...more] = text.split('-').map((part) => part.trim())
  if (more.length > 0) return `${quote(text)} is no range of two addresses.`
  const [address = '', bits] = first.split('/')
  if (!isAddress(address)) return `${quote(first)} is neither an address nor a CIDR.`
  if (bits !== undefined && last !== undefined)
    return `${quote(first)} is already a network; a range has two single addresses.`
  if (last !== undefined && !isAddress(last)) return `${quote(last)} is not an address.`
  const from = plain(address)
  const to = last === undefined ? undefined : plain(last)
  const isMapped = from !== address || to !== last
  if (isMapped && bits !== undefined) return `${quote(first)}: write the network as IPv4.`
  const range = readRange({ from_ip: bits === undefined ? from : first, ...(to !== undefined && { to_ip: to }) })
  if (range === null)
    return last === undefined
      ? `${quote(first)} is not a CIDR.`
      : `${quote(first)} and ${quote(last)} are of different address families.`
  if (range.to < range.from) return `${quote(last ?? '')} is before ${quote(first)}.`
  return { family: range.family, from: range.from, to: range.to }
}

const plain = (address: string): string => {
  const parsed = ipaddr.parse(address)
  return parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : address
}

/**
 * The addresses of one family that an IP list contains, and those that its exclusions remove. Domain names in the list
 * are ignored.
 */
export interface HeldAddresses {
  /** The addresses that a range of the list includes and no exclusion removes, in ascending order. */
  held: Interval[]
  /** The addresses that a range of the list includes and an exclusion removes. */
  taken: Interval[]
}

/**
 * Determines which addresses of a family an IP list contains. Unreadable ranges are ignored; `unreadableOf` lists them.
 */
export function holdAddresses({ ip_ranges: ranges }: Pick<IpList, 'ip_ranges'>, family: Family): HeldAddresses {
  const own = readRanges(ranges).filter((range) => range?.family === family)
  const of = (exclusion: boolean) => own.flatMap((range) => (range?.exclusion === exclusion ? [range] : []))
  const [included, excluded] = [of(false), of(true)]
  return { held: subtractIntervals(included, excluded), taken: intersectIntervals(included, excluded) }
}

/** Lists the ranges of an IP list whose meaning is not known: malformed ranges, and IPv4-mapped IPv6 addresses. */
export function unreadableOf({ ip_ranges: ranges }: Pick<IpList, 'ip_ranges'>): IpRange[] {
  const read = readRanges(ranges)
  return (ranges ?? []).filter((_, at) => read[at] === null)
}

/**
 * Returns true if a list has neither ranges nor domain names. A PCE stores no empty lists, so such a list was not read
 * completely.
 */
export const isEmpty = ({ ip_ranges: ranges, fqdns }: Pick<IpList, 'ip_ranges' | 'fqdns'>): boolean =>
  (ranges ?? []).length + (fqdns ?? []).length === 0

export type Hold = 'whole' | 'part' | 'excluded' | 'none' | 'uncertain'

/** How an IP list relates to the addresses that a caller asked about. */
export interface AddressMatch {
  /**
   * `whole`, `part` or `none`: the list contains all, some or none of the requested addresses. `excluded`: the list
   * contains none of them, because its exclusions remove all that its ranges include. `uncertain`: unreadable ranges
   * may change the answer, or the list is empty.
   */
  hold: Hold
  /**
   * The part of the requested addresses that the list contains (`held`), and the part that its exclusions remove
   * (`taken`).
   */
  held: Interval[]
  taken: Interval[]
  /** The ranges and exclusions that overlap the requested addresses, as written in the list. */
  ranges: IpRange[]
  /** Total number of addresses that the list contains in the family of the requested addresses. */
  size: bigint
}

/**
 * Compares an IP list with the requested addresses. The result is exact even if ranges overlap. Domain names are
 * ignored, because the addresses behind them are not known.
 */
export function matchAddresses(list: Pick<IpList, 'ip_ranges' | 'fqdns'>, asked: AskedAddresses): AddressMatch {
  const all = holdAddresses(list, asked.family)
  const [held, taken] = [intersectIntervals(all.held, [asked]), intersectIntervals(all.taken, [asked])]
  const unread = unreadableOf(list)
  const read = readRanges(list.ip_ranges)
  const isWhole = sizeOf(held) === sizeOf([asked])
  const known = isWhole ? 'whole' : held.length > 0 ? 'part' : taken.length > 0 ? 'excluded' : 'none'
  // An unreadable included range cannot add anything if the list contains all requested addresses; an unreadable
  // exclusion cannot remove anything if the list contains none of them.
  const decides = unread.some(({ exclusion }) => (exclusion === true ? held.length > 0 : !isWhole))
  return {
    hold: decides || isEmpty(list) ? 'uncertain' : known,
    held,
    taken,
    ranges: (list.ip_ranges ?? []).filter((_, at) => {
      const one = read[at] ?? null
      return one !== null && one.family === asked.family && one.from <= asked.to && asked.from <= one.to
    }),
    size: sizeOf(all.held),
  }
}

/** Converts an address from a number to a string. */
export function writeAddress(family: Family, value: bigint): string {
  const width = family === 'ipv4' ? 4 : 16
  const bytes = Array.from({ length: width }, (_, at) => Number((value >> BigInt(8 * (width - 1 - at))) & 255n))
  return ipaddr.fromByteArray(bytes).toString()
}

/** Writes an interval as IP lists do: as a single address, as a CIDR if it is a network, otherwise as `first-last`. */
export function writeInterval(family: Family, { from, to }: Interval): string {
  if (from === to) return writeAddress(family, from)
  const size = to - from + 1n
  const isNetwork = (size & (size - 1n)) === 0n && from % size === 0n
  const bits = (family === 'ipv4' ? 32 : 128) - (size.toString(2).length - 1)
  return isNetwork
    ? `${writeAddress(family, from)}/${bits}`
    : `${writeAddress(family, from)}-${writeAddress(family, to)}`
}

/** Writes a range of an IP list as a string: `10.0.0.0/8` or `10.0.0.1-10.0.0.9`, with `!` in front of an exclusion. */
export const writeRange = ({ from_ip: from, to_ip: to, exclusion }: IpRange): string =>
  `${exclusion === true ? '!' : ''}${from}${to == null || to === '' ? '' : `-${to}`}`
