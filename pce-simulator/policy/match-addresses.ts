import ipaddr from 'ipaddr.js'
import type { IpList, IpRange } from '../../schemas/pce/ip-list.js'

/**
 * An address as a number, so that two comparisons show whether it is in a range. IPv4-mapped IPv6 addresses count as
 * IPv4.
 */
export interface Address {
  family: 4 | 6
  value: number | bigint
}

interface Range {
  family: 4 | 6
  from: number | bigint
  to: number | bigint
  exclusion: boolean
}

/** Parses an IP address. Returns null if it is invalid. */
export function parseAddress(text: string): Address | null {
  let bytes: number[]
  try {
    bytes = ipaddr.process(text).toByteArray()
  } catch {
    return null
  }
  return bytes.length === 4
    ? { family: 4, value: bytes.reduce((value, byte) => value * 256 + byte, 0) }
    : { family: 6, value: bytes.reduce((value, byte) => value * 256n + BigInt(byte), 0n) }
}

/**
 * Two caches, for compiled address ranges and compiled host names. The key is the array that was compiled. These arrays
 * never change, and several IP lists may share one.
 */
const compiledRanges = new WeakMap<readonly IpRange[], Range[]>()
const compiledNames = new WeakMap<readonly object[], ((fqdn: string) => boolean)[]>()

/** Returns the cached result for an array. If there is none yet, the array is compiled and the result is cached. */
function once<T extends object, R>(compiled: WeakMap<readonly T[], R[]>, items: readonly T[], compile: () => R[]): R[] {
  const known = compiled.get(items) ?? compile()
  compiled.set(items, known)
  return known
}

/** The ranges of a list, without those that are malformed. */
function rangesOf({ ip_ranges: given }: IpList): readonly Range[] {
  if (given == null) return []
  return once(compiledRanges, given, () => given.map(compileRange).filter((range) => range !== null))
}

/**
 * Builds a test of whether an IP list contains an address or host name. The list contains the addresses that are in an
 * included range and in no excluded range, whatever the order of the ranges. It also contains the destinations whose
 * name matches one of its fqdns (P17). A malformed range contains nothing.
 */
export function compileIpList(list: IpList): (address: Address | null, fqdn: string | null) => boolean {
  const fqdns = list.fqdns ?? []
  const ranges = rangesOf(list)
  const included = ranges.filter(({ exclusion }) => !exclusion)
  const excluded = ranges.filter(({ exclusion }) => exclusion)
  const names = once(compiledNames, fqdns, () => fqdns.map(({ fqdn }) => compileFqdn(fqdn)))
  return (address, fqdn) => {
    if (fqdn !== null && names.some((matches) => matches(fqdn))) return true
    if (address === null) return false
    const inside = ({ family, from, to }: Range) =>
      family === address.family && from <= address.value && address.value <= to
    return included.some(inside) && !excluded.some(inside)
  }
}

/**
 * Returns the number of addresses of an IP list as rows of traffic show it: the sum of the included ranges minus the
 * sum of the excluded ranges.
 */
export function countAddresses(list: IpList): number {
  return rangesOf(list).reduce((sum, { from, to, exclusion }) => {
    const count = Number(to) - Number(from) + 1
    return exclusion ? sum - count : sum + count
  }, 0)
}

/** Builds a test for host names from a pattern in which `*` matches any number of characters. Case is ignored. */
export function compileFqdn(pattern: string): (fqdn: string) => boolean {
  const wanted = pattern.toLowerCase()
  return (fqdn) => {
    const name = fqdn.toLowerCase()
    let [at, place] = [0, 0]
    // The position of the latest star in the pattern, and how many characters of the name the pattern matches up to and
    // including this star.
    let [star, reach] = [-1, 0]
    while (at < name.length) {
      if (wanted[place] === '*') {
        star = place++
        reach = at
      } else if (wanted[place] === name[at]) {
        at += 1
        place += 1
      } else if (star !== -1) {
        place = star + 1
        at = ++reach
      } else return false
    }
    while (wanted[place] === '*') place += 1
    return place === wanted.length
  }
}

function compileRange(range: IpRange): Range | null {
  const exclusion = range.exclusion === true
  if (range.to_ip != null && range.to_ip !== '') {
    const [from, to] = [parseAddress(range.from_ip), parseAddress(range.to_ip)]
    if (from === null || to === null || from.family !== to.family) return null
    return { family: from.family, from: from.value, to: to.value, exclusion }
  }
  const [network = '', bits] = range.from_ip.split('/')
  const address = parseAddress(network)
  if (address === null) return null
  const width = address.family === 4 ? 32 : 128
  const prefix = bits === undefined ? width : Number(bits)
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > width) return null
  if (typeof address.value === 'number') {
    const size = 2 ** (width - prefix)
    const from = Math.floor(address.value / size) * size
    return { family: 4, from, to: from + size - 1, exclusion }
  }
  const size = 1n << BigInt(width - prefix)
  const from = (address.value / size) * size
  return { family: 6, from, to: from + size - 1n, exclusion }
}
