/** find-unmanaged-traffic: what has no app label at one end, or at both, in estates whose answer is known. */
import t from 'tap'
import type { FlowNode, TrafficFlow } from '../../schemas/pce/traffic.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createUnlabelledTrafficFinder } from '../../domain/traffic/find-unlabelled.js'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { NOW, startBench, type Json } from './harness.js'

const TOOL = 'find-unmanaged-traffic'
const ESTATE = handMade({
  hosts: {
    web: { ip: '10.0.0.1', labels: 'app=shop env=prod' },
    api: { ip: '10.0.0.2', labels: 'app=shop-api' },
    bare: { ip: '10.0.0.3' },
    half: { ip: '10.0.0.4', labels: 'env=prod' },
    box: { ip: '10.0.0.5', managed: false },
    printer: { ip: '10.0.0.6', managed: false, labels: 'app=print env=prod' },
    vault: { ip: '10.0.0.7', labels: 'app=vault env=prod', mode: 'full' },
    open: { ip: '10.0.0.8', labels: 'app=open env=dev', mode: 'selective' },
  },
  ipLists: {
    Corp: ['192.168.0.0/16'],
    Branch: ['192.168.5.0/24'],
    Elsewhere: ['172.16.0.0/12'],
  },
  flows: [
    { from: '192.168.5.9', to: 'web', connections: 7 },
    { from: '203.0.113.5', to: 'web', connections: 3, process: '/usr/sbin/nginx' },
    { from: '203.0.113.5', to: 'web', connections: 5, process: '/usr/sbin/apache2', daysAgo: 3 },
    { from: '203.0.113.5', to: 'web', connections: 500, process: '/usr/sbin/nginx', daysAgo: 31 },
    { from: 'bare', to: 'api', port: 5432, connections: 2 },
    { from: 'half', to: 'web', connections: 4 },
    { from: 'box', to: 'web', port: 22, connections: 6 },
    { from: '203.0.113.5', to: 'vault', port: 22, connections: 14 },
    { from: '203.0.113.5', to: 'open', port: 80, connections: 15 },
    { from: 'fd00::9', to: 'web', connections: 1 },
    { from: 'web', to: '198.51.100.7', fqdn: 'api.vendor.example', connections: 9 },
    { from: 'web', to: '198.51.100.7', fqdn: 'cdn.vendor.example', connections: 1 },
    { from: 'api', to: '192.168.1.1', port: 53, proto: 17, connections: 11 },
    { from: 'web', to: 'bare', proto: 1, connections: 2 },
    { from: 'bare', to: 'half', port: 22, connections: 12, process: '/usr/bin/ssh' },
    { from: 'bare', to: '203.0.113.9', connections: 13 },
    // Nobody decides on this one, and it is not asked for.
    { from: '192.168.5.9', to: 'box', port: 445, connections: 3 },
    { from: 'web', to: 'api', connections: 100 },
    { from: 'web', to: 'web', connections: 20 },
    { from: 'printer', to: 'web', port: 9100, connections: 30 },
  ],
})

/** Everything but the times. */
const withoutTimes = (rows: Json[]) =>
  rows.map(({ first_detected: _first, last_detected: _last, ...rest }: Json) => rest)

const SOURCES = [
  {
    src_ip: '203.0.113.5',
    kind: 'unknown_ip',
    dst_app: 'open',
    dst_env: 'dev',
    port: 80,
    proto: 6,
    connections: 15,
    // Selective and no deny rule: it passes without anyone having allowed it.
    policy_decisions: { potentially_blocked: 15 },
  },
  {
    src_ip: '203.0.113.5',
    kind: 'unknown_ip',
    dst_app: 'vault',
    dst_env: 'prod',
    port: 22,
    proto: 6,
    connections: 14,
    policy_decisions: { blocked: 14 },
  },
  {
    src_ip: '203.0.113.5',
    kind: 'unknown_ip',
    dst_app: 'shop',
    dst_env: 'prod',
    port: 443,
    proto: 6,
    connections: 8,
    policy_decisions: { potentially_blocked: 8 },
    processes: ['/usr/sbin/apache2', '/usr/sbin/nginx'],
  },
  {
    src_ip: '192.168.5.9',
    kind: 'ip_list',
    ip_lists: ['Branch', 'Corp'],
    dst_app: 'shop',
    dst_env: 'prod',
    port: 443,
    proto: 6,
    connections: 7,
    policy_decisions: { potentially_blocked: 7 },
  },
  {
    src_ip: '10.0.0.5',
    kind: 'unlabelled_workload',
    hostname: 'box',
    dst_app: 'shop',
    dst_env: 'prod',
    port: 22,
    proto: 6,
    connections: 6,
    policy_decisions: { potentially_blocked: 6 },
  },
  {
    src_ip: '10.0.0.4',
    kind: 'unlabelled_workload',
    hostname: 'half',
    dst_app: 'shop',
    dst_env: 'prod',
    port: 443,
    proto: 6,
    connections: 4,
    policy_decisions: { potentially_blocked: 4 },
  },
  {
    src_ip: '10.0.0.3',
    kind: 'unlabelled_workload',
    hostname: 'bare',
    dst_app: 'shop-api',
    dst_env: '-',
    port: 5432,
    proto: 6,
    connections: 2,
    policy_decisions: { potentially_blocked: 2 },
  },
  {
    src_ip: 'fd00::9',
    kind: 'unknown_ip',
    dst_app: 'shop',
    dst_env: 'prod',
    port: 443,
    proto: 6,
    connections: 1,
    policy_decisions: { potentially_blocked: 1 },
  },
]
const DESTINATIONS = [
  {
    dst_ip: '192.168.1.1',
    kind: 'ip_list',
    ip_lists: ['Corp'],
    src_app: 'shop-api',
    src_env: '-',
    port: 53,
    proto: 17,
    connections: 11,
    policy_decisions: { potentially_blocked: 11 },
  },
  {
    dst_ip: '198.51.100.7',
    kind: 'unknown_ip',
    fqdn: 'api.vendor.example, cdn.vendor.example',
    src_app: 'shop',
    src_env: 'prod',
    port: 443,
    proto: 6,
    connections: 10,
    policy_decisions: { potentially_blocked: 10 },
  },
  {
    dst_ip: '10.0.0.3',
    kind: 'unlabelled_workload',
    hostname: 'bare',
    src_app: 'shop',
    src_env: 'prod',
    port: 0,
    proto: 1,
    connections: 2,
    policy_decisions: { potentially_blocked: 2 },
  },
]
const PAIRS = [
  {
    src_ip: '10.0.0.3',
    src_kind: 'unlabelled_workload',
    src_name: 'bare',
    dst_ip: '203.0.113.9',
    dst_kind: 'unknown_ip',
    port: 443,
    proto: 6,
    connections: 13,
    policy_decisions: { potentially_blocked: 13 },
  },
  {
    src_ip: '10.0.0.3',
    src_kind: 'unlabelled_workload',
    src_name: 'bare',
    dst_ip: '10.0.0.4',
    dst_kind: 'unlabelled_workload',
    dst_name: 'half',
    port: 22,
    proto: 6,
    connections: 12,
    policy_decisions: { potentially_blocked: 12 },
    processes: ['/usr/bin/ssh'],
  },
]

t.test('a fully known estate', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })

  await t.test('every row is listed under what it lacks', async (t) => {
    const answer = await bench.ok(TOOL)
    t.strictSame(withoutTimes(answer.unmanaged_sources), SOURCES)
    t.strictSame(withoutTimes(answer.unmanaged_destinations), DESTINATIONS)
    t.strictSame(withoutTimes(answer.both_unlabelled), PAIRS)
    partial(t, answer, {
      lookback_days: 30,
      direction_filter: 'both',
      min_connections: 1,
      unmanaged_source_count: 8,
      unmanaged_destination_count: 3,
      flows_truncated: false,
      window: { start: '2026-05-16T00:00:00Z', end: '2026-06-15T23:59:59Z' },
    })
    t.strictSame(answer.section_totals, { sources: 8, destinations: 3, both_unlabelled: 2 })
    t.strictSame(answer.distinct_ips, { sources: 6, destinations: 3 })
    t.strictSame(answer.connections, { both_labelled: 150, sources: 57, destinations: 23, both_unlabelled: 25 })
    t.match(answer.recommendation, /unlabelled_workload.*IP lists.*unknown_ip/)
    t.notOk('message' in answer || 'truncated_sections' in answer)
  })

  await t.test('times are the first and last of the group', async (t) => {
    const { unmanaged_sources: rows } = await bench.ok(TOOL)
    const row = rows.find(({ dst_app: app, connections }: Json) => app === 'shop' && connections === 8)
    partial(t, row, { first_detected: '2026-06-12T01:00:00Z', last_detected: '2026-06-14T01:00:00Z' })
  })

  await t.test('asks the PCE for every decided flow', async (t) => {
    await bench.ok(TOOL, { lookback_days: 1 })
    const { body } = bench.simulator.requests.findLast(({ method }) => method === 'POST') as Json
    partial(t, body, {
      start_date: '2026-06-14T00:00:00Z',
      end_date: '2026-06-15T23:59:59Z',
      sources: { include: [[]], exclude: [] },
      destinations: { include: [[]], exclude: [] },
      max_results: 200_000,
    })
    t.strictSame(body.policy_decisions, ['allowed', 'potentially_blocked', 'blocked'])
  })

  await t.test('direction is that of the labelled end; traffic without one is always included', async (t) => {
    const inbound = await bench.ok(TOOL, { direction: 'inbound' })
    t.strictSame(withoutTimes(inbound.unmanaged_sources), SOURCES)
    t.strictSame(inbound.unmanaged_destinations, [])
    partial(t, inbound, { direction_filter: 'inbound', unmanaged_source_count: 8, unmanaged_destination_count: 0 })
    t.strictSame(inbound.section_totals, { sources: 8, destinations: 0, both_unlabelled: 2 })
    t.equal(inbound.connections.destinations, 23, 'what the filter leaves out is still counted')

    const outbound = await bench.ok(TOOL, { direction: 'outbound' })
    t.strictSame(outbound.unmanaged_sources, [])
    t.strictSame(withoutTimes(outbound.unmanaged_destinations), DESTINATIONS)
    t.strictSame(outbound.distinct_ips, { sources: 0, destinations: 3 })
    t.equal(outbound.both_unlabelled.length, 2)
  })

  await t.test('min_connections applies per row, after summing', async (t) => {
    const answer = await bench.ok(TOOL, { min_connections: 8 })
    t.strictSame(withoutTimes(answer.unmanaged_sources), SOURCES.slice(0, 3))
    t.strictSame(withoutTimes(answer.unmanaged_destinations), DESTINATIONS.slice(0, 2))
    t.strictSame(answer.section_totals, { sources: 3, destinations: 2, both_unlabelled: 2 })
    t.strictSame(answer.distinct_ips, { sources: 1, destinations: 2 })
    t.equal(answer.connections.sources, 57)
  })

  await t.test('counts cover everything, top_n only what is shown', async (t) => {
    const answer = await bench.ok(TOOL, { top_n: 2 })
    t.strictSame(withoutTimes(answer.unmanaged_sources), SOURCES.slice(0, 2))
    t.strictSame(withoutTimes(answer.unmanaged_destinations), DESTINATIONS.slice(0, 2))
    partial(t, answer, { unmanaged_source_count: 8, unmanaged_destination_count: 3 })
    t.strictSame(answer.distinct_ips, { sources: 6, destinations: 3 })
    t.strictSame(answer.truncated_sections, ['unmanaged_sources', 'unmanaged_destinations'])
    t.match(answer.truncation_note, /At most 2 rows/)
  })

  await t.test('nothing left: the same shape with a reason', async (t) => {
    const answer = await bench.ok(TOOL, { min_connections: 1000 })
    partial(t, answer, {
      unmanaged_sources: [],
      unmanaged_destinations: [],
      both_unlabelled: [],
      flows_truncated: false,
    })
    t.strictSame(answer.section_totals, { sources: 0, destinations: 0, both_unlabelled: 0 })
    t.match(answer.message, /min_connections/)
  })

  await t.test('bad arguments', async () => {
    for (const args of [
      { lookback_days: 0 },
      { lookback_days: 366 },
      { direction: 'sideways' },
      { min_connections: -1 },
      { top_n: 0 },
      { top_n: 1001 },
      { max_rows: 5 },
    ])
      await bench.fails(TOOL, args, 'invalid_argument')
  })
})

t.test('a row breaks its connections down by decision', async (t) => {
  const labels = 'app=shop env=prod'
  const bench = await startBench(t, {
    estate: handMade({
      hosts: { web: { ip: '10.0.0.1', labels }, 'web-2': { ip: '10.0.0.2', labels, mode: 'full' } },
      flows: [
        { from: '192.0.2.1', to: 'web', connections: 4 },
        { from: '192.0.2.1', to: 'web-2', connections: 9 },
      ],
    }),
  })
  const { unmanaged_sources: rows } = await bench.ok(TOOL)
  t.equal(rows.length, 1)
  partial(t, rows[0], { connections: 13, dst_app: 'shop' })
  t.strictSame(rows[0].policy_decisions, { blocked: 9, potentially_blocked: 4 })
})

t.test('an estate without app labels is unlabelled at both ends', async (t) => {
  const bench = await startBench(t, {
    estate: handMade({
      hosts: { a: { ip: '10.0.0.1', labels: 'env=prod' }, b: { ip: '10.0.0.2' } },
      flows: [{ from: 'a', to: 'b', connections: 4 }],
    }),
  })
  const answer = await bench.ok(TOOL, { direction: 'outbound' })
  t.strictSame(answer.section_totals, { sources: 0, destinations: 0, both_unlabelled: 1 })
  partial(t, answer.both_unlabelled, [{ src_name: 'a', dst_name: 'b', connections: 4 }])
})

t.test('no traffic at all', async (t) => {
  const bench = await startBench(t, { estate: handMade({ hosts: { a: { ip: '10.0.0.1', labels: 'app=x env=y' } } }) })
  const answer = await bench.ok(TOOL, { lookback_days: 90 })
  partial(t, answer, {
    message: 'No flows with a policy decision in the window; flows with decision unknown are not queried.',
    lookback_days: 90,
    unmanaged_sources: [],
    unmanaged_destinations: [],
    both_unlabelled: [],
    analysed: { rows: 0, pce_flows: 0 },
  })
})

t.test('a too long answer shows fewer rows and says so', async (t) => {
  const flows = Array.from({ length: 300 }, (_, at) => ({
    from: `203.0.${Math.floor(at / 200)}.${1 + (at % 200)}`,
    to: 'web',
    connections: 1 + at,
  }))
  const estate = handMade({ hosts: { web: { ip: '10.0.0.1', labels: 'app=shop env=prod' } }, flows })
  const bench = await startBench(t, { estate, budget: 20_000 })
  const answer = await bench.ok(TOOL, { top_n: 1000 })
  t.equal(answer.unmanaged_source_count, 300)
  t.equal(answer.distinct_ips.sources, 300)
  t.ok(Buffer.byteLength(JSON.stringify(answer)) <= 20_000)
  t.ok(answer.unmanaged_sources.length >= 25 && answer.unmanaged_sources.length < 300)
  const brief = await bench.ok(TOOL)
  t.same(brief.unmanaged_sources, answer.unmanaged_sources.slice(0, brief.unmanaged_sources.length))
  t.ok(JSON.stringify(brief).length <= 6_000 && brief.unmanaged_sources.length > 5, 'what fits into 6,000 bytes')
  t.match(brief.truncation_note, /Raise top_n\.$/)
  t.equal(answer.unmanaged_sources[0].connections, 300, 'the busiest come first')
  t.strictSame(answer.truncated_sections, ['unmanaged_sources'])
})

t.test('a generated estate matches an independent count', async (t) => {
  const bench = await startBench(t, { budget: 800_000 })
  const labels = new Map((await bench.pce.labels.getAll()).map((label: Json) => [label.href, label]))
  const label = (node: FlowNode, key: string): string | undefined =>
    node.workload?.labels?.map(({ href }) => labels.get(href)).find((one: Json) => one?.key === key)?.value
  const rows: TrafficFlow[] = await bench.pce.getTrafficFlowsAsync('truth', {
    start_date: new Date(NOW - 30 * 86_400_000).toISOString().slice(0, 10) + 'T00:00:00Z',
    end_date: '2026-06-15T23:59:59Z',
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: ['allowed', 'potentially_blocked', 'blocked'],
    max_results: 200_000,
  })
  const expected = { sources: new Map<string, number>(), destinations: new Map<string, number>(), both: 0, all: 0 }
  const pairs = new Set<string>()
  for (const { src, dst, service, num_connections: count } of rows) {
    const connections = count ?? 0
    expected.all += connections
    const [from, to] = [label(src, 'app'), label(dst, 'app')]
    const add = (map: Map<string, number>, key: unknown[]) =>
      map.set(key.join(' '), (map.get(key.join(' ')) ?? 0) + connections)
    if (from === undefined && to !== undefined)
      add(expected.sources, [src.ip, to, label(dst, 'env') ?? '-', service.port, service.proto])
    if (from !== undefined && to === undefined)
      add(expected.destinations, [dst.ip, from, label(src, 'env') ?? '-', service.port, service.proto])
    if (from === undefined && to === undefined) {
      expected.both += connections
      pairs.add([src.ip, dst.ip, service.port, service.proto].join(' '))
    }
  }
  const answer = await bench.ok(TOOL, { top_n: 1000 })
  const found = (list: Json[], keys: string[]) =>
    list.map((row) => [keys.map((key) => row[key]).join(' '), row.connections]).sort()
  t.ok(expected.sources.size > 20 && expected.destinations.size > 20, 'the estate has some')
  t.strictSame(
    found(answer.unmanaged_sources, ['src_ip', 'dst_app', 'dst_env', 'port', 'proto']),
    [...expected.sources].sort(),
  )
  t.strictSame(
    found(answer.unmanaged_destinations, ['dst_ip', 'src_app', 'src_env', 'port', 'proto']),
    [...expected.destinations].sort(),
  )
  t.equal(answer.section_totals.both_unlabelled, pairs.size)
  const { sources, destinations, both_unlabelled: neither, both_labelled: labelled } = answer.connections
  t.equal(neither, expected.both)
  t.equal(sources + destinations + neither + labelled, expected.all, 'no row vanishes')
})

t.test('of many names shows the first, of many processes the busiest, and counts the rest', async (t) => {
  const seq = (length: number) => Array.from({ length }, (_, at) => at)
  const bench = await startBench(t, {
    estate: handMade({
      hosts: { web: { ip: '10.0.0.1', labels: 'app=shop env=prod' } },
      flows: [
        ...seq(12).map((at) => ({ from: 'web', to: '198.51.100.7', fqdn: `n${30 - at}.example` })),
        ...seq(7).map((at) => ({ from: '192.0.2.1', to: 'web', process: `p${at}`, connections: 1 + at })),
      ],
    }),
  })
  const answer = await bench.ok(TOOL)
  t.equal(
    answer.unmanaged_destinations[0].fqdn,
    `${seq(10)
      .map((at) => `n${19 + at}.example`)
      .join(', ')} and 2 more`,
  )
  t.strictSame(answer.unmanaged_sources[0].processes, ['p6', 'p5', 'p4', 'p3', 'p2'])
})

t.test('an address that was ever a workload is a workload to label, whatever IP lists contain it', (t) => {
  const encoder = createFlowEncoder(null)
  const finder = createUnlabelledTrafficFinder(encoder)
  const labels = [{ href: '/orgs/1/labels/1', key: 'app', value: 'shop' }]
  const dst = { ip: '10.0.0.1', workload: { href: '/orgs/1/workloads/1', labels } }
  const listed = { ip: '10.0.0.9', ip_lists: [{ href: '/orgs/1/ip_lists/1', name: 'Corp' }] }
  const seen = { ip: '10.0.0.9', workload: { href: '/orgs/1/workloads/2', hostname: 'box' } }
  for (const src of [listed, seen])
    finder.add(encoder.encode({ src, dst, service: { port: 443, proto: 6 }, num_connections: 1 } as TrafficFlow))
  t.same(
    finder.peers('src', 50, 1).rows.map(({ ip, kind, hostname, ip_lists: lists }) => ({ ip, kind, hostname, lists })),
    [{ ip: '10.0.0.9', kind: 'unlabelled_workload', hostname: 'box', lists: ['Corp'] }],
  )
  t.end()
})

t.test('shows a row without an address as such', (t) => {
  const encoder = createFlowEncoder(null)
  const finder = createUnlabelledTrafficFinder(encoder)
  const labels = [{ href: '/orgs/1/labels/1', key: 'app', value: 'shop' }]
  const dst = { ip: '10.0.0.1', workload: { href: '/orgs/1/workloads/1', labels } }
  for (const src of [{ fqdn: 'a.example' }, { ip: '192.0.2.1' }, { ip: '192.0.2.2' }])
    for (const to of [dst, { fqdn: 'b.example' }])
      finder.add(encoder.encode({ src, dst: to, service: { port: 443, proto: 6 }, num_connections: 1 } as TrafficFlow))
  const { total, distinctIps, rows } = finder.peers('src', 50, 1)
  partial(t, { total, distinctIps }, { total: 3, distinctIps: 2 })
  t.strictSame(rows.map(({ ip }) => ip).sort(), ['-', '192.0.2.1', '192.0.2.2'])
  const pairs = finder.pairs(50, 1)
  t.equal(pairs.total, 3)
  t.strictSame(pairs.rows.map((row) => `${row.src_ip} ${row.dst_ip}`).sort(), ['- -', '192.0.2.1 -', '192.0.2.2 -'])
  t.end()
})
