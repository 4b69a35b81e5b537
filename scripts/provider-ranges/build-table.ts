import { mergeCidr } from 'cidr-tools'
import ipaddr from 'ipaddr.js'
import type { ProviderRanges, ProviderSource } from '../../domain/traffic/providers/read-ranges.js'
import type { CatalogEntry } from './catalog.js'

/** What one source says about one provider. */
export interface Claim extends ProviderSource {
  provider: string
  ranges: readonly string[]
}

/**
 * The table of all claims, by provider name. Per provider, ranges inside others are dropped and neighbours joined; a range that two
 * providers claim is kept by the one that stands first in the catalog. Throws on a provider that nobody claims anything for.
 */
export function buildTable(catalog: readonly CatalogEntry[], claims: readonly Claim[]): ProviderRanges[] {
  const taken = new Set<string>()
  const table = catalog.map((entry) => {
    const own = claims.filter(({ provider }) => provider === entry.provider)
    const published = own.flatMap(({ ranges }) => ranges).filter((range) => !taken.has(range))
    const ranges = mergeCidr(published)
      .filter((range) => !taken.has(range))
      .sort(byAddress)
    if (ranges.length === 0) throw new Error(`${entry.provider}: no source has a range for it`)
    for (const range of [...published, ...ranges]) taken.add(range)
    return {
      ...entry,
      sources: own.map(({ url, asOf, note }) => ({ url, asOf, ...(note === undefined ? {} : { note }) })),
      ranges,
    }
  })
  return table.sort((a, b) => (a.provider < b.provider ? -1 : 1))
}

/** Throws an error that names the first text which is no CIDR, has host bits, or is not of the public internet. */
export function checkRanges(ranges: readonly string[]): void {
  for (const range of ranges) {
    if (!ipaddr.IPv4.isValidCIDRFourPartDecimal(range) && !ipaddr.IPv6.isValidCIDR(range)) {
      throw new Error(`"${range}" is not a CIDR`)
    }
    const [address, length] = ipaddr.parseCIDR(range)
    const network = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
    if (network.networkAddressFromCIDR(range).toString() !== address.toString()) {
      throw new Error(`"${range}" has bits set behind its prefix`)
    }
    // A feed that claims so much has gone wrong, and would name a provider for half of the internet.
    if (length < (address.kind() === 'ipv4' ? 8 : 16)) throw new Error(`"${range}" is too large to be one provider's`)
    if (address.range() !== 'unicast') throw new Error(`"${range}" is ${address.range()}, not public`)
  }
}

function byAddress(a: string, b: string): number {
  const [left, right] = [ipaddr.parseCIDR(a)[0].toByteArray(), ipaddr.parseCIDR(b)[0].toByteArray()]
  return left.length - right.length || Buffer.compare(Buffer.from(left), Buffer.from(right))
}
