import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import LongestPrefixMatch from 'longest-prefix-match'
import { readProviderRanges, type ProviderConfidence, type ProviderRanges } from './read-ranges.js'

/** Who owns an address, and how far that can be trusted. */
export interface Attribution {
  readonly provider: string
  readonly confidence: ProviderConfidence
}

let shipped: ((ip: string) => Attribution | null) | undefined

/**
 * The provider in whose published range an address lies; where ranges nest, the one of the longest prefix (T14). An IPv4 address
 * written as IPv6 (`::ffff:…`) counts as the IPv4 address. Null for addresses that no provider in the table claims, including
 * private ones, and for text that is not an address. Needs no network: the table is shipped, and is read and indexed at the first
 * call.
 */
export function findProvider(ip: string): Attribution | null {
  shipped ??= indexProviders(readProviderRanges())
  return shipped(ip)
}

/** The same lookup over a table of the caller's. A range that is listed twice belongs to the provider listed first. */
export function indexProviders(table: readonly ProviderRanges[]): (ip: string) => Attribution | null {
  const index = new LongestPrefixMatch<Attribution>()
  for (const { provider, confidence, ranges } of table) {
    const attribution = Object.freeze({ provider, confidence })
    for (const range of ranges) index.addPrefix(range, attribution)
  }
  return (ip) => {
    const host = hostRoute(ip)
    return host === null ? null : (index.getMatch(host)[0] ?? null)
  }
}

/** An address as the prefix that holds it alone; null for anything else, which the library would take for zeros. */
function hostRoute(ip: string): string | null {
  const version = isIP(ip)
  if (version === 0 || ip.includes('%')) return null
  if (version === 4) return `${ip}/32`
  // Parsing costs several times the lookup; only leading zeros or a dotted tail can make an address another spelling of one.
  if (!/^[0:]/.test(ip) && !ip.includes('.')) return `${ip}/128`
  const address = ipaddr.process(ip)
  return `${address.toString()}/${address.kind() === 'ipv4' ? 32 : 128}`
}
