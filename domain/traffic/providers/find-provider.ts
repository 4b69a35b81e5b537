import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import LongestPrefixMatch from 'longest-prefix-match'
import { readProviderRanges, type ProviderConfidence, type ProviderRanges } from './read-ranges.js'

/** The provider to which an address belongs, and how reliable this assignment is. */
export interface Attribution {
  readonly provider: string
  readonly confidence: ProviderConfidence
}

let shipped: ((ip: string) => Attribution | null) | undefined

/**
 * Finds the provider whose published range contains an address. If several ranges contain it, the longest prefix counts
 * (T14). An IPv4-mapped IPv6 address (`::ffff:…`) is looked up as IPv4. Returns null if no provider lists the address,
 * as with private addresses, or if the text is not an address. No network access is needed: the table of ranges is
 * shipped with this server and is indexed at the first call.
 */
export function findProvider(ip: string): Attribution | null {
  shipped ??= indexProviders(readProviderRanges())
  return shipped(ip)
}

/**
 * Returns a lookup function like `findProvider` for the given table. If two providers list the same range, the one
 * listed first counts.
 */
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

/**
 * Returns the prefix that covers exactly this address. Returns null for a string that is not an address, which the
 * library would otherwise read as zeros.
 */
function hostRoute(ip: string): string | null {
  const version = isIP(ip)
  if (version === 0 || ip.includes('%')) return null
  if (version === 4) return `${ip}/32`
  // Parsing takes several times as long as the lookup. Only an address with leading zeros or a dotted tail can have
  // another canonical spelling, so all others are not parsed.
  if (!/^[0:]/.test(ip) && !ip.includes('.')) return `${ip}/128`
  const address = ipaddr.process(ip)
  return `${address.toString()}/${address.kind() === 'ipv4' ? 32 : 128}`
}
