/** get-ip-list-matches: which lists and workloads have addresses or a name, on an estate whose right answers are known in full. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { tools } from '../../tools/index.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { startListed } from './listed-pce.js'

async function start(t: Test): Promise<Bench> {
  const bench = await startBench(t, {
    estate: handMade({
      hosts: {
        web: { ip: '10.1.2.3', labels: 'app=shop' },
        printer: { ip: '10.1.2.30', managed: false },
        six: { ip: '2001:db8::2', managed: false },
        mapped: { ip: '::ffff:10.1.9.9' },
        far: { ip: '10.200.0.1' },
      },
      ipLists: {
        Corporate: ['10.0.0.0/8', '!10.99.0.0/16'],
        Shop: ['10.1.2.0-10.1.2.127'],
        Split: ['10.1.2.0/25', '10.1.2.128/25', '!10.1.2.3'],
        Six: ['2001:DB8:0::/64', '!2001:db8::2'],
        Hole: ['0.0.0.0/0', '!10.0.0.0/9', '!10.128.0.0/9'],
        Lonely: ['!10.1.2.3'],
      },
    }),
  })
  await bench.ok('create-iplist', { name: 'Names', ip_ranges: [], fqdns: ['*.Example.com', 'db.example.org'] })
  await bench.ok('create-iplist', { name: 'Both', ip_ranges: [{ from_ip: '10.1.2.3' }], fqdn: 'a.b' })
  return bench
}

const ANY = 'Any (0.0.0.0/0 and ::/0)'

/** The lists of an answer by what they hold, in its order. */
async function holds(bench: Bench, args: object): Promise<Record<string, string[]>> {
  const { ip_lists: lists, ip_lists_total: total } = await bench.ok('get-ip-list-matches', {
    detail_level: 'full',
    ...args,
  })
  const found: Record<string, string[]> = {}
  for (const { name, holds: how } of lists) (found[how] ??= []).push(name)
  if (lists.length !== total) throw new Error('cut')
  return found
}

t.test('one address: in, out, and taken out; the narrowest list first', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('get-ip-list-matches', { address: '10.1.2.3' })
  t.same(answer, {
    message:
      '10.1.2.3 is wholly in 4, excluded from 2 of 9 IP lists of the draft. 1 other list has domain names, which may resolve to it. ' +
      '1 workload has it at an interface, 0 of them unmanaged.',
    policy_version: 'draft',
    asked: { addresses: '10.1.2.3', address_count: '1' },
    ip_lists_total: 6,
    ip_lists_analysed: 9,
    lists_with_names: 1,
    workloads_total: 1,
    workloads_unmanaged: 0,
    ip_lists: [
      row(9, { name: 'Both', holds: 'whole', ranges: ['10.1.2.3'], update_type: 'create' }),
      row(3, { name: 'Shop', holds: 'whole', ranges: ['10.1.2.0-10.1.2.127'] }),
      row(2, { name: 'Corporate', holds: 'whole', ranges: ['10.0.0.0/8'] }),
      row(1, { name: ANY, holds: 'whole', ranges: ['0.0.0.0/0'] }),
      row(4, { name: 'Split', holds: 'excluded', ranges: ['10.1.2.0/25', '!10.1.2.3'], excluded: ['10.1.2.3'] }),
      row(6, { name: 'Hole', holds: 'excluded', ranges: ['0.0.0.0/0', '!10.0.0.0/9'], excluded: ['10.1.2.3'] }),
    ],
    workloads: [
      {
        name: 'web',
        href: '/orgs/1/workloads/00000000-0000-4000-8000-000000000001',
        managed: true,
        addresses: ['10.1.2.3'],
        labels: ['app=shop'],
      },
    ],
  })
  t.same(
    await holds(bench, { address: '::ffff:10.1.2.3' }),
    await holds(bench, { address: '10.1.2.3' }),
    'the same address',
  )
})

const row = (id: number, { name, ...facts }: Json) => ({
  name,
  href: `/orgs/1/sec_policy/draft/ip_lists/${id}`,
  ...facts,
})

t.test('networks and ranges: whole, part, by exclusion not; in either family', async (t) => {
  const bench = await start(t)
  t.same(await holds(bench, { address: '10.1.2.0/24' }), {
    whole: ['Corporate', ANY],
    part: ['Both', 'Shop', 'Split'],
    excluded: ['Hole'],
  })
  t.same(await holds(bench, { address: '10.1.2.77/24' }), await holds(bench, { address: ' 10.1.2.0 - 10.1.2.255 ' }))
  t.same(await holds(bench, { address: '10.98.255.255-10.99.0.0' }), {
    whole: [ANY],
    part: ['Corporate'],
    excluded: ['Hole'],
  })
  t.same(await holds(bench, { address: '10.99.1.0/24' }), { whole: [ANY], excluded: ['Corporate', 'Hole'] })
  t.same(await holds(bench, { address: '9.255.255.255-10.0.0.0' }), { whole: [ANY], part: ['Corporate', 'Hole'] })
  t.same(await holds(bench, { address: '2001:db8::/64' }), { whole: [ANY], part: ['Six'] })
  t.same(await holds(bench, { address: '2001:0db8::2' }), { whole: [ANY], excluded: ['Six'] })
  t.same(await holds(bench, { address: '2001:db8::1' }), { whole: ['Six', ANY] })
  t.same(await holds(bench, { address: '::-::ffff:ffff' }), { whole: [ANY] })

  const { ip_lists: lists } = await bench.ok('get-ip-list-matches', { address: '10.1.2.0/24' })
  const of = (wanted: string) => lists.find(({ name }: Json) => name === wanted)
  partial(t, of('Split'), {
    ranges: ['10.1.2.0/25', '10.1.2.128/25', '!10.1.2.3'],
    held: ['10.1.2.0-10.1.2.2', '10.1.2.4-10.1.2.255'],
    held_addresses: '255',
    excluded: ['10.1.2.3'],
  })
  partial(t, of('Shop'), { held: ['10.1.2.0/25'], held_addresses: '128' })
  t.match(of('Both').note, /domain names may resolve to more/)
  const six = (await bench.ok('get-ip-list-matches', { address: '2001:db8::/64' })).ip_lists[1]
  partial(t, six, {
    held: ['2001:db8::/127', '2001:db8::3-2001:db8::ffff:ffff:ffff:ffff'],
    held_addresses: String(2n ** 64n - 1n),
  })
})

t.test('workloads by the addresses of their interfaces', async (t) => {
  const bench = await start(t)
  const found = async (address: string) => {
    const answer = await bench.ok('get-ip-list-matches', { address, detail_level: 'full' })
    t.equal(answer.workloads.length, answer.workloads_total, address)
    t.equal(answer.workloads_unmanaged, answer.workloads.filter(({ managed }: Json) => !managed).length)
    return answer.workloads.map(({ name, addresses }: Json) => `${name} ${addresses}`)
  }
  t.same(await found('10.1.2.30'), ['printer 10.1.2.30'])
  t.same(await found('10.1.2.3'), ['web 10.1.2.3'], 'and not the one whose address begins like it')
  t.same(await found('10.1.0.0/16'), ['web 10.1.2.3', 'printer 10.1.2.30', 'mapped ::ffff:10.1.9.9'])
  t.same(await found('2001:db8::/32'), ['six 2001:db8::2'])
  t.same(await found('2001:DB8:0:0::0002'), ['six 2001:db8::2'])
  t.same(await found('192.0.2.1'), [])
  t.match(
    (await bench.ok('get-ip-list-matches', { address: '192.0.2.1' })).message,
    /No workload has it at an interface\.$/,
  )
})

t.test('a domain name is compared as it is written', async (t) => {
  const bench = await start(t)
  partial(t, await bench.ok('get-ip-list-matches', { fqdn: 'WWW.example.com' }), {
    message:
      'The name "WWW.example.com" is in 1 of 9 IP lists of the draft. Names are compared as written; none is resolved.',
    ip_lists: [{ name: 'Names', holds: 'whole', names: ['*.Example.com'] }],
  })
  t.same(await holds(bench, { fqdn: 'example.com' }), {}, 'the star stands for a label before the dot')
  t.same(await holds(bench, { fqdn: 'db.example.org' }), { whole: ['Names'] })
  t.same(await holds(bench, { fqdn: '*.example.com' }), { whole: ['Names'] })
  t.same(await holds(bench, { fqdn: 'dbxexample.org' }), {})
  t.notOk('workloads' in (await bench.ok('get-ip-list-matches', { fqdn: 'db.example.org' })))
})

t.test('ranges that cannot be read leave undecided what they may change, and nothing else', async (t) => {
  const bench = await start(t)
  const list = (id: number, ...ranges: string[]) => ({
    href: `/orgs/1/sec_policy/draft/ip_lists/${id}`,
    name: `L${id}`,
    ip_ranges: ranges.map((range) => ({ from_ip: range.replace('!', ''), exclusion: range.startsWith('!') })),
    fqdns: null,
  })
  const body = [
    list(1, '10.0.0.0/8', '::ffff:10.0.0.1'),
    list(2, '10.0.0.0/8', '!somewhere'),
    list(3, '192.0.2.0/24', 'somewhere'),
    list(4, '192.0.2.0/24', '!somewhere'),
    { ...list(5), ip_ranges: null },
  ]
  bench.simulator.faults.add({ kind: 'status', status: 200, path: /\/ip_lists$/, times: 1, body })
  const { ip_lists: lists } = await bench.ok('get-ip-list-matches', { address: '10.0.0.1' })
  t.same(
    lists.map(({ name, holds: how }: Json) => `${name} ${how}`),
    ['L1 whole', 'L5 uncertain', 'L3 uncertain', 'L2 uncertain'],
  )
  t.match(lists[1].note, /neither ranges nor domain names/)
  t.match(lists[2].note, /cannot be read/)
  partial(t, lists[3], { held: ['10.0.0.1'], held_addresses: '1' })
})

t.test('the version asked for, and what is no question', async (t) => {
  const bench = await start(t)
  await bench.ok('update-iplist', { name: 'Shop', ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  partial(t, await holds(bench, { address: '192.0.2.7' }), { whole: ['Shop', 'Hole', ANY] })
  for (const policy_version of ['active', 1])
    t.same(await holds(bench, { address: '192.0.2.7', policy_version }), { whole: ['Hole', ANY] })
  t.match(
    (await bench.ok('get-ip-list-matches', { address: '::1', policy_version: 1 })).message,
    /of 7 IP lists of policy version 1\./,
  )
  bench.simulator.clearRequests()
  partial(t, await bench.fails('get-ip-list-matches', {}, 'missing_identifier'), { arguments: ['address', 'fqdn'] })
  await bench.fails('get-ip-list-matches', { address: '10.0.0.1', fqdn: 'a.b' }, 'conflicting_identifiers')
  for (const [address, why] of [
    ['example.com', /neither an address nor a CIDR/],
    ['10.0.0', /neither/],
    ['10.0.0.0/33', /not a CIDR/],
    ['10.0.0.0/8/9', /not a CIDR/],
    ['10.0.0.0/8-10.1.0.0', /already a network/],
    ['10.0.0.9-10.0.0.1', /"10\.0\.0\.1" is before "10\.0\.0\.9"/],
    ['10.0.0.1-::1', /different address families/],
    ['10.0.0.1-10.0.0.2-10.0.0.3', /no range/],
    ['10.0.0.1-', /"" is not an address/],
    ['fe80::1%eth0', /neither/],
    ['::ffff:10.0.0.0/104', /write the network as IPv4/],
  ] as const)
    partial(t, await bench.fails('get-ip-list-matches', { address }, 'invalid_argument'), {
      argument: 'address',
      message: why,
    })
  t.same(bench.simulator.requests, [], 'before anything is read')
  await bench.fails('get-ip-list-matches', { address: '10.0.0.1', policy_version: 9 }, 'not_found')
})

t.test('totals count everything, whatever is shown', async (t) => {
  const hosts = Object.fromEntries(
    Array.from({ length: 60 }, (_, at) => [`host${at}`, { ip: `10.0.0.${at}`, managed: at > 3 }]),
  )
  const bench = await startBench(t, { estate: handMade({ hosts }) })
  const answer = await bench.ok('get-ip-list-matches', { address: '10.0.0.0/24' })
  partial(t, answer, { workloads_total: 60, workloads_unmanaged: 4, truncated_sections: ['workloads'] })
  t.equal(answer.workloads.length, 10)
  t.match(answer.truncation_note, /detail_level full/)
  bench.simulator.clearRequests()
  t.equal(
    (await bench.ok('get-ip-list-matches', { address: '10.0.0.0/24', detail_level: 'full', policy_version: 1 }))
      .workloads.length,
    60,
  )
  const { atMost } = tools.find(({ name }) => name === 'get-ip-list-matches')!.pceRequests!
  t.ok(bench.simulator.requests.length <= atMost, `${bench.simulator.requests.length} requests`)
})

t.test('Kubernetes workloads have addresses, too', async (t) => {
  const pod = (id: string, private_ip_addresses: string[] | null) => ({
    href: `/orgs/1/kubernetes_workloads/${id}`,
    name: id,
    kind: 'Deployment',
    namespace: 'shop',
    labels: [],
    private_ip_addresses,
  })
  const lists = { kubernetes_workloads: [pod('cart', ['10.244.0.7']), pod('far', ['10.244.0.8']), pod('mute', null)] }
  const bench = await startListed(t, { lists })
  const { message, workloads } = await bench.ok('get-ip-list-matches', { address: '10.244.0.7' })
  t.match(
    message,
    / 1 workload has it at an interface, 0 of them unmanaged\. The PCE does not tell the addresses of 1 Kube/,
  )
  t.same(workloads, [
    {
      name: 'cart',
      href: '/orgs/1/kubernetes_workloads/cart',
      managed: true,
      addresses: ['10.244.0.7'],
      labels: [],
    },
  ])
  const mute = await startListed(t, { lists: {}, refused: { kubernetes_workloads: 403 } })
  t.match(
    (await mute.ok('get-ip-list-matches', { address: '10.244.0.7' })).message,
    / No workload has it at an interface\. Kubernetes workloads could not be read \(/,
  )
})
