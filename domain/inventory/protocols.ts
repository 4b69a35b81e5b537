/** The IANA numbers of protocols that people refer to by name. */
const NUMBERS: Record<string, number> = { icmp: 1, igmp: 2, tcp: 6, udp: 17, gre: 47, icmpv6: 58, 'ipv6-icmp': 58 }
const NAMES: Record<number, string> = { 1: 'icmp', 2: 'igmp', 6: 'tcp', 17: 'udp', 47: 'gre', 58: 'icmpv6' }

export const TCP = 6
export const UDP = 17

/**
 * Converts a protocol name (in any case) or number to the IANA number of the protocol. Returns null for any other
 * string.
 */
export function parseProtocol(proto: string | number): number | null {
  if (typeof proto === 'string' && /^\d{1,3}$/.test(proto)) return parseProtocol(Number(proto))
  if (typeof proto === 'number') return Number.isInteger(proto) && proto >= 0 && proto <= 255 ? proto : null
  return NUMBERS[proto.trim().toLowerCase()] ?? null
}

/** Returns the name of a protocol, or its number as a string if it has no common name. */
export function protocolName(proto: number): string {
  return NAMES[proto] ?? String(proto)
}

/** Formats a port as `443/tcp`, or only the protocol if there is no port. */
export function portName({ port, proto }: { port: number | null; proto: number | null }): string {
  const protocol = proto === null ? 'unknown' : protocolName(proto)
  return port === null || port === 0 ? protocol : `${port}/${protocol}`
}

/**
 * Returns true for traffic that VENs always allow, even without a rule: DHCP, and ICMPv6 such as neighbour discovery.
 */
export const isEssential = ({ port, proto }: { port: number | null; proto: number | null }): boolean =>
  proto === 58 || (proto === 17 && (port === 67 || port === 68))
