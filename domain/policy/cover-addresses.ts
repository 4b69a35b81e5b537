import ipaddr from 'ipaddr.js'
import type { IpList, IpRange } from '../../schemas/pce/ip-list.js'
import { isAddress } from '../inventory/match-addresses.js'
import type { Answer } from './answers.js'

/** The address families that a list holds as a whole: yes all of it, no nothing of it, maybe anything between. */
export interface Families {
  ipv4: Answer
  ipv6: Answer
}

interface Range {
  kind: 'ipv4' | 'ipv6'
  from: bigint
  to: bigint
  exclusion: boolean
}

/** What a list holds of each family. A list that gives no ranges, or unreadable ones, may hold anything. */
export function familiesOf({ ip_ranges: listed }: Pick<IpList, 'ip_ranges'>): Families {
  const ranges = (listed ?? []).map(readRange)
  const isOpen = ranges.length === 0 || ranges.includes(null)
  const of = (kind: Range['kind']): Answer => {
    const own = ranges.filter((range): range is Range => range?.kind === kind)
    if (own.some(({ exclusion }) => exclusion)) return 'maybe'
    if (own.some(({ from, to }) => from === 0n && to === LAST[kind])) return 'yes'
    return own.length > 0 || isOpen ? 'maybe' : 'no'
  }
  return { ipv4: of('ipv4'), ipv6: of('ipv6') }
}

/** Whether a list covers an address; null is an address that is not known. Names and pending changes make it unclear. */
export function coverAddress(list: IpList, ip: string | null): Answer {
  if (ip === null || !isAddress(ip) || (list.update_type ?? null) !== null) return 'maybe'
  const ranges = (list.ip_ranges ?? []).map(readRange)
  const address = ipaddr.process(ip)
  const value = valueOf(address)
  const inside = (range: Range | null) =>
    range !== null && range.kind === address.kind() && range.from <= value && value <= range.to
  const [included, excluded] = [false, true].map((exclusion) =>
    ranges.some((range) => range?.exclusion === exclusion && inside(range)),
  )
  if (ranges.includes(null)) return 'maybe'
  if (included === true && excluded === false) return 'yes'
  return (list.fqdns?.length ?? 0) > 0 ? 'maybe' : 'no'
}

const LAST = { ipv4: 2n ** 32n - 1n, ipv6: 2n ** 128n - 1n }

/** Null for what is neither a network nor two addresses of one family. */
function readRange({ from_ip: from, to_ip: to, exclusion }: IpRange): Range | null {
  try {
    const isRange = to !== undefined && to !== null && to !== ''
    const [address, bits] = from.includes('/') ? ipaddr.parseCIDR(from) : [ipaddr.parse(from), null]
    const kind = address.kind()
    const first = valueOf(address)
    const width = kind === 'ipv4' ? 32 : 128
    const size = 2n ** BigInt(width - (bits ?? width))
    const start = first - (first % size)
    const last = isRange ? ipaddr.parse(to) : null
    if (last !== null && last.kind() !== kind) return null
    return {
      kind,
      from: start,
      to: last === null ? start + size - 1n : valueOf(last),
      exclusion: exclusion === true,
    }
  } catch {
    return null
  }
}

const valueOf = (address: ipaddr.IPv4 | ipaddr.IPv6) =>
  address.toByteArray().reduce((value, byte) => value * 256n + BigInt(byte), 0n)
