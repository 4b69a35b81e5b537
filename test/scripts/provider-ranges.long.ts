/** `node --import tsx scripts/provider-ranges.ts`: from the publishers' feeds to the table of provider ranges, or to an error and no change. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseLines } from '../../scripts/provider-ranges/parse-feeds.js'
import { fromPublishers, readClaims } from '../../scripts/provider-ranges/read-feeds.js'
import type { ProviderRanges } from '../../domain/traffic/providers/read-ranges.js'
import { contains, partial } from '../partial.js'
import { compiled } from '../suite-folder.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FILE_DAY = new Date('2031-05-06T07:08:09Z')

/** A few lines of every feed, each in the publisher's form, with what must be left out of it and put together. */
const FEEDS: Record<string, unknown> = {
  'aws-ip-ranges.json': {
    createDate: '2031-01-02-03-04-05',
    prefixes: [
      { ip_prefix: '52.216.0.0/16', service: 'S3', region: 'us-east-1' },
      { ip_prefix: '52.217.0.0/16', service: 'S3' },
      { ip_prefix: '52.216.9.0/24', service: 'S3' },
      { ip_prefix: '13.32.0.0/15', service: 'CLOUDFRONT' },
      { ip_prefix: '3.7.10.0/23', service: 'API_GATEWAY' },
      { ip_prefix: '15.177.0.0/18', service: 'ROUTE53_HEALTHCHECKS' },
      { ip_prefix: '3.5.140.0/22', service: 'EC2' },
    ],
    ipv6_prefixes: [{ ipv6_prefix: '2600:1FA0:0:0::/40', service: 'S3' }],
  },
  'atlassian.json': {
    creationDate: '2031-02-03T04:05:06.789',
    items: [
      { cidr: '104.192.136.0/21', direction: ['egress', 'ingress'] },
      { cidr: '167.89.0.0/17', direction: ['egress'] },
    ],
  },
  'cloudflare-v4.txt': '172.64.0.0/13\r\n104.16.0.0/13\r\n\r\n',
  'cloudflare-v6.txt': '2606:4700::/32',
  'fastly.json': { addresses: ['151.101.0.0/16'], ipv6_addresses: ['2a04:4e42::/32'] },
  'github-meta.json': {
    web: ['140.82.112.0/20', '20.201.28.151/32'],
    api: ['140.82.112.0/20'],
    git: ['140.82.112.0/20'],
    packages: ['140.82.121.33/32'],
    pages: ['185.199.108.153/32'],
    actions: ['4.148.0.0/16'],
  },
  'google-cloud.json': {
    creationTime: '2031-03-04T05:06:07.8',
    prefixes: [{ ipv4Prefix: '34.80.0.0/15', scope: 'asia-east1' }, { ipv6Prefix: '2600:1901::/48' }],
  },
  'google-goog.json': {
    creationTime: '2031-04-05T06:07:08.9',
    prefixes: [{ ipv4Prefix: '8.8.8.0/24' }, { ipv4Prefix: '34.80.0.0/15' }, { ipv4Prefix: '142.250.0.0/15' }],
  },
  'msft-public-ips.csv': 'Prefix,Type\n20.0.0.0/11, MSFT Public IP Address Block\n',
  'microsoft365-endpoints.json': [
    { id: 1, serviceArea: 'Exchange', ips: ['52.96.0.0/14', '132.245.0.0/16'] },
    { id: 2, serviceArea: 'Exchange', urls: ['outlook.example'] },
    { id: 3, serviceArea: 'SharePoint', ips: ['52.104.0.0/14'] },
    { id: 4, serviceArea: 'Skype', ips: ['52.112.0.0/14'] },
    { id: 5, serviceArea: 'Common', ips: ['20.190.128.0/18'] },
  ],
  'salesforce-ip-ranges.json': {
    createDate: '2031-02-02-00-00-00',
    prefixes: [{ provider: 'aws', region: 'x', ip_prefix: ['145.224.192.0/24', '145.224.193.0/24'] }],
    ipv6_prefixes: [],
  },
  'zoom.txt': '170.114.0.0/16\n206.247.0.0/16\n',
}

/** A directory of these feeds, some of them replaced. `undefined` leaves a feed out. */
function writeFeeds(dir: string, replaced: Record<string, unknown> = {}): void {
  for (const [name, feed] of Object.entries({ ...FEEDS, ...replaced })) {
    rmSync(join(dir, name), { force: true })
    if (feed === undefined) continue
    writeFileSync(join(dir, name), typeof feed === 'string' ? feed : JSON.stringify(feed))
    utimesSync(join(dir, name), FILE_DAY, FILE_DAY)
  }
}

const run = (...args: string[]) =>
  spawnSync(process.execPath, [compiled('scripts/provider-ranges.ts'), ...args], {
    cwd: ROOT,
    encoding: 'utf8',
  })

t.test('builds a table from feeds', async (t) => {
  const dir = t.testdir({ feeds: {}, out: {} })
  const [feeds, out] = [join(dir, 'feeds'), join(dir, 'out', 'table.json')]
  writeFeeds(feeds)
  const first = run('--from', feeds, '--to', out)
  t.equal(first.status, 0, first.stderr)
  t.match(first.stdout, /^zoom: new, 2 ranges$/m)
  t.match(first.stdout, /^21 providers, \d+ ranges: written$/m)
  const written = readFileSync(out, 'utf8')

  const table = JSON.parse(written) as ProviderRanges[]
  const of = (name: string) => table.find(({ provider }) => provider === name)!
  const names = table.map(({ provider }) => provider)
  t.same(names, names.toSorted(), 'in order of their names')
  t.same(
    of('aws-s3'),
    {
      provider: 'aws-s3',
      confidence: 'ambiguous',
      complete: true,
      sources: [{ url: 'https://ip-ranges.amazonaws.com/ip-ranges.json', asOf: '2031-01-02' }],
      ranges: ['52.216.0.0/15', '2600:1fa0::/40'],
    },
    'neighbours are joined, what lies inside is dropped, other services are left out, and the feed tells its day',
  )
  t.same(of('atlassian').ranges, ['104.192.136.0/21'], 'what only connects out is nobody’s destination')
  t.same(of('cloudflare-fronted').ranges, ['104.16.0.0/13', '172.64.0.0/13', '2606:4700::/32'], 'two feeds, in order')
  t.same(
    of('cloudflare-fronted').sources.map(({ asOf }) => asOf),
    ['2031-05-06', '2031-05-06'],
    'a feed without a date has that of its file',
  )
  t.same(of('fastly').ranges, ['151.101.0.0/16', '2a04:4e42::/32'])
  t.same(of('github').ranges, ['20.201.28.151/32', '140.82.112.0/20', '185.199.108.153/32'], 'runners are left out')
  t.same(of('google-cloud').ranges, ['34.80.0.0/15', '2600:1901::/48'])
  t.same(
    of('google-services').ranges,
    ['8.8.8.0/24', '142.250.0.0/15'],
    'a block of two belongs to the more telling one',
  )
  t.same(of('microsoft365-exchange').ranges, ['52.96.0.0/14', '132.245.0.0/16'])
  t.same(of('microsoft365').ranges, ['20.190.128.0/18'])
  t.same(of('zoom').confidence, 'likely')
  t.ok(of('azure-hosted').ranges.includes('20.0.0.0/11') && of('azure-hosted').ranges.includes('4.144.0.0/12'))
  t.equal(of('azure-hosted').sources.length, 2, 'a feed and facts entered by hand')
  t.ok(of('salesforce').ranges.includes('145.224.192.0/23') && of('salesforce').ranges.includes('13.108.0.0/14'))
  t.same(of('anthropic').ranges, ['160.79.104.0/21', '2607:6bc0::/48'], 'entered by hand')

  const again = run('--from', feeds, '--to', out)
  t.equal(again.status, 0, again.stderr)
  t.match(again.stdout, /^21 providers, \d+ ranges: nothing changed\n$/)
  t.equal(readFileSync(out, 'utf8'), written, 'the same feeds make the same file')

  writeFeeds(feeds, { 'zoom.txt': '170.114.0.0/16\n144.195.0.0/16\n159.124.0.0/16\n' })
  const changed = run('--from', feeds, '--to', out)
  t.equal(changed.status, 0, changed.stderr)
  t.match(changed.stdout, /^zoom: 2 ranges added, 1 removed; as of 2031-05-06\n21 providers, \d+ ranges: written\n$/)
  contains(t, readFileSync(out, 'utf8'), '144.195.0.0/16')
  t.same(readdirSync(join(dir, 'out')), ['table.json'], 'nothing else is left behind')
})

t.test('writes nothing if one feed is bad', async (t) => {
  const dir = t.testdir({ feeds: {} })
  const [feeds, out] = [join(dir, 'feeds'), join(dir, 'table.json')]
  const aws = FEEDS['aws-ip-ranges.json'] as { prefixes: object[] }
  // Several faults a run: each run starts a process.
  const runs: { feeds: Record<string, unknown>; says: (string | RegExp)[] }[] = [
    {
      feeds: {
        'fastly.json': '<!doctype html><title>Sign in</title>',
        'atlassian.json': { items: [] },
        'google-goog.json': { creationTime: '2031-04-05', prefixes: [{ ipv4Prefix: '8.8.8.8/24' }] },
        'zoom.txt': '170.114.0.0/16\nzoom.example\n',
        'github-meta.json': undefined,
      },
      says: [
        /^fastly\.json: not JSON: /m,
        /^atlassian\.json: \/creationDate: /m,
        /^google-goog\.json: "8\.8\.8\.8\/24" has bits set behind its prefix$/m,
        /^zoom\.txt: "zoom\.example" is not a CIDR$/m,
        /^github-meta\.json: ENOENT/m,
      ],
    },
    {
      feeds: {
        'aws-ip-ranges.json': { ...aws, prefixes: aws.prefixes.slice(0, -2) },
        'google-cloud.json': { creationTime: 'today', prefixes: [] },
        'google-goog.json': { creationTime: '2031-04-05', prefixes: [{ prefix: '8.8.8.0/24' }] },
        'cloudflare-v4.txt': '10.0.0.0/8\n',
        'cloudflare-v6.txt': '',
        'zoom.txt': '170.0.0.0/7\n',
        'msft-public-ips.csv': '20.0.0.0/11\n',
        'microsoft365-endpoints.json': [{ serviceArea: 'Exchange', ips: ['52.96.0.0'] }],
      },
      says: [
        /^aws-ip-ranges\.json: no range for aws-route53_healthchecks$/m,
        /^google-cloud\.json: \/creationTime: /m,
        /^google-goog\.json: \/prefixes\/0: /m,
        /^cloudflare-v4\.txt: "10\.0\.0\.0\/8" is private, not public$/m,
        /^cloudflare-v6\.txt: no range for cloudflare-fronted$/m,
        /^zoom\.txt: "170\.0\.0\.0\/7" is too large to be one provider's$/m,
        /^msft-public-ips\.csv: line 1: expected the heading/m,
        /^microsoft365-endpoints\.json: /m,
      ],
    },
  ]
  for (const { feeds: replaced, says } of runs) {
    writeFeeds(feeds, replaced)
    const { status, stdout, stderr } = run('--from', feeds, '--to', out)
    t.equal(status, 1)
    t.equal(stdout, '')
    for (const line of says) partial(t, stderr, line)
    t.match(stderr, /\nNothing was written\.\n$/)
    t.notOk(/^ {4}at /m.test(stderr), 'a message, not a stack')
    t.notOk(existsSync(out))
  }

  const missing = run('--from', join(dir, 'nowhere'), '--to', out)
  t.equal(missing.status, 1)
  t.match(missing.stderr, /^zoom\.txt: ENOENT/m)
  t.match(run('--form', feeds).stderr, /--form/, 'a mistyped option is not taken for the internet')
})

t.test('fetches a feed from its publisher', async (t) => {
  const asked: (string | undefined)[] = []
  const publisher = createServer((request, response) => {
    asked.push(request.url)
    response.writeHead(request.url === '/gone' ? 404 : 200).end('170.114.0.0/16\n')
  }).listen(0, '127.0.0.1')
  t.teardown(() => publisher.close())
  await once(publisher, 'listening')
  const url = `http://127.0.0.1:${(publisher.address() as AddressInfo).port}`
  const feed = { file: 'zoom.txt', url: `${url}/list`, query: () => '?id=1', parse: parseLines('zoom') }
  const read = fromPublishers(new Date('2031-06-07T08:09:10Z'))
  t.same(await readClaims([feed], read), [
    { provider: 'zoom', url: `${url}/list`, asOf: '2031-06-07', ranges: ['170.114.0.0/16'] },
  ])
  t.same(asked, ['/list?id=1'], 'the question is not part of the source')
  await t.rejects(readClaims([feed, { ...feed, url: `${url}/gone`, query: undefined }], read), {
    message: `zoom.txt: ${url}/gone answered 404`,
  })
})
