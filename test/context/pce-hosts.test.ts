/** Where PCEs of users may be (D18, D47): spellings, addresses, names that change their mind. */
import type { LookupAddress, LookupAllOptions, LookupOptions } from 'node:dns'
import { BlockList, isIP, isIPv6 } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import {
  createPceHosts,
  type PceHosts,
  type PceHostsOptions,
} from '../../plugins/context/pce-hosts/create-pce-hosts.js'
import { ANY_CHARACTER } from '../any-character.js'
import { partial } from '../partial.js'
import { runsOf } from '../property-runs.js'

const RUNS = runsOf(3000)
const SEED = 20_260_615

const nobody = () => Promise.reject(Object.assign(new Error('nobody is asked'), { code: 'ENOTFOUND' }))

function hostsOf(options: Partial<PceHostsOptions> = {}): PceHosts {
  return createPceHosts({ allowed: [], resolve: nobody, ...options })
}

/** A name service that answers with these addresses, in turn; the last ones from then on. */
function names(...answers: string[][]) {
  const asked: [string, LookupAllOptions][] = []
  const resolve = (hostname: string, options: LookupAllOptions): Promise<LookupAddress[]> => {
    asked.push([hostname, options])
    const addresses = answers[Math.min(asked.length, answers.length) - 1]!
    return Promise.resolve(addresses.map((address) => ({ address, family: isIP(address) })))
  }
  return { resolve, asked }
}

/** What Node would connect to. */
const connectTo = (hosts: PceHosts, host: string, port = 443, options: LookupOptions = { all: true }) =>
  new Promise<{ error: Error | null; found: unknown }>((resolve) => {
    hosts.guard(host, port).lookup(host, options, (error, found) => resolve({ error, found }))
  })

t.test('normalises a host to one spelling', async (t) => {
  const { admit } = hostsOf()
  for (const [text, host] of [
    ['pce.example.com', 'pce.example.com'],
    ['https://pce.example.com', 'pce.example.com'],
    ['HTTPS://PCE.Example.COM', 'pce.example.com'],
    ['  pce.example.com  ', 'pce.example.com'],
    ['https://pce.example.com/', 'pce.example.com'],
    ['pce.example.com.', 'pce.example.com'],
    ['pce.example.com:8443', 'pce.example.com'],
    ['https://pce.example.com:8443/', 'pce.example.com'],
    ['pce', 'pce'],
    ['my_pce.corp', 'my_pce.corp'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['PCE。example。com', 'pce.example.com'],
    ['10.1.2.3', '10.1.2.3'],
    ['10.1.2.3:8443', '10.1.2.3'],
    ['0x0a.0x01.0x02.0x03', '10.1.2.3'],
    ['167838211', '10.1.2.3'],
    ['10.1.515', '10.1.2.3'],
    ['012.1.2.3', '10.1.2.3'],
    ['10.1.2.3.', '10.1.2.3'],
    ['[fd00::1]', 'fd00::1'],
    ['fd00::1', 'fd00::1'],
    ['[FD00:0::0001]:8443', 'fd00::1'],
    ['https://[2a00:1450::5]', '2a00:1450::5'],
    ['192.168.7.7', '192.168.7.7'],
    ['172.31.255.255', '172.31.255.255'],
    ['9.9.9.9', '9.9.9.9'],
  ] as const) {
    t.same(admit(text, 8443), { host }, text)
    t.same(admit(host, 8443), { host }, `${host} stays what it is`)
  }
})

t.test('refuses anything that is not a PCE host without echoing it', async (t) => {
  const { admit } = hostsOf()
  const refused: [string, RegExp][] = [
    ['', /empty/],
    ['   ', /empty/],
    ['http://pce.example.com', /over https/],
    ['ftp://pce.example.com', /over https/],
    ['file:///etc/passwd', /over https/],
    ['gopher://pce.example.com:70/', /over https/],
    ['user@pce.example.com', /user name/],
    ['https://user:secret@pce.example.com', /user name/],
    ['a@b', /user name/],
    ['https://127.0.0.1:8443@pce.example.com', /user name/],
    ['pce.example.com/api/v2', /path/],
    ['https://pce.example.com//', /path/],
    ['pce.example.com?x=1', /query/],
    ['pce.example.com#x', /fragment/],
    ['pce.example.com\\@127.0.0.1', /not a host/],
    ['pce.example.com:22', /differs from pce_port/],
    ['pce.example.com:0', /differs from pce_port/],
    ['pce.example.com:', /differs from pce_port/],
    ['pce.example.com:65536', /differs from pce_port/],
    ['[fd00::1]:443', /differs from pce_port/],
    ['pce.example.com:8443x', /not a host/],
    ['file:etc', /not a host/],
    ['%31%32%37.0.0.1', /not a host/],
    ['fe80::1%eth0', /not a host/],
    ['pce.exa\nmple.com', /not a host/],
    ['pce.exa\tmple.com', /not a host/],
    ['pce example.com', /not a host/],
    ['pce\u0000.example.com', /not a host/],
    ['pce..example.com', /not a host/],
    ['.pce.example.com', /not a host/],
    ['pce.example.com..', /not a host/],
    ['-pce.example.com', /not a host/],
    [`${'a'.repeat(64)}.example.com`, /not a host/],
    [`${'a.'.repeat(130)}com`, /not a host/],
    ['x'.repeat(5000), /not a host/],
    ['*.example.com', /not a host/],
    ['pce.example.com,evil.example', /not a host/],
    ['1.2.3.4.5', /not a host/],
    ['256.256.256.256', /not a host/],
    ['pce.0x', /not a host/],
    ['[::1', /not a host/],
    ['::1]', /not a host/],
    ['[127.0.0.1]', /not a host/],
    ['<script>', /not a host/],
  ]
  for (const [text, problem] of refused) {
    const answer = admit(text, 8443)
    partial(t, answer, { problem }, JSON.stringify(text.slice(0, 60)))
    if (text.length > 3 && 'problem' in answer) t.notOk(answer.problem.includes(text))
  }
})

t.test('refuses every spelling of a forbidden address', async (t) => {
  const { admit } = hostsOf()
  for (const [text, what] of [
    ['127.0.0.1', 'loopback'],
    ['127.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['0x7f.1', 'loopback'],
    ['0177.0.0.1', 'loopback'],
    ['2130706433', 'loopback'],
    ['0x7f000001', 'loopback'],
    ['017700000001', 'loopback'],
    ['①②⑦.0.0.1', 'loopback'],
    ['１２７.０.０.１', 'loopback'],
    ['127。0。0。1', 'loopback'],
    ['127.0.0.1.', 'loopback'],
    ['[::1]', 'loopback'],
    ['::1', 'loopback'],
    ['[0:0:0:0:0:0:0:1]', 'loopback'],
    ['[::ffff:127.0.0.1]', 'loopback'],
    ['[::ffff:7f00:1]', 'loopback'],
    ['[64:ff9b::7f00:1]', 'loopback'],
    ['[64:ff9b::127.0.0.1]', 'loopback'],
    ['localhost', 'this machine'],
    ['LOCALHOST', 'this machine'],
    ['localhost.', 'this machine'],
    ['pce.localhost', 'this machine'],
    ['ＬＯＣＡＬＨＯＳＴ', 'this machine'],
    ['local\u00adhost', 'this machine'],
    ['169.254.169.254', 'metadata'],
    ['169.254.170.2', 'metadata'],
    ['0xa9fea9fe', 'metadata'],
    ['[::ffff:169.254.169.254]', 'metadata'],
    ['[64:ff9b::a9fe:a9fe]', 'metadata'],
    ['[fd00:ec2::254]', 'metadata'],
    ['[fd00:ec2::23]', 'metadata'],
    ['[fd20:ce::254]', 'metadata'],
    ['[fd00:c1::a9fe:a9fe]', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['192.0.0.192', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['169.254.1.1', 'link-local'],
    ['[fe80::1]', 'link-local'],
    ['[febf::1]', 'link-local'],
    ['0.0.0.0', 'unspecified'],
    ['0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['[::]', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.250', 'multicast'],
    ['[ff02::1]', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['100.64.0.1', 'carrier-grade NAT'],
    ['100.127.255.255', 'carrier-grade NAT'],
    ['[64:ff9b::6440:1]', 'carrier-grade NAT'],
    ['240.0.0.1', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['203.0.113.1', 'reserved'],
    ['192.88.99.1', 'reserved'],
    ['[2002:7f00:1::]', 'reserved'],
    ['[2002:a9fe:a9fe::1]', 'reserved'],
    ['[2001:0:4136:e378:8000:63bf:80ff:fffe]', 'reserved'],
    ['[::127.0.0.1]', 'reserved'],
    ['[::7f00:1]', 'reserved'],
    ['[::ffff:0:127.0.0.1]', 'reserved'],
    ['[64:ff9b:1::7f00:1]', 'reserved'],
    ['[2a00:1450::5efe:7f00:1]', 'reserved'],
    ['[fd00::200:5efe:10.0.0.1]', 'reserved'],
    ['[2001:db8::1]', 'reserved'],
    ['[3fff::1]', 'reserved'],
    ['[fec0::1]', 'reserved'],
    ['[100::1]', 'reserved'],
    ['[5f00::1]', 'reserved'],
    ['[4000::1]', 'reserved'],
    ['[1::1]', 'reserved'],
  ] as const) {
    partial(t, admit(text, 443), { problem: new RegExp(`${what}.* is not allowed for a PCE`) }, text)
    partial(t, admit(`https://${text.includes('::') && !text.startsWith('[') ? `[${text}]` : text}`, 443), {
      problem: /is not allowed for a PCE/,
    })
  }
})

/** The same rule from the registries of IANA as CIDRs, by Node's own arithmetic: what is no address of a host of someone. */
const NO_HOST_V4 = [
  '0.0.0.0/8 10.0.0.0/0x 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24',
  '192.88.99.0/24 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32',
]
const HOST_V6 = '2000::/3 fc00::/7'
const NO_HOST_V6 =
  '2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 fd00:ec2::/32 fd20:ce::/112 2001:4:112::/48'

function blockList(cidrs: string, family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs.split(' ')) {
    const [network, bits] = cidr.split('/')
    if (bits !== '0x') list.addSubnet(network!, Number(bits), family)
  }
  return list
}
const noHostV4 = blockList(NO_HOST_V4.join(' '), 'ipv4')
const hostV6 = blockList(HOST_V6, 'ipv6')
const noHostV6 = blockList(NO_HOST_V6, 'ipv6')

const dotted = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
const isHostV4 = (value: number) => !noHostV4.check(dotted(value), 'ipv4')

/** Values that lie in, and at the edges of, every range that matters, more often than chance would have them. */
const edges = NO_HOST_V4.join(' ')
  .split(' ')
  .flatMap((cidr) => {
    const [network, bits] = cidr.split('/')
    const first = network!.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
    const size = bits === '0x' ? 2 ** 24 : 2 ** (32 - Number(bits))
    return [first - 1, first, first + 1, first + size - 1, first + size].filter((at) => at >= 0 && at < 2 ** 32)
  })
const ipv4 = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  fc.constantFrom(...edges, 0x7f000001, 0xa9fea9fe, 0x0a000001, 0xac100001, 0xc0a80001, 0x64646464),
)

/** One of the many ways in which WHATWG URLs take an IPv4 address. */
const spelledV4 = fc
  .tuple(
    ipv4,
    fc.integer({ min: 1, max: 4 }),
    fc.array(fc.constantFrom(10, 16, 8), { minLength: 4, maxLength: 4 }),
    fc.record({
      wide: fc.boolean(),
      upper: fc.boolean(),
      zeros: fc.integer({ min: 0, max: 3 }),
      dot: fc.constantFrom('.', '。', '．'),
      end: fc.boolean(),
    }),
  )
  .map(([value, count, bases, { wide, upper, zeros, dot, end }]) => {
    const parts: number[] = []
    for (let index = 0; index < count - 1; index += 1) parts.push((value >>> (24 - 8 * index)) & 255)
    parts.push(value % 2 ** (8 * (5 - count)))
    const text = parts
      .map((part, index) => {
        const base = bases[index]!
        if (base === 16) return `0x${'0'.repeat(zeros)}${part.toString(16)}`
        return base === 8 ? `0${'0'.repeat(zeros)}${part.toString(8)}` : String(part)
      })
      .join('.')
    const cased = upper ? text.toUpperCase() : text
    const widened = wide ? cased.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))) : cased
    return { value, text: `${widened}${end ? '.' : ''}`.replaceAll('.', dot) }
  })

t.test('judges the address behind any IPv4 spelling a URL accepts', async (t) => {
  const { admit } = hostsOf()
  let admitted = 0
  fc.assert(
    fc.property(spelledV4, ({ value, text }) => {
      const answer = admit(text, 443)
      if (isHostV4(value)) admitted += 1
      return isHostV4(value) ? 'host' in answer && answer.host === dotted(value) : 'problem' in answer
    }),
    { seed: SEED, numRuns: RUNS },
  )
  t.ok(admitted > RUNS / 10 && admitted < RUNS * 0.9, `both are met (${admitted} of ${RUNS} admitted)`)
})

const parts = (prefix: number[]) =>
  fc
    .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.constantFrom(0, 0, 0, 1, 0xffff)), {
      minLength: 8 - prefix.length,
      maxLength: 8 - prefix.length,
    })
    .map((rest) => [...prefix, ...rest])
const holding = (prefix: number[], at: number) =>
  fc.tuple(parts(prefix), ipv4).map(([all, value]) => all.with(at, value >>> 16).with(at + 1, value & 0xffff))
const MAPPED = [0, 0, 0, 0, 0, 0xffff]
const NAT64 = [0x64, 0xff9b, 0, 0, 0, 0]
const ipv6 = fc.oneof(
  parts([]),
  ...[
    [0x2001],
    [0x2001, 0],
    [0x2001, 0xdb8],
    [0x2a00],
    [0x3fff],
    [0xfd00],
    [0xfe80],
    [0xff02],
    [0xfec0],
    [0x100, 0, 0, 0],
  ].map(parts),
  ...[MAPPED, NAT64, [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0xffff, 0], [0x64, 0xff9b, 1], [0x2a00, 0, 0, 0, 0, 0x5efe]].map(
    (prefix) => holding(prefix, 6),
  ),
  holding([0x2002], 1),
  fc.constantFrom<number[]>([0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1], [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]),
)

const startsWith = (address: number[], prefix: number[]) => prefix.every((part, index) => address[index] === part)
function isHostV6(address: number[]): boolean {
  const tail = address[6]! * 65_536 + address[7]!
  if (startsWith(address, MAPPED) || startsWith(address, NAT64)) return isHostV4(tail)
  const text = address.map((part) => part.toString(16)).join(':')
  const isTunnel = (address[4]! & 0xfcff) === 0 && address[5] === 0x5efe
  return hostV6.check(text, 'ipv6') && !noHostV6.check(text, 'ipv6') && !isTunnel && tail !== 0xa9fea9fe
}

/** Full, with zeros, upper case, with a dotted tail, and as compressed as a URL makes it. */
const spelledV6 = fc
  .tuple(ipv6, fc.constantFrom('plain', 'padded', 'upper', 'dotted', 'compressed'))
  .map(([address, how]) => {
    const hex = address.map((part) => part.toString(16))
    const full = hex.join(':')
    const text = {
      plain: full,
      padded: hex.map((part) => part.padStart(4, '0')).join(':'),
      upper: full.toUpperCase(),
      dotted: `${hex.slice(0, 6).join(':')}:${dotted(address[6]! * 65_536 + address[7]!)}`,
      compressed: new URL(`https://[${full}]`).hostname.slice(1, -1),
    }[how]
    return { address, text }
  })

t.test('judges the address behind any IPv6 spelling, typed or resolved', async (t) => {
  const { admit } = hostsOf()
  let admitted = 0
  await fc.assert(
    fc.asyncProperty(spelledV6, fc.boolean(), async ({ address, text }, inBrackets) => {
      const isHost = isHostV6(address)
      if (isHost) admitted += 1
      const typed = admit(inBrackets ? `[${text}]` : text, 443)
      const resolved = hostsOf({ resolve: names([text]).resolve })
      const { error } = await connectTo(resolved, 'pce.example.com')
      return 'host' in typed === isHost && (error === null) === isHost
    }),
    { seed: SEED, numRuns: RUNS },
  )
  t.ok(admitted > RUNS / 20 && admitted < RUNS * 0.9, `both are met (${admitted} of ${RUNS} admitted)`)
})

t.test('admits any text in one spelling or refuses it, and never throws', async (t) => {
  const { admit } = hostsOf()
  const text = fc.oneof(
    fc.string({ unit: ANY_CHARACTER }),
    fc.string({ unit: fc.constantFrom(...'01x:.[]/@#?%\\abf0127。⑦１ \t'.split('')), maxLength: 20 }),
    fc.webUrl(),
    fc.domain(),
  )
  const check = fc.property(text, fc.integer({ min: 0, max: 70_000 }), (typed, port) => {
    const answer = admit(typed, port)
    if ('problem' in answer) return answer.problem.length > 10
    const { host } = answer
    const again = admit(host, port)
    const url = new URL(`https://${isIPv6(host) ? `[${host}]` : host}`)
    return 'host' in again && again.host === host && url.hostname.replace(/[[\]]/g, '') === host
  })
  t.doesNotThrow(() => fc.assert(check, { seed: SEED, numRuns: RUNS }))
})

t.test('an invalid entry in MCP_ALLOWED_PCE_HOSTS stops the start and never widens the choice', async (t) => {
  for (const entry of ['*.example.com', '.example.com', '-pce.example.com', 'pce.example.com:x'])
    t.throws(
      () => hostsOf({ allowed: ['pce.example.com', entry] }),
      { name: 'StartupError', faults: [{ problem: `MCP_ALLOWED_PCE_HOSTS: '${entry}' is not a host` }] },
      entry,
    )
})

t.test('refuses ports of other services unless the operator allows them', async (t) => {
  const { admit } = hostsOf()
  for (const port of [443, 1024, 8443, 65_535]) t.same(admit('pce.example.com', port), { host: 'pce.example.com' })
  for (const port of [1, 22, 25, 80, 1023])
    partial(t, admit('pce.example.com', port), {
      problem: `port ${port} is not allowed for a PCE: use 443, or 1024 and above`,
    })
  for (const allowed of [
    ['pce.example.com:444', 'pce.example.com'],
    ['pce.example.com', 'pce.example.com:444'],
  ]) {
    const named = hostsOf({ allowed })
    t.same(named.admit('pce.example.com', 444), { host: 'pce.example.com' })
    partial(t, named.admit('pce.example.com', 22), { problem: /port 22 is not allowed for a PCE/ })
  }
  for (const [host, named] of [
    ['pce.example.com', 'pce.example.com:444'],
    ['fd00::1', '[fd00::1]:444'],
  ] as const) {
    const refused = hostsOf({ allowed: [host] }).admit(host, 444)
    const problem = `port 444 is not allowed for a PCE: use 443, or 1024 and above, unless MCP_ALLOWED_PCE_HOSTS has ${named}`
    t.same(refused, { problem })
    t.same(hostsOf({ allowed: [named] }).admit(host, 444), { host }, 'which is true')
  }
})

t.test('MCP_ALLOWED_PCE_HOSTS narrows the choice to its entries', async (t) => {
  partial(t, hostsOf({ allowed: ['pce.example.com'] }).admit('evil.example', 443), {
    problem: 'this server only accepts pce.example.com',
  })
  const allowed = ['PCE.example.com', 'other.example:8443', '[fd00::1]:9443', 'fd00::2', '127.0.0.1:7443', 'localhost']
  const hosts = hostsOf({ allowed, resolve: names(['127.0.0.1']).resolve })
  for (const [host, port] of [
    ['pce.example.com', 8443],
    ['pce.example.com.', 443],
    ['other.example', 8443],
    ['fd00::1', 9443],
    ['fd00::2', 5000],
    ['127.0.0.1', 7443],
    ['0x7f.1', 7443],
    ['localhost', 5000],
  ] as const)
    partial(t, hosts.admit(host, port), { host: String }, `${host} at ${port}`)
  for (const [host, port] of [
    ['evil.example', 443],
    ['sub.pce.example.com', 443],
    ['pce.example.com.evil.example', 443],
    ['other.example', 443],
    ['fd00::1', 443],
    ['10.0.0.1', 443],
    ['127.0.0.1', 443],
    ['127.0.0.2', 7443],
    ['::1', 7443],
    ['::ffff:127.0.0.1', 7443],
    ['pce.localhost', 5],
  ] as const)
    partial(t, hosts.admit(host, port), { problem: /only accepts pce\.example\.com/ }, host)
  partial(t, hosts.admit('http://localhost', 5), { problem: /over https/ }, 'plain http never')

  t.equal(await hosts.inspect('localhost', 5), null, 'a loopback host that is named is admitted')
  partial(t, await connectTo(hosts, 'localhost', 5), { error: null })
  hosts.guard('localhost', 5).checkPeer('127.0.0.1')
  const rebound = await connectTo(hosts, 'pce.example.com')
  partial(t, rebound.error, { message: /resolves to a loopback address/ }, 'which opens no other name to loopback')
  for (const address of ['169.254.169.254', '0.0.0.0', '224.0.0.1', '100.64.0.1', '::ffff:169.254.169.254']) {
    const elsewhere = hostsOf({ allowed: ['localhost', address], resolve: names([address]).resolve })
    partial(
      t,
      (await connectTo(elsewhere, 'localhost')).error,
      { message: /resolves to/ },
      `nor the name to ${address}`,
    )
    partial(
      t,
      elsewhere.admit(address, 443),
      { problem: /not allowed for a PCE/ },
      'nor can an entry admit anything else',
    )
  }
  partial(t, hostsOf({ allowed: ['a.example', 'b', 'c', 'd', 'e', 'f'] }).admit('x.example', 1), {
    problem: /only accepts a\.example, b, c, d, e and others$/,
  })
})

t.test("refuses this server's own address", async (t) => {
  const own = () => ({ address: '127.0.0.1', port: 8080 })
  const hosts = hostsOf({ allowed: ['127.0.0.1', 'localhost'], own, resolve: names(['127.0.0.1']).resolve })
  partial(t, hosts.admit('127.0.0.1', 8080), { problem: /this server itself/ })
  partial(t, hosts.admit('127.0.0.1', 8081), { host: '127.0.0.1' })
  t.match(await hosts.inspect('localhost', 8080), /this server itself/)
  t.throws(() => hosts.guard('localhost', 8080).checkPeer('::ffff:127.0.0.1'), /this server itself/)
  const lan = hostsOf({ own: () => ({ address: '10.0.0.7', port: 443 }) })
  partial(t, lan.admit('10.0.0.7', 443), { problem: /this server itself/ })
  partial(t, lan.admit('10.0.0.7', 8443), { host: '10.0.0.7' })
})

t.test('names', async (t) => {
  await t.test('are resolved at each connection, and every address is checked', async (t) => {
    const flip = names(['9.9.9.9'], ['127.0.0.1'], ['9.9.9.9', '10.0.0.1'])
    const hosts = hostsOf({ resolve: flip.resolve })
    t.equal(await hosts.inspect('pce.example.com', 443), null, 'public when it is registered')
    partial(
      t,
      await connectTo(hosts, 'pce.example.com'),
      { error: { name: 'RefusedAddress', code: undefined, message: /resolves to a loopback address/ }, found: [] },
      'rebound when it is used',
    )
    partial(t, await connectTo(hosts, 'pce.example.com'), {
      error: null,
      found: [
        { address: '9.9.9.9', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ],
    })
    t.equal(flip.asked.length, 3)

    for (const mixed of [
      ['9.9.9.9', '127.0.0.1'],
      ['fd00::5', '::1'],
      ['10.0.0.1', '::ffff:169.254.169.254'],
      ['9.9.9.9', 'fe80::1%eth0'],
    ]) {
      const some = hostsOf({ resolve: names(mixed).resolve })
      partial(t, (await connectTo(some, 'pce.example.com')).error, { message: /resolves to/ }, mixed.join())
      t.match(await some.inspect('pce.example.com', 443), /resolves to/)
    }
  })

  await t.test('are returned in the form Node asks for', async (t) => {
    const { resolve, asked } = names(['10.0.0.1', 'fd00::1'])
    const hosts = hostsOf({ resolve })
    partial(t, await connectTo(hosts, 'pce.example.com', 443, { family: 4 }), { error: null, found: '10.0.0.1' })
    partial(t, asked[0], ['pce.example.com', { family: 4, all: true }], 'every address is looked at nevertheless')
    const none = hostsOf({ resolve: names([]).resolve })
    partial(t, (await connectTo(none, 'pce.example.com')).error, { code: 'ENOTFOUND' })
    partial(t, (await connectTo(hostsOf(), 'pce.example.com')).error, { code: 'ENOTFOUND' })
  })

  await t.test('that cannot be resolved in time are not refused', async (t) => {
    t.equal(await hostsOf().inspect('pce.example.com', 443), null)
    const silent = hostsOf({ resolve: () => new Promise(() => {}), patienceMs: 5 })
    t.equal(await silent.inspect('pce.example.com', 443), null)
    t.equal(await hostsOf().inspect('10.0.0.1', 443), null, 'an address is nobody’s question')
  })

  await t.test('the connected peer is checked again', async (t) => {
    const { checkPeer } = hostsOf().guard('pce.example.com', 443)
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '169.254.169.254', 'fe80::1%eth0', ''])
      t.throws(() => checkPeer(address), /not allowed for a PCE/, address)
    for (const address of ['10.0.0.1', '9.9.9.9', '::ffff:10.0.0.1', 'fd00::1'])
      t.doesNotThrow(() => checkPeer(address), address)
  })
})
