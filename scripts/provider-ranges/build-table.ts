import { mergeCidr } from 'cidr-tools'
import ipaddr from 'ipaddr.js'
import type { ProviderRanges, ProviderSource } from '../../domain/traffic/providers/read-ranges.js'
import type { CatalogEntry } from './catalog.js'

/** A claim: the address ranges that one source states for one provider. */
export interface Claim extends ProviderSource {
  provider: string
  ranges: readonly string[]
}

/**
 * Builds the table from all claims, sorted by provider name. For each provider, ranges inside other ranges are dropped,
 * and adjacent ranges are joined. A range that two providers claim belongs to the provider that comes first in the
 * catalog. Throws if there is no claim for a provider.
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

/**
 * Checks ranges. Throws an error that names the first text that is not a CIDR, has host bits, or is not in the public
 * internet.
 */
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
    // A feed with such a large range is faulty, because much of the internet would then belong to one provider.
    if (length < (address.kind() === 'ipv4' ? 8 : 16)) throw new Error(`"${range}" is too large to be one provider's`)
    if (address.range() !== 'unicast') throw new Error(`"${range}" is ${address.range()}, not public`)
  }
}

function byAddress(a: string, b: string): number {
  const [left, right] = [ipaddr.parseCIDR(a)[0].toByteArray(), ipaddr.parseCIDR(b)[0].toByteArray()]
  return left.length - right.length || Buffer.compare(Buffer.from(left), Buffer.from(right))
}
