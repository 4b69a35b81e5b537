/** What an address is to segmentation (P61), at both ends of each range that is not public. */
import t from 'tap'
import { classifyAddress, type AddressClass } from '../../domain/policy/addresses.js'

type Row = [what: string, is: AddressClass | null, ...addresses: string[]]

const ROWS: Row[] = [
  ['RFC 1918, 10/8', 'private', '10.0.0.0', '10.255.255.255'],
  ['beside 10/8', 'public', '9.255.255.255', '11.0.0.0'],
  ['RFC 1918, 172.16/12', 'private', '172.16.0.0', '172.31.255.255'],
  ['beside 172.16/12', 'public', '172.15.255.255', '172.32.0.0'],
  ['RFC 1918, 192.168/16', 'private', '192.168.0.0', '192.168.255.255'],
  ['beside 192.168/16', 'public', '192.167.255.255', '192.169.0.0'],
  ['shared address space', 'private', '100.64.0.0', '100.127.255.255'],
  ['beside shared address space', 'public', '100.63.255.255', '100.128.0.0'],
  ['link-local', 'private', '169.254.0.0', '169.254.169.254', '169.254.255.255'],
  ['beside link-local', 'public', '169.253.255.255', '169.255.0.0'],
  ['loopback', 'special', '127.0.0.0', '127.0.0.1', '127.255.255.255'],
  ['beside loopback', 'public', '126.255.255.255', '128.0.0.0'],
  ['unspecified', 'special', '0.0.0.0', '0.255.255.255'],
  ['multicast', 'special', '224.0.0.0', '239.255.255.255'],
  ['below multicast', 'public', '223.255.255.255'],
  ['broadcast', 'special', '255.255.255.255'],
  ['for documentation', 'public', '192.0.2.7', '198.51.100.7', '203.0.113.7'],
  ['for the future', 'public', '240.0.0.0', '255.255.255.254'],
  ['hosts on the internet', 'public', '1.1.1.1', '8.8.8.8'],
  ['IPv6 unique local', 'private', 'fc00::', 'fd00::1', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['below IPv6 unique local', 'public', 'fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['IPv6 link-local', 'private', 'fe80::', 'fe80::1', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['IPv6 site-local', 'private', 'fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['IPv6 loopback', 'special', '::1'],
  ['beside IPv6 loopback', 'public', '::2'],
  ['IPv6 unspecified', 'special', '::'],
  ['IPv6 multicast', 'special', 'ff00::', 'ff02::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['IPv6 discard', 'special', '100::', '100::ffff:ffff:ffff:ffff'],
  ['beside IPv6 discard', 'public', '100:0:0:1::'],
  ['IPv6 for documentation', 'public', '2001:db8::7'],
  ['IPv6 hosts on the internet', 'public', '2001:4860:4860::8888', '2a00:1450::1'],
  ['IPv4-mapped: as the IPv4 address', 'private', '::ffff:10.0.0.1', '::ffff:169.254.0.1', '::ffff:100.64.0.1'],
  ['IPv4-mapped, special', 'special', '::ffff:127.0.0.1', '::ffff:224.0.0.1'],
  ['IPv4-mapped, public', 'public', '::ffff:8.8.8.8', '::ffff:192.0.2.7'],
  ['no address', null, '', 'localhost', '10.0.0', '10.0.0.256', '10.0.0.0/8', 'fe80::g'],
]

for (const [what, is, ...addresses] of ROWS)
  t.test(what, async (t) => {
    t.strictSame(
      addresses.map((address) => [address, classifyAddress(address)]),
      addresses.map((address) => [address, is]),
    )
  })
