import ipaddr from 'ipaddr.js'

/** The kinds of IP addresses that no PCE may have, written as noun phrases for use in messages. */
export type RefusedKind =
  | 'a loopback address'
  | 'a link-local address'
  | 'the address of a cloud metadata service'
  | 'an unspecified address'
  | 'a multicast address'
  | 'a broadcast address'
  | 'a carrier-grade NAT address'
  | 'a reserved address'

const KINDS: Partial<Record<string, RefusedKind>> = {
  loopback: 'a loopback address',
  linkLocal: 'a link-local address',
  unspecified: 'an unspecified address',
  multicast: 'a multicast address',
  broadcast: 'a broadcast address',
  carrierGradeNat: 'a carrier-grade NAT address',
}
const METADATA: RefusedKind = 'the address of a cloud metadata service'
const RESERVED: RefusedKind = 'a reserved address'

/**
 * The addresses of cloud metadata services. Most are link-local; the others belong to Alibaba Cloud, Oracle Cloud and
 * Azure's host agent.
 */
const METADATA_V4 = new Set(['169.254.169.254', '169.254.170.2', '169.254.170.23', '100.100.100.200', '192.0.0.192'])
const AZURE_HOST_AGENT = '168.63.129.16'

/** The prefixes of unique local addresses from which AWS and Google serve metadata and other cloud services. */
const METADATA_V6 = [ipaddr.IPv6.parseCIDR('fd00:ec2::/32'), ipaddr.IPv6.parseCIDR('fd20:ce::/112')]
/**
 * The address 169.254.169.254 as the last 32 bits of an IPv6 address. Such an IPv6 address belongs to Oracle's metadata
 * service, or leads to the IPv4 address through the NAT64 prefix of a network.
 */
const METADATA_TAIL = [0xa9fe, 0xa9fe]

/**
 * The range from which IANA assigns global unicast addresses (RFC 4291, 2.4). IPv6 addresses outside it are refused
 * unless they are unique local.
 */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Returns why a connection to the IP address is refused, or null if it is permitted (D18). The address may be written
 * in any form that Node's `isIP` accepts. Only global and private unicast addresses are permitted; anything that is not
 * known to be the address of a host is refused.
 *
 * An IPv4 address inside an IPv6 address is checked if the IPv6 address leads to the IPv4 host. This is so for mapped
 * addresses (RFC 4291), and for NAT64 addresses with the well-known prefix (RFC 6052), through which networks without
 * IPv4 reach IPv4 hosts. The other forms (compatible, translated, 6to4, Teredo, ISATAP, local NAT64) are tunnels whose
 * far end cannot be checked. No PCE uses them, so they are always refused.
 */
export function checkAddress(address: string): RefusedKind | null {
  if (!ipaddr.isValid(address)) return RESERVED
  const parsed = ipaddr.parse(address)
  return parsed instanceof ipaddr.IPv4 ? checkIpv4(parsed) : checkIpv6(parsed)
}

function checkIpv4(address: ipaddr.IPv4): RefusedKind | null {
  const text = address.toString()
  if (METADATA_V4.has(text) || text === AZURE_HOST_AGENT) return METADATA
  const range = address.range()
  return range === 'unicast' || range === 'private' ? null : (KINDS[range] ?? RESERVED)
}

function checkIpv6(address: ipaddr.IPv6): RefusedKind | null {
  const range = address.range()
  if (range === 'ipv4Mapped' || isWellKnownNat64(address)) return checkIpv4(lastFourBytes(address))
  if (isMetadata(address)) return METADATA
  if (isIsatap(address)) return RESERVED
  if (range === 'uniqueLocal' || (range === 'unicast' && address.match(GLOBAL_UNICAST))) return null
  return KINDS[range] ?? RESERVED
}

/**
 * Returns the canonical spelling of an address: IPv4-mapped addresses become IPv4 addresses, and IPv6 addresses are
 * compressed and have no zone.
 */
export function canonicalAddress(address: string): string {
  const parsed = ipaddr.process(address.replace(/%.*/, ''))
  return parsed.toString()
}

function isWellKnownNat64({ parts }: ipaddr.IPv6): boolean {
  return parts[0] === 0x64 && parts[1] === 0xff9b && parts.slice(2, 6).every((part) => part === 0)
}

function lastFourBytes(address: ipaddr.IPv6): ipaddr.IPv4 {
  return new ipaddr.IPv4(address.toByteArray().slice(12))
}

function isMetadata(address: ipaddr.IPv6): boolean {
  if (METADATA_TAIL.every((part, index) => address.parts[6 + index] === part)) return true
  return METADATA_V6.some((range) => address.match(range))
}

/** Returns true if the interface identifier of the address contains an IPv4 address, as in ISATAP (RFC 5214, 6.1). */
function isIsatap({ parts }: ipaddr.IPv6): boolean {
  return ((parts[4] ?? 0) & 0xfcff) === 0 && parts[5] === 0x5efe
}
