import type { IpList } from '../../schemas/pce/ip-list.js'
import { type Family, LAST } from '../policy/addresses.js'
import { holdAddresses } from '../policy/hold-addresses.js'
import { sizeOf } from '../policy/intervals.js'

/**
 * Warns of an IP list that is any address in effect, by the measure of a policy review (D92): at least half of IPv4, or
 * an eighth of IPv6, which is all of its internet. An allow rule that names such a list selects nobody.
 */
export function warnOfWideList(entries: Pick<IpList, 'ip_ranges'>): string[] {
  const four = sizeOf(holdAddresses(entries, 'ipv4').held)
  const six = sizeOf(holdAddresses(entries, 'ipv6').held)
  if (2n * four <= LAST.ipv4 && 8n * six <= LAST.ipv6) return []
  const shares = `${writeShare(four, 'ipv4')} of IPv4 and ${writeShare(six, 'ipv6')} of IPv6`
  return [`The list is any address in effect: it has ${shares}. A rule that allows it allows nearly everybody.`]
}

/** Writes a share in percent with one digit, which never reads as all or nothing where it is not. */
function writeShare(size: bigint, family: Family): string {
  const whole = LAST[family] + 1n
  if (size === 0n || size === whole) return size === 0n ? '0 %' : '100 %'
  const tenths = Number((size * 1000n) / whole)
  if (tenths === 0) return 'less than 0.1 %'
  return tenths > 999 ? 'more than 99.9 %' : `${tenths / 10} %`
}
