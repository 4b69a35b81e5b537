import ipaddr from 'ipaddr.js'
import type { IpList, IpRange } from '../../schemas/pce/ip-list.js'
import { isAddress } from '../inventory/parse-addresses.js'
import { type Family, readRange } from './addresses.js'
import type { Interval } from './classify-numbers.js'
import { intersectIntervals, sizeOf, subtractIntervals } from './intervals.js'

/** Addresses that somebody asks about: one, a network, or from one to another. */
export interface AskedAddresses extends Interval {
  family: Family
}

/**
 * Text as addresses: `10.0.0.1`, `10.0.0.0/8`, `10.0.0.1-10.0.0.9`, or IPv6 in the same forms; a network may be named by any address in it.
 * An IPv4 address in its IPv6-mapped form is that IPv4 address. Otherwise what is wrong, as a sentence.
 */
export function readAsked(text: string): AskedAddresses | string {
  const [first = '', last, ...more] = text.split('-').map((part) => part.trim())
  if (more.length > 0) return `"${text}" is no range of two addresses.`
  const [address = '', bits] = first.split('/')
  if (!isAddress(address)) return `"${first}" is neither an address nor a CIDR.`
  if (bits !== undefined && last !== undefined)
    return `"${first}" is already a network; a range has two single addresses.`
  if (last !== undefined && !isAddress(last)) return `"${last}" is not an address.`
  const from = plain(address)
  const to = last === undefined ? undefined : plain(last)
  const isMapped = from !== address || to !== last
  if (isMapped && bits !== undefined) return `"${first}": write the network as IPv4.`
  const range = readRange({ from_ip: bits === undefined ? from : first, ...(to !== undefined && { to_ip: to }) })
  if (range === null)
    return last === undefined ? `"${first}" is not a CIDR.` : `${first} and ${last} are of different address families.`
  if (range.to < range.from) return `${last} is before ${first}.`
  return { family: range.family, from: range.from, to: range.to }
}

const plain = (address: string): string => {
  const parsed = ipaddr.parse(address)
  return parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : address
}

/** What an IP list holds of the addresses of one family, by its ranges alone. */
export interface HeldAddresses {
  /** Included by some range and excluded by none, in order. */
  held: Interval[]
  /** Included by some range and excluded by another. */
  taken: Interval[]
}

/** Ranges that cannot be read are left out: `unreadableOf` has them. */
export function holdAddresses({ ip_ranges: ranges }: Pick<IpList, 'ip_ranges'>, family: Family): HeldAddresses {
  const own = (ranges ?? []).map(readRange).filter((range) => range?.family === family)
  const of = (exclusion: boolean) => own.flatMap((range) => (range?.exclusion === exclusion ? [range] : []))
  const [included, excluded] = [of(false), of(true)]
  return { held: subtractIntervals(included, excluded), taken: intersectIntervals(included, excluded) }
}

/** The ranges whose meaning is not known: other text than addresses, and IPv4 in IPv6-mapped form. */
export const unreadableOf = ({ ip_ranges: ranges }: Pick<IpList, 'ip_ranges'>): IpRange[] =>
  (ranges ?? []).filter((range) => readRange(range) === null)

/** A PCE keeps no list of nothing, so one that gives nothing was not read in full. */
export const isEmpty = ({ ip_ranges: ranges, fqdns }: Pick<IpList, 'ip_ranges' | 'fqdns'>): boolean =>
  (ranges ?? []).length + (fqdns ?? []).length === 0

export type Hold = 'whole' | 'part' | 'excluded' | 'none' | 'uncertain'

/** How an IP list relates to some addresses. */
export interface AddressMatch {
  /**
   * `whole`, `part` or `none` of them are in the list by its ranges. `excluded`: none, though ranges include some, since other ranges
   * exclude all of these. `uncertain`: ranges that cannot be read may make the difference, or the list gives nothing at all.
   */
  hold: Hold
  /** Those of them that the list has, and those that its exclusions take out. */
  held: Interval[]
  taken: Interval[]
  /** Its ranges and exclusions that have any of them, as written. */
  ranges: IpRange[]
  /** How many addresses of this family the list has in all. */
  size: bigint
}

/** Exact, whatever the ranges overlap. Domain names are not looked at: what they resolve to is not known. */
export function matchAddresses(list: Pick<IpList, 'ip_ranges' | 'fqdns'>, asked: AskedAddresses): AddressMatch {
  const all = holdAddresses(list, asked.family)
  const [held, taken] = [intersectIntervals(all.held, [asked]), intersectIntervals(all.taken, [asked])]
  const unread = unreadableOf(list)
  const isWhole = sizeOf(held) === sizeOf([asked])
  const known = isWhole ? 'whole' : held.length > 0 ? 'part' : taken.length > 0 ? 'excluded' : 'none'
  // One more inclusion cannot add to the whole, nor one more exclusion take from nothing.
  const decides = unread.some(({ exclusion }) => (exclusion === true ? held.length > 0 : !isWhole))
  return {
    hold: decides || isEmpty(list) ? 'uncertain' : known,
    held,
    taken,
    ranges: (list.ip_ranges ?? []).filter((range) => {
      const read = readRange(range)
      return read !== null && read.family === asked.family && read.from <= asked.to && asked.from <= read.to
    }),
    size: sizeOf(all.held),
  }
}

/** An address of a family by its number. */
export function writeAddress(family: Family, value: bigint): string {
  const width = family === 'ipv4' ? 4 : 16
  const bytes = Array.from({ length: width }, (_, at) => Number((value >> BigInt(8 * (width - 1 - at))) & 255n))
  return ipaddr.fromByteArray(bytes).toString()
}

/** Addresses as an IP list has them: one, a network where they are one, otherwise `first-last`. */
export function writeInterval(family: Family, { from, to }: Interval): string {
  if (from === to) return writeAddress(family, from)
  const size = to - from + 1n
  const isNetwork = (size & (size - 1n)) === 0n && from % size === 0n
  const bits = (family === 'ipv4' ? 32 : 128) - (size.toString(2).length - 1)
  return isNetwork
    ? `${writeAddress(family, from)}/${bits}`
    : `${writeAddress(family, from)}-${writeAddress(family, to)}`
}

/** A range of an IP list as text: `10.0.0.0/8`, `10.0.0.1-10.0.0.9`; an exclusion with `!` in front. */
export const writeRange = ({ from_ip: from, to_ip: to, exclusion }: IpRange): string =>
  `${exclusion === true ? '!' : ''}${from}${to == null || to === '' ? '' : `-${to}`}`
