import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { TrustedProxies } from '../../schemas/config.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/**
 * Finds the address that a request comes from: `peer` is what the socket says (undefined on a Unix socket), `forwardedFor` the
 * X-Forwarded-For header. Null where there is none, as on a Unix socket whose peer is not trusted.
 */
export type FindClient = (peer: string | undefined, forwardedFor: string | undefined) => string | null

/**
 * Without trusted proxies the client is the peer of the socket. With them, X-Forwarded-For is read from the right, the end that our own
 * proxies write, up to the first address that is not trusted (D80). An entry that is no address ends the walk at the hop that reported it:
 * nothing further left is worth more. Addresses come in one spelling: IPv4 out of its mapped form, IPv6 compressed, without zone and port.
 *
 * @param onUnixSocket whether the server listens on one; a TCP socket whose client has gone has no address either.
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

/** Empty elements of a list say nothing (RFC 9110, 5.6.1). */
const entriesFromRight = (header: string) =>
  header
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .reverse()

/** Some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711`. */
function withoutPort(entry: string): string {
  const [, v6, v4] = /^(?:\[(.*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? []
  return v6 ?? v4 ?? entry
}

/** Null for what is no address; shorthand such as `127.1` is none. */
function readAddress(text: string): Address | null {
  return isIP(text) === 0 ? null : ipaddr.process(text.replace(/%.*$/, ''))
}

/** A network of mapped addresses is the network of the IPv4 addresses in them, as addresses are compared. */
function readNetwork(address: string, prefix: number): [Address, number] {
  const base = ipaddr.parse(address)
  const isMapped = base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && prefix >= 96
  return isMapped ? [base.toIPv4Address(), prefix - 96] : [base, prefix]
}

/**
 * Whom limits by address count against: an IPv4 address, or the first 64 bits of an IPv6 address, of which one household has more than
 * could ever be counted. Requests without an address count as one.
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
