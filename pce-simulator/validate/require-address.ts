import { isIP } from 'node:net'
import { notAcceptable } from '../refusal.js'

const LONGEST_PREFIX: Readonly<Record<number, number>> = { 4: 32, 6: 128 }

/** An address, or a network in CIDR notation; anything else is 406 (P31). */
export function requireAddress(text: string): void {
  const [address = '', bits, ...rest] = text.split('/')
  const longest = LONGEST_PREFIX[isIP(address)]
  const hasPrefix = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (longest ?? 0))
  if (longest === undefined || !hasPrefix || rest.length > 0) {
    throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
  }
}
