import ipaddr from 'ipaddr.js'
import { ToolError } from '../../schemas/errors.js'

/** An address, or a network of them. */
export type AddressFilter = { address: string } | { network: string; matches: (ip: string) => boolean }

/** True for a plain IPv4 (four decimal parts) or IPv6 address without zone. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes('%'))
}

/**
 * Text as an address filter; null when it is neither an address nor a CIDR. The PCE takes single addresses only (P25), so a network
 * comes with the test that applies it to a row.
 */
export function parseAddress(text: string): AddressFilter | null {
  if (isAddress(text)) return { address: text }
  const slash = text.lastIndexOf('/')
  if (slash === -1 || !isAddress(text.slice(0, slash)) || !/^\d{1,3}$/.test(text.slice(slash + 1))) return null
  try {
    const network = ipaddr.parseCIDR(text)
    return { network: text, matches: (ip) => contains(network, ip) }
  } catch {
    return null
  }
}

/** True when both spell the same address. */
export function sameAddress(a: string, b: string): boolean {
  return a === b || (isAddress(a) && isAddress(b) && ipaddr.process(a).toString() === ipaddr.process(b).toString())
}

/**
 * The test of one value against others: the same text, or the same address in any spelling. Made once for many values, most of which
 * it refuses by their last group without parsing them.
 */
export function createAddressTest(wanted: string): (value: string) => boolean {
  if (!isAddress(wanted)) return (value) => value === wanted
  const normal = ipaddr.process(wanted).toString()
  const last = lastGroup(wanted)
  return (value) => {
    if (value === wanted) return true
    const other = lastGroup(value)
    if (last !== null && other !== null && last !== other) return false
    return isAddress(value) && ipaddr.process(value).toString() === normal
  }
}

/** The last 16 bits of an IPv6 address, if it is one; null where they are written as decimals, or it ends in none. */
function lastGroup(text: string): number | null {
  const group = /:([0-9a-f]{0,4})$/i.exec(text)?.[1]
  return group === undefined ? null : Number.parseInt(group || '0', 16)
}

function contains(network: [ipaddr.IPv4 | ipaddr.IPv6, number], ip: string): boolean {
  if (!isAddress(ip)) return false
  const address = ipaddr.process(ip)
  return address.kind() === network[0].kind() && address.match(network)
}

/** Throws invalid_argument {invalid} for text that is not a plain address, and for an address given twice in any spelling. */
export function checkAddresses(addresses: readonly string[]): void {
  const bad = addresses.filter((address) => !isAddress(address))
  if (bad.length > 0) {
    throw new ToolError('invalid_argument', `Not an IPv4 or IPv6 address: ${bad.join(', ')}.`, {
      argument: 'ip_addresses',
      invalid: bad,
    })
  }
  const twice = addresses.filter(
    (address, index) => addresses.findIndex((other) => sameAddress(address, other)) !== index,
  )
  if (twice.length > 0) {
    throw new ToolError('invalid_argument', `Address given twice: ${twice.join(', ')}.`, {
      argument: 'ip_addresses',
      invalid: twice,
    })
  }
}
