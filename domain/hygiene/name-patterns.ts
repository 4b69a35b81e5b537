import ipaddr from 'ipaddr.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { isAddress } from '../inventory/parse-addresses.js'

/** Shorter words and beginnings are shared by chance. */
const LEAST_WORD = 3
/** Of a name: more say nothing new. */
const MOST_WORDS = 12

/**
 * The patterns that a workload's name shares with others of its kind, the most telling first: its host name with any numbers
 * (`pay-web-#`), what it begins with (`pay-web-*`, `pay-*`), and the words in it (`*web*`). Case does not matter, and of a domain name
 * only the part before the first dot has beginnings.
 */
export function namePatterns({ name, hostname }: Pick<Workload, 'name' | 'hostname'>): string[] {
  const whole = (hostname || name || '').toLowerCase()
  const [short = ''] = whole.split('.')
  if (short === '') return []
  const shape = short.replace(/\d+/g, '#')
  const words = short.split(/[-_ ]+/).slice(0, MOST_WORDS)
  const beginnings = words
    .slice(0, -1)
    .map((_, at) => words.slice(0, at + 1).join('-'))
    .filter((text) => text.replace(/[^\p{L}]/gu, '').length >= LEAST_WORD)
    .reverse()
  return [...new Set([shape, ...beginnings.map((text) => `${text}-*`), ...nameWords(whole).map((word) => `*${word}*`)])]
}

/** The words of a host name and of its domain, without numbers; not the last two of a domain, which everybody has. */
export function nameWords(name: string): string[] {
  const parts = name.toLowerCase().split('.')
  const own = parts.length > 2 ? parts.slice(0, -2) : parts.slice(0, 1)
  const words = own.flatMap((part) => part.split(/[-_ ]+/)).map((word) => word.replace(/\d+$/, ''))
  return [...new Set(words.filter((word) => word.length >= LEAST_WORD))].slice(0, MOST_WORDS)
}

/** Networks of containers and of the host itself: thousands of machines have the same. */
const LOCAL_INTERFACE = /^(?:lo|docker|br-|cni|veth|virbr|flannel|cali|podman)/i
const WIDEST_V4 = 24
const WIDEST_V6 = 64

/** The subnets of a workload's own addresses: as its interfaces say, but no wider than a /24, or a /64 of IPv6. */
export function subnetsOf({ interfaces }: Pick<Workload, 'interfaces'>): string[] {
  const found = (interfaces ?? []).flatMap(({ name, address, cidr_block: bits }) => {
    if (LOCAL_INTERFACE.test(name) || address === undefined || !isAddress(address)) return []
    const parsed = ipaddr.process(address)
    if (['loopback', 'linkLocal', 'unspecified'].includes(parsed.range())) return []
    const prefix = Math.max(bits ?? 0, parsed.kind() === 'ipv4' ? WIDEST_V4 : WIDEST_V6)
    const network = (parsed.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6).networkAddressFromCIDR(
      `${parsed.toString()}/${prefix}`,
    )
    return [`${network.toString()}/${prefix}`]
  })
  return [...new Set(found)]
}
