import ipaddr from 'ipaddr.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { isAddress } from '../inventory/parse-addresses.js'

/** Minimum length of words and prefixes. Shorter ones match names by chance. */
const LEAST_WORD = 3
/** Maximum number of words used from one name. More words add no information. */
const MOST_WORDS = 12

/**
 * Returns the patterns by which a workload's name may resemble those of similar workloads, most specific first: the
 * host name with `#` in place of each number (`pay-web-#`), its prefixes (`pay-web-*`, `pay-*`), and its words
 * (`*web*`). Case is ignored. All patterns except words use only the part of the name before the first dot.
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

/**
 * Returns the words in a host name and its domain, without trailing numbers. The last two parts of the domain are left
 * out, because all hosts have them in common.
 */
export function nameWords(name: string): string[] {
  const parts = name.toLowerCase().split('.')
  const own = parts.length > 2 ? parts.slice(0, -2) : parts.slice(0, 1)
  const words = own.flatMap((part) => part.split(/[-_ ]+/)).map((word) => word.replace(/(?<!\d)\d+$/, ''))
  return [...new Set(words.filter((word) => word.length >= LEAST_WORD))].slice(0, MOST_WORDS)
}

/**
 * Matches the names of loopback and container network interfaces. Their addresses are the same on thousands of
 * machines.
 */
const LOCAL_INTERFACE = /^(?:lo|docker|br-|cni|veth|virbr|flannel|cali|podman)/i
const WIDEST_V4 = 24
const WIDEST_V6 = 64

/**
 * Returns the subnets of the addresses on a workload's interfaces. A wide subnet is narrowed to a /24 (IPv4) or a /64
 * (IPv6).
 */
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
