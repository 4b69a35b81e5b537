import ipaddr from 'ipaddr.js'
import { ToolError } from '../../schemas/errors.js'
import { quote } from '../text/escape-text.js'

/** A single address, or a network with a function that tests whether the network contains an address. */
export type AddressFilter = { address: string } | { network: string; matches: (ip: string) => boolean }

/** Returns true for a plain IPv4 address (four decimal parts) or an IPv6 address without a zone. */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes('%'))
}

/**
 * Parses an address or a CIDR; returns null for any other string. The PCE filters by single addresses only (P25), so
 * the result for a network has a test that must be applied to each row.
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

/** Returns true if both strings are spellings of the same address. */
export function sameAddress(a: string, b: string): boolean {
  return a === b || (isAddress(a) && isAddress(b) && ipaddr.process(a).toString() === ipaddr.process(b).toString())
}

/**
 * Returns an address in its usual spelling. An IPv6 address is in lower case and has `::` in place of its longest
 * sequence of zeros.
 */
export function usualSpelling(address: string): string {
  return isAddress(address) ? ipaddr.parse(address).toString() : address
}

/**
 * Builds a test that accepts the given string and any other spelling of the same address. The test should be built once
 * and applied to many values. For IPv6, it first compares the last groups of the addresses, so most values are rejected
 * without being parsed.
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

/**
 * Returns the last 16 bits of a string that ends like an IPv6 address. Returns null for any other string, and for an
 * IPv6 address that ends in decimal form.
 */
function lastGroup(text: string): number | null {
  const group = /:([0-9a-f]{0,4})$/i.exec(text)?.[1]
  return group === undefined ? null : Number.parseInt(group || '0', 16)
}

function contains(network: [ipaddr.IPv4 | ipaddr.IPv6, number], ip: string): boolean {
  if (!isAddress(ip)) return false
  const address = ipaddr.process(ip)
  return address.kind() === network[0].kind() && address.match(network)
}

/**
 * Checks that a list contains only valid addresses and none of them twice.
 * @throws {ToolError} invalid_argument with `invalid`, listing strings that are not plain addresses and addresses that
 * occur twice in any spelling.
 */
export function checkAddresses(addresses: readonly string[]): void {
  const bad = addresses.filter((address) => !isAddress(address))
  if (bad.length > 0) {
    throw new ToolError('invalid_argument', `Not an IPv4 or IPv6 address: ${bad.map(quote).join(', ')}.`, {
      argument: 'ip_addresses',
      invalid: bad,
    })
  }
  const twice = addresses.filter(
    (address, index) => addresses.findIndex((other) => sameAddress(address, other)) !== index,
  )
  if (twice.length > 0) {
    throw new ToolError('invalid_argument', `Address given twice: ${twice.map(quote).join(', ')}.`, {
      argument: 'ip_addresses',
      invalid: twice,
    })
  }
}
