/** Who owns an external address (T14): the shipped table, and the lookup over it and over any other. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import t from 'tap'
import { findProvider, indexProviders } from '../../domain/traffic/providers/find-provider.js'
import {
  PROVIDER_RANGES_FILE,
  readProviderRanges,
  type ProviderRanges,
} from '../../domain/traffic/providers/read-ranges.js'

const PROVIDER_RANGES = readProviderRanges()

/** A range as numbers, by other means than the lookup reads it. */
interface Block {
  provider: string
  bits: number
  length: number
  first: bigint
  last: bigint
}

const toNumber = (bytes: readonly number[]) => bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n)

function toText(number: bigint, bits: number): string {
  const bytes = Array.from({ length: bits / 8 }, (_, at) => Number((number >> BigInt(bits - 8 * (at + 1))) & 255n))
  return ipaddr.fromByteArray(bytes).toString()
}

function blocksOf(table: readonly ProviderRanges[]): Block[] {
  return table.flatMap(({ provider, ranges }) =>
    ranges.map((range) => {
      const [address, length] = ipaddr.parseCIDR(range)
      const bits = address.kind() === 'ipv4' ? 32 : 128
      const first = toNumber(address.toByteArray())
      return { provider, bits, length, first, last: first + (1n << BigInt(bits - length)) - 1n }
    }),
  )
}

/** The longest block with an address in it, found by looking at all of them. */
function bruteForce(blocks: readonly Block[], number: bigint, bits: number): string | undefined {
  return blocks
    .filter((block) => block.bits === bits && block.first <= number && number <= block.last)
    .sort((a, b) => b.length - a.length)[0]?.provider
}

const shipped = blocksOf(PROVIDER_RANGES)

t.test('the facts of the specification', async (t) => {
  const likely = (provider: string) => ({ provider, confidence: 'likely' })
  const ambiguous = (provider: string) => ({ provider, confidence: 'ambiguous' })
  const cases: [string, object | null][] = [
    ['160.79.111.5', likely('anthropic')],
    ['172.66.0.243', ambiguous('cloudflare-fronted')],
    ['23.102.140.115', ambiguous('azure-hosted')],
    ['10.0.0.1', null],
    ['8.8.8.8', ambiguous('google-services')],
    // The ranges the specification names, at both of their ends.
    ['160.79.104.0', likely('anthropic')],
    ['172.64.0.0', ambiguous('cloudflare-fronted')],
    ['172.71.255.255', ambiguous('cloudflare-fronted')],
    ['162.158.0.0', ambiguous('cloudflare-fronted')],
    ['162.159.255.255', ambiguous('cloudflare-fronted')],
    ['104.16.0.0', ambiguous('cloudflare-fronted')],
    ['104.23.255.255', ambiguous('cloudflare-fronted')],
    ['104.24.0.0', ambiguous('cloudflare-fronted')],
    ['104.27.255.255', ambiguous('cloudflare-fronted')],
    ['2606:4700:4700::1111', ambiguous('cloudflare-fronted')],
    ['8.8.8.255', ambiguous('google-services')],
    ['20.0.0.0', ambiguous('azure-hosted')],
    ['20.255.255.255', ambiguous('azure-hosted')],
    // Well-known addresses of the others.
    ['140.82.112.3', likely('github')],
    ['104.192.141.1', likely('atlassian')],
    ['107.152.24.197', likely('box')],
    ['162.125.248.18', likely('dropbox')],
    ['136.146.32.10', likely('salesforce')],
    ['209.177.165.20', likely('workday')],
    ['170.114.10.74', likely('zoom')],
    ['52.216.8.1', ambiguous('aws-s3')],
    ['13.32.4.5', ambiguous('aws-cloudfront')],
    ['15.177.0.9', ambiguous('aws-route53_healthchecks')],
    ['3.216.135.7', ambiguous('aws-api_gateway')],
    ['151.101.1.140', ambiguous('fastly')],
    ['34.120.0.1', ambiguous('google-cloud')],
    ['2607:f8b0:4004:c07::8a', ambiguous('google-services')],
    ['52.98.1.1', ambiguous('microsoft365-exchange')],
    ['52.104.9.9', ambiguous('microsoft365-sharepoint')],
    ['52.113.194.132', ambiguous('microsoft365-skype')],
    ['20.190.128.1', ambiguous('microsoft365')],
  ]
  for (const [ip, owner] of cases) t.same(findProvider(ip), owner, ip)
})

t.test('every provider of the specification is in the table, with its confidence, and no other', async (t) => {
  const confidences = Object.fromEntries(PROVIDER_RANGES.map(({ provider, confidence }) => [provider, confidence]))
  t.strictSame(confidences, {
    anthropic: 'likely',
    atlassian: 'likely',
    'aws-api_gateway': 'ambiguous',
    'aws-cloudfront': 'ambiguous',
    'aws-route53_healthchecks': 'ambiguous',
    'aws-s3': 'ambiguous',
    'azure-hosted': 'ambiguous',
    box: 'likely',
    'cloudflare-fronted': 'ambiguous',
    dropbox: 'likely',
    fastly: 'ambiguous',
    github: 'likely',
    'google-cloud': 'ambiguous',
    'google-services': 'ambiguous',
    microsoft365: 'ambiguous',
    'microsoft365-exchange': 'ambiguous',
    'microsoft365-sharepoint': 'ambiguous',
    'microsoft365-skype': 'ambiguous',
    salesforce: 'likely',
    workday: 'likely',
    zoom: 'likely',
  })
  t.equal(PROVIDER_RANGES.length, 21, 'once each')
})

t.test('every range is a canonical public network of exactly one provider', async (t) => {
  const wrong: string[] = []
  const seen = new Set<string>()
  for (const { provider, sources, ranges } of PROVIDER_RANGES) {
    for (const { url, asOf } of sources) {
      if (!URL.canParse(url) || !/^20\d\d-\d\d-\d\d$/.test(asOf)) wrong.push(`${provider}: ${url} of ${asOf}`)
    }
    if (sources.length === 0) wrong.push(`${provider}: no source`)
    for (const range of ranges) {
      const [address, length] = ipaddr.parseCIDR(range)
      const network =
        address.kind() === 'ipv4'
          ? ipaddr.IPv4.networkAddressFromCIDR(range)
          : ipaddr.IPv6.networkAddressFromCIDR(range)
      if (`${network.toString()}/${length}` !== range) wrong.push(`${provider}: ${range} is not canonical`)
      if (address.range() !== 'unicast') wrong.push(`${provider}: ${range} is ${address.range()}`)
      if (seen.has(range)) wrong.push(`${provider}: ${range} is another's too`)
      seen.add(range)
    }
  }
  t.same(wrong, [])
})

t.test('addresses of no provider', async (t) => {
  const private4 = ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '169.254.1.1', '127.0.0.1']
  const private6 = ['::', '::1', 'fe80::1', 'fd00::1', 'ff02::1', '::ffff:10.0.0.1', '2001:db8::1']
  for (const ip of [...private4, ...private6, '0.0.0.0', '255.255.255.255', '224.0.0.1', '192.0.2.1']) {
    t.equal(findProvider(ip), null, ip)
  }
  const garbage = ['', ' ', 'x', '8.8.8', '8.8.8.8.8', '8.8.8.256', '008.8.8.8', '8.8.8.8 ', ' 8.8.8.8', '8.8.8.8/32']
  const worse = [
    '0x8080808',
    '134744072',
    '8.8.8.8:53',
    '[2606:4700::1]',
    '2606:4700::1%eth0',
    '2606:4700:::1',
    'dns.google',
  ]
  for (const text of [...garbage, ...worse]) t.equal(findProvider(text), null, JSON.stringify(text))
  t.doesNotThrow(() =>
    fc.assert(fc.property(fc.string(), (text) => ipaddr.isValid(text) || findProvider(text) === null)),
  )
})

t.test('other spellings of an address have the same provider', async (t) => {
  const google = { provider: 'google-services', confidence: 'ambiguous' }
  const cloudflare = { provider: 'cloudflare-fronted', confidence: 'ambiguous' }
  for (const ip of ['::ffff:8.8.8.8', '::FFFF:808:808', '0:0:0:0:0:ffff:8.8.8.8', '0000::ffff:0808:0808']) {
    t.same(findProvider(ip), google, ip)
  }
  for (const ip of ['2606:4700::1', '2606:4700:0000:0:0:0:0:1', '2606:4700::0.0.0.1', '2606:4700:00aB::']) {
    t.same(findProvider(ip), cloudflare, ip)
  }
})

t.test('at both edges of every range, and one address outside, the longest range wins', async (t) => {
  const wrong: string[] = []
  for (const { first, last, bits } of shipped) {
    for (const number of [first, last, first - 1n, last + 1n]) {
      const ip = toText(number, bits)
      const expected = bruteForce(shipped, number, bits)
      if (findProvider(ip)?.provider !== expected) wrong.push(`${ip}: ${findProvider(ip)?.provider}, not ${expected}`)
    }
  }
  t.same(wrong, [])
})

t.test('for any address and any table the longest range wins', async (t) => {
  const holds = <T>(name: string, anything: fc.Arbitrary<T>, property: (one: T) => boolean) =>
    t.doesNotThrow(() => fc.assert(fc.property(anything, property), { numRuns: 300 }), name)
  /** Such an address belongs to IPv4, which has cases of its own above. */
  const isMapped = (ip: string) => ipaddr.process(ip).kind() !== ipaddr.parse(ip).kind()
  const anyAddress = fc.constantFrom(4, 16).chain((size) => fc.uint8Array({ minLength: size, maxLength: size }))
  const addressNear = (block: Block) =>
    fc.bigInt({ min: block.first, max: block.last }).map((number) => ({ number, bits: block.bits }))
  holds('an address inside a range', fc.constantFrom(...shipped).chain(addressNear), ({ number, bits }) => {
    return findProvider(toText(number, bits))?.provider === bruteForce(shipped, number, bits)
  })
  holds('any address', anyAddress, (bytes) => {
    const number = toNumber([...bytes])
    return findProvider(toText(number, bytes.length * 8))?.provider === bruteForce(shipped, number, bytes.length * 8)
  })

  /** Few distinct bits and every length from the first, so that ranges nest deeply. */
  const anyRange = fc.tuple(anyAddress, fc.nat(127)).map(([bytes, cut]) => {
    const bits = bytes.length * 8
    const length = 1 + (cut % bits)
    const shift = BigInt(bits - length)
    const number = toNumber([...bytes].map((byte) => (byte < 128 ? 0 : 255)))
    return `${toText((number >> shift) << shift, bits)}/${length}`
  })
  const anyTable = fc.uniqueArray(anyRange, { minLength: 1, maxLength: 40 }).map((ranges) =>
    ranges.map((range): ProviderRanges => {
      return { provider: range, confidence: 'likely', complete: true, sources: [], ranges: [range] }
    }),
  )
  const manyAddresses = fc.array(anyAddress, { minLength: 20, maxLength: 20 })
  holds('any address in any table', fc.tuple(anyTable, manyAddresses), ([table, addresses]) => {
    const blocks = blocksOf(table)
    const find = indexProviders(table)
    return addresses.every((bytes) => {
      const number = toNumber([...bytes].map((byte) => (byte < 128 ? 0 : 255)))
      const ip = toText(number, bytes.length * 8)
      return isMapped(ip) || find(ip)?.provider === bruteForce(blocks, number, bytes.length * 8)
    })
  })
})

t.test('a bundle finds the table next to it or above, and says if it was not shipped', async (t) => {
  // Outside the project, where the table of the sources cannot be found by mistake.
  const folder = mkdtempSync(join(tmpdir(), 'svc-mcp-providers-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const load = async (place: string) => {
    const outfile = join(folder, place)
    const entryPoints = ['domain/traffic/providers/find-provider.ts']
    await build({ absWorkingDir: root, entryPoints, outfile, bundle: true, platform: 'node', format: 'esm' })
    return (await import(pathToFileURL(outfile).href)) as { findProvider: typeof findProvider }
  }
  const entry = await load('dist/stdio.mjs')
  t.throws(() => entry.findProvider('8.8.8.8'), { code: 'ENOENT' })

  cpSync(join(root, PROVIDER_RANGES_FILE), join(folder, 'dist', PROVIDER_RANGES_FILE))
  const google = { provider: 'google-services', confidence: 'ambiguous' }
  const chunk = await load('dist/stdio/chunk.mjs')
  t.same(
    [entry, chunk].map((module) => module.findProvider('8.8.8.8')),
    [google, google],
  )
})
