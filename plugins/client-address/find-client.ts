import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { TrustedProxies } from '../../schemas/config.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * Finds the address from which a request comes. `peer` is the address of the socket (undefined on a Unix socket), and
 * `forwardedFor` is the header X-Forwarded-For. Returns null if there is no address, as on a Unix socket whose peer is
 * not trusted.
 */
export type FindClient = (peer: string | undefined, forwardedFor: string | undefined) => string | null

/**
 * Creates the function that finds a client's address. Without trusted proxies, the client is the peer of the socket.
 * With trusted proxies, which append their entries to X-Forwarded-For on the right, this header is read from right to
 * left, up to the first address that is not a trusted proxy (D80). If an entry is not an address, nothing to its left
 * can be trusted, and the client is the last address that was read. Returned addresses are normalised: IPv4-mapped
 * addresses become IPv4 addresses, IPv6 addresses are compressed, and zones and ports are removed.
 *
 * @param onUnixSocket whether the server listens on a Unix socket. A missing peer address does not show this, because a
 * TCP socket whose client has left has no address either.
 */
export function createClientFinder(trusted: TrustedProxies | undefined, onUnixSocket: boolean): FindClient {
  const networks = (trusted?.networks ?? []).map(({ address, prefix }) => readNetwork(address, prefix))
  const trustsPeerWithoutAddress = onUnixSocket && trusted?.unix === true
  const isTrusted = (address: Address) =>
    networks.some(([base, prefix]) => address.kind() === base.kind() && address.match(base, prefix))

  return (peer, forwardedFor) => {
    let client = readAddress(peer ?? '')
    const isProxy = client === null ? peer === undefined && trustsPeerWithoutAddress : isTrusted(client)
    if (isProxy && forwardedFor !== undefined) {
      for (const entry of entriesFromRight(forwardedFor)) {
        const address = readAddress(withoutPort(entry))
        if (address === null) break
        client = address
        if (!isTrusted(client)) break
      }
    }
    return client?.toString() ?? null
  }
}

/** Splits X-Forwarded-For into its entries, last entry first. Empty list elements are left out (RFC 9110, 5.6.1). */
const entriesFromRight = (header: string) =>
  header
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .reverse()

/**
 * Removes the port from an entry of X-Forwarded-For, because some proxies write `192.0.2.1:4711` or
 * `[2001:db8::1]:4711`.
 */
function withoutPort(entry: string): string {
  const [, v6, v4] = /^(?:\[(.*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? []
  return v6 ?? v4 ?? entry
}

/** Parses an IP address. Returns null if the string is not an address. Short forms such as `127.1` are not accepted. */
function readAddress(text: string): Address | null {
  return isIP(text) === 0 ? null : ipaddr.process(text.replace(/%.*/, ''))
}

/**
 * Parses a network. A network of IPv4-mapped addresses becomes an IPv4 network, because single mapped addresses become
 * IPv4 addresses too.
 */
function readNetwork(address: string, prefix: number): [Address, number] {
  const base = ipaddr.parse(address)
  const isMapped = base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && prefix >= 96
  return isMapped ? [base.toIPv4Address(), prefix - 96] : [base, prefix]
}

/**
 * Returns the key by which a limit per address counts requests: an IPv4 address, or the first 64 bits of an IPv6
 * address, because a single household has more IPv6 addresses than could be counted. All requests without an address
 * share one key.
 */
export function networkOf(address: string | null): string {
  if (address === null) return 'local'
  if (!address.includes(':')) return address
  const { parts } = ipaddr.IPv6.parse(address)
  return `${parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}
