import { ToolError } from '../../schemas/errors.js'
import { isAddress, sameAddress } from './match-addresses.js'

/** Throws invalid_argument {invalid} for text that is no plain address, and for one address given twice in any spelling. */
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
