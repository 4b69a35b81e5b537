import ipaddr from 'ipaddr.js'
import { LAST, type Family } from './addresses.js'
import { joinIntervals, type Interval } from './classify-numbers.js'

/** A set of addresses: for each family, sorted intervals that neither overlap nor touch. */
export type AddressSet = Readonly<Record<Family, readonly Interval[]>>

export const NO_ADDRESSES: AddressSet = { ipv4: [], ipv6: [] }

/** Returns the addresses that are in any of the sets. */
export function uniteAddresses(sets: readonly AddressSet[]): AddressSet {
  const [first = NO_ADDRESSES, ...others] = sets.filter((set) => countIntervals(set) > 0)
  if (others.length === 0) return first
  const of = (family: Family) => joinIntervals(sets.flatMap((set) => set[family]))
  return { ipv4: of('ipv4'), ipv6: of('ipv6') }
}

/** Returns the number of intervals in a set, which is also the number of strings that `nameAddresses` returns. */
export const countIntervals = ({ ipv4, ipv6 }: AddressSet): number => ipv4.length + ipv6.length

/**
 * Writes a set of addresses in the notation of other firewalls: each interval as an address (`10.0.0.1`), a network
 * (`10.0.0.0/24`) or a range (`10.0.0.1-10.0.0.9`).
 */
export const nameAddresses = (set: AddressSet): string[] =>
  (['ipv4', 'ipv6'] as const).flatMap((family) => set[family].map((interval) => nameInterval(family, interval)))

function nameInterval(family: Family, { from, to }: Interval): string {
  if (from === to) return nameAddress(family, from)
  const size = to - from + 1n
  const isNetwork = (size & (size - 1n)) === 0n && from % size === 0n
  if (!isNetwork) return `${nameAddress(family, from)}-${nameAddress(family, to)}`
  const hostBits = size.toString(2).length - 1
  return `${nameAddress(family, from)}/${widthOf(family) - hostBits}`
}

const widthOf = (family: Family): number => LAST[family].toString(2).length

function nameAddress(family: Family, value: bigint): string {
  const bytes = widthOf(family) / 8
  const hex = value.toString(16).padStart(bytes * 2, '0')
  return ipaddr.fromByteArray([...Buffer.from(hex, 'hex')]).toString()
}
