/**
 * What all traffic tools stand on: flows become rows of numbers, rows become groups. Answers of PCEs that no simulator gives are
 * scripted; groupings are compared with plain ones over the same flows.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { endColumn, labelColumn, portColumn, textColumn } from '../../domain/traffic/columns.js'
import { createFlowEncoder, isReadableFlow } from '../../domain/traffic/encode-flow.js'
import { endpointLabel } from '../../domain/traffic/flow-ends.js'
import { groupRows } from '../../domain/traffic/group-rows.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import { indexLabels } from '../../domain/inventory/labels.js'
import { createPceClient } from '../../pce-client/index.js'
import { startServer, type Reply } from '../pce-client/support.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'
import { benchOf, startBench, WEEK, type Bench, type Json } from './harness.js'

const SUMMARY = 'get-traffic-flows-summary'
const FLOWS = 'get-traffic-flows'
const QUERY = '/orgs/1/traffic_flows/async_queries/q1'

/** A PCE that answers every traffic query with these rows; `more` says the rest, of one query by how many there were before. */
async function scripted(
  t: Test,
  rows: readonly Json[],
  more: Partial<Json> | ((before: number) => Partial<Json>) = {},
  labels: Json[] = [],
): Promise<Bench> {
  const simulator = await createPceSimulator({ workloads: 20, flows: 0 })
  t.teardown(() => simulator.close())
  let asked = 0
  const server = await startServer(t, ({ method, path }): Reply => {
    if (method === 'POST') {
      asked += 1
      return { status: 202, body: { href: QUERY, status: 'queued' } }
    }
    const rest = typeof more === 'function' ? more(asked - 1) : more
    if (path === QUERY) return { body: { href: QUERY, status: 'completed', result: `${QUERY}/download`, ...rest } }
    if (path.startsWith(QUERY)) return { body: rows }
    const list = path.startsWith('/orgs/1/labels') ? labels : []
    return { body: list, headers: { 'x-total-count': String(list.length) } }
  })
  return benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
}

const host = (name: string, ip: string, labels: Record<string, string> = {}, more: Json = {}) => ({
  ip,
  workload: {
    href: `/orgs/1/workloads/${name}`,
    hostname: name,
    managed: true,
    labels: Object.entries(labels).map(([key, value]) => ({ href: `/orgs/1/labels/${key}-${value}`, key, value })),
    ...more,
  },
})
const flow = (src: Json, dst: Json, more: Json = {}): Json => ({
  src,
  dst,
  service: { port: 443, proto: 6 },
  num_connections: 1,
  policy_decision: 'allowed',
  flow_direction: 'outbound',
  timestamp_range: { first_detected: '2026-06-10T00:00:00Z', last_detected: '2026-06-10T00:00:00Z' },
  ...more,
})

t.test('answers that only other PCEs give', async (t) => {
  const a = host('a', '10.0.0.1', { app: 'x', env: 'prod' })
  const b = host('b', '10.0.0.2', { app: 'y', env: 'prod' })

  await t.test('counts rows with times outside the window and says so', async (t) => {
    const early = { first_detected: '2026-06-01T00:00:00Z', last_detected: '2026-06-10T00:00:00Z' }
    const late = { first_detected: '2026-06-09T00:00:00.250Z', last_detected: '2026-06-20T00:00:00Z' }
    const bench = await scripted(t, [flow(a, b), flow(a, b, { timestamp_range: early })], { matches_count: 17 })
    const answer = await bench.ok(SUMMARY, WEEK)
    partial(t, answer.data_span, { first_detected: '2026-06-01T00:00:00Z', last_detected: '2026-06-10T00:00:00Z' })
    partial(t, answer.totals, { rows: 2, connections: 2, raw_observations: 17 })
    const other = await scripted(t, [flow(a, b), flow(a, b, { timestamp_range: late })])
    partial(t, await other.ok(FLOWS, { ...WEEK, group_by: ['port'] }), {
      data_span: { first_detected: '2026-06-09T00:00:00.250Z', last_detected: '2026-06-20T00:00:00Z' },
    })
    const inside = await scripted(t, [flow(a, b), flow(a, b, { timestamp_range: null })])
    t.notOk('data_span' in (await inside.ok(SUMMARY, WEEK)), 'a row without times says nothing about them')
  })

  await t.test('rows that reach out of the window are marked wherever their times are shown', async (t) => {
    const range = (first: string, last: string) => ({
      timestamp_range: { first_detected: `2026-06-${first}T00:00:00Z`, last_detected: `2026-06-${last}T00:00:00Z` },
    })
    const row = (port: number, connections: number, first: string, last: string) =>
      flow(
        a,
        { ip: '8.8.8.8' },
        {
          service: { port, proto: 6, process_name: 'curl' },
          num_connections: connections,
          policy_decision: 'potentially_blocked',
          ...range(first, last),
        },
      )
    const rows = [row(1, 10, '01', '10'), row(2, 200, '10', '20'), row(3, 3000, '02', '19'), row(4, 40_000, '09', '11')]
    const NOTE =
      '3 rows with 3210 connections reach out of the window, because the PCE adds up before it cuts: how many of these connections were inside is not known.'
    const BY_PORT = [undefined, 'both', 'after', 'before']
    const bench = await scripted(t, rows)
    const table = await bench.ok(FLOWS, { ...WEEK, group_by: ['port'] })
    const at = (table.columns as string[]).indexOf('outside_window')
    t.same(
      (table.data as Json[][]).map((cells) => cells[at]),
      BY_PORT.map((mark) => mark ?? null),
    )
    t.same([table.coverage_note, table.columns.length], [NOTE, 7])
    const marks = (list: Json[]) => list.map((one) => one.outside_window)
    const summary = await bench.ok(SUMMARY, WEEK)
    t.same(marks(summary.external_destinations), BY_PORT)
    t.same(marks(summary.blocked), BY_PORT)
    t.same([marks(summary.by_process), marks(summary.app_to_app)], [['both'], ['both']], 'groups of all four')
    t.equal(summary.totals.coverage_note, NOTE)
    const egress = await bench.ok('discover-process-egress', WEEK)
    t.same([marks(egress.findings), egress.coverage_note], [BY_PORT, NOTE])
    const unmanaged = await bench.ok('find-unmanaged-traffic', WEEK)
    t.same([marks(unmanaged.unmanaged_destinations), unmanaged.analysed.note], [BY_PORT, NOTE])
    const explained = await bench.ok('explain-flow', {
      ...WEEK,
      source: '10.0.0.1',
      destination: '8.8.8.8',
      port: 1,
      proto: 'tcp',
    })
    t.same([explained.observed.outside_window, explained.observed.note.startsWith(NOTE)], ['both', true])

    const inside = await scripted(t, [row(4, 40_000, '09', '11')])
    const clean = await inside.ok(FLOWS, { ...WEEK, group_by: ['port'] })
    t.same([clean.columns.length, 'coverage_note' in clean], [6, false], 'nothing is said where all is inside')
    const { external_destinations: plain } = await inside.ok(SUMMARY, WEEK)
    t.notOk('outside_window' in plain[0])
  })

  await t.test('a row that reaches over a cut of a window too long for one query', async (t) => {
    const first = '2026-01-01T00:00:00Z'
    const row = flow(a, b, { timestamp_range: { first_detected: first, last_detected: '2026-04-08T00:00:00Z' } })
    const bench = await scripted(t, [row])
    const totals = async (end: string) => (await bench.ok(SUMMARY, { start_date: '2026-01-01', end_date: end })).totals
    const alone = await totals('2026-04-07')
    t.same([alone.parts, alone.connections], [undefined, 1])
    t.equal(
      alone.coverage_note,
      '1 row with 1 connection reaches out of the window, because the PCE adds up before it cuts: how many of these connections were inside is not known.',
    )
    const cut = await totals('2026-04-08')
    t.same([cut.parts, cut.rows, cut.connections], [2, 1, 2])
    t.equal(
      cut.coverage_note,
      '1 row reached over a time at which the window was cut, because a PCE answers for a limited time at once: two queries may have counted it.',
    )
  })

  await t.test('a row without times does not affect the others', async (t) => {
    const bare = flow(a, b, { timestamp_range: undefined })
    const at = (day: number) => `2026-06-${day}T00:00:00Z`
    const seen = (first: number, last: number) =>
      flow(a, b, { timestamp_range: { first_detected: at(first), last_detected: at(last) } })
    const order = [bare, seen(11, 12), bare, seen(10, 13), seen(12, 12), bare]
    for (const rows of [order, order.toReversed()]) {
      const bench = await scripted(t, rows)
      const { columns, data } = await bench.ok(FLOWS, { ...WEEK, group_by: ['port'] })
      t.strictSame(
        data.map((row: Json) => Object.fromEntries(columns.map((name: string, column: number) => [name, row[column]]))),
        [
          {
            port: 443,
            num_connections: 6,
            bytes_in: 0,
            bytes_out: 0,
            first_detected: at(10),
            last_detected: at(13),
          },
        ],
      )
    }
  })

  await t.test('counts unreadable rows separately and says so', async (t) => {
    const bench = await scripted(t, [flow(a, b), null, 7, { src: {}, dst: null }, { ...flow(a, b), service: null }])
    const { totals } = await bench.ok(SUMMARY, WEEK)
    partial(t, totals, { pce_flows: 5, rows: 1, unparseable: 4, coverage_note: /4 rows could not be read/ })
    partial(t, await bench.ok(FLOWS, WEEK), { total_pce_flows: 5, rows_analysed: 1, unparseable: 4, total_rows: 1 })
  })

  await t.test('the same address with another name, workload, label or list is another end', async (t) => {
    const list = (name: string) => ({ href: `/orgs/1/ip_lists/${name}`, name })
    const ends = [
      { ip: '10.0.0.9' },
      { ip: '10.0.0.9', fqdn: 'f.example.com' },
      { ip: '10.0.0.9', ip_lists: [list('L1')] },
      { ip: '10.0.0.9', ip_lists: [list('L1'), list('L2')] },
      { ip: '10.0.0.9', ip_lists: [{ href: '/orgs/1/ip_lists/nameless' }] },
      host('h', '10.0.0.9'),
      host('h', '10.0.0.9', { app: 'x' }),
      host('h2', '10.0.0.9', { app: 'x' }),
    ]
    const bench = await scripted(
      t,
      ends.flatMap((end, at) => [
        flow(a, end, { num_connections: at + 1 }),
        flow(a, structuredClone(end), { num_connections: 100 }),
      ]),
    )
    const answer = await bench.ok(FLOWS, {
      ...WEEK,
      group_by: ['dst_ip', 'dst_fqdn', 'dst_hostname', 'dst_ip_lists', 'state'],
    })
    const row = (at: number) => answer.data[at]
    t.equal(answer.total_rows, 7, 'two are told apart by label alone, which was not asked for')
    t.same(row(0).slice(0, 6), ['10.0.0.9', '-', 'h', '-', '-', 213])
    t.same(row(1).slice(0, 6), ['10.0.0.9', '-', 'h2', '-', '-', 108])
    t.ok(
      answer.data.some((one: Json) => one[3] === '/orgs/1/ip_lists/nameless'),
      'a list without name goes by its href',
    )
    const apps = await bench.ok(FLOWS, { ...WEEK, group_by: ['dst_app', 'destination'] }).catch((error: Error) => error)
    t.match(String(apps), /unknown_group_by/, 'a key without labels in the PCE is unknown')
  })
})

t.test('skips and counts malformed rows without losing others', async (t) => {
  const a = host('a', '10.0.0.1', { app: 'x', env: 'prod' })
  const b = host('b', '10.0.0.2', { app: 'y', env: 'prod' })
  const odd: Record<string, Json> = {
    'an address that is a number': flow({ ...a, ip: 5 }, b),
    'labels that are no list': flow(host('a', '10.0.0.1', {}, { labels: {} }), b),
    'a label that is null': flow(host('a', '10.0.0.1', {}, { labels: [null] }), b),
    'a label without href': flow(host('a', '10.0.0.1', {}, { labels: [{ key: 'app', value: 'x' }] }), b),
    'an IP list that is null': flow({ ip: '192.0.2.1', ip_lists: [null] }, b),
    'an end that is a list': flow([], b),
    'a service that is a list': flow(a, b, { service: [] }),
    'a process that is a number': flow(a, b, { service: { port: 1, proto: 6, process_name: 5 } }),
    'a Windows service that is a number': flow(a, b, { service: { port: 1, proto: 6, windows_service_name: 5 } }),
    'a user that is a number': flow(a, b, { service: { port: 1, proto: 6, user_name: 5 } }),
    'a port beyond all numbers': flow(a, b, { service: { port: 1e12, proto: 6 } }),
    'rules that are null': flow(a, b, { rules: [null] }),
    'connections in words': flow(a, b, { num_connections: '12' }),
    'half a connection': flow(a, b, { num_connections: 1.5 }),
    'fewer connections than none': flow(a, b, { num_connections: -1 }),
    'connections beyond counting': flow(a, b, { num_connections: 1e308 }),
    'bytes in words': flow(a, b, { dst_bi: 'many' }),
    'a decision that is an object': flow(a, b, { policy_decision: {} }),
    'a draft decision that is a number': flow(a, b, { draft_policy_decision: 1 }),
    'a direction that is a number': flow(a, b, { flow_direction: 1 }),
    'a state that is a number': flow(a, b, { state: 1 }),
    'a host name that is a number': flow(host('a', '10.0.0.1', {}, { hostname: 7 }), b),
    'times that are a word': flow(a, b, { timestamp_range: 'today' }),
    'a virtual service with odd labels': flow(a, { ip: '10.9.9.9', virtual_service: { labels: 7 } }),
  }
  t.same(
    Object.keys(odd).filter((what) => isReadableFlow(odd[what])),
    [],
    'each is recognised',
  )
  const rows = [flow(a, b), ...Object.values(odd), flow(a, b, { num_connections: 2 })]
  const { totals } = await (await scripted(t, rows)).ok(SUMMARY, WEEK)
  partial(t, totals, {
    rows: 2,
    connections: 3,
    pce_flows: 26,
    unparseable: 24,
    coverage_note: '24 rows could not be read and are not counted.',
  })
})

t.test('ends other than workloads', async (t) => {
  const a = host('a', '10.0.0.1', { app: 'x', env: 'prod' })
  const labels = [
    { href: '/orgs/1/labels/1', key: 'app', value: 'vip' },
    { href: '/orgs/1/labels/2', key: 'env', value: 'prod' },
  ]
  const vip = (id: number, name: string) => ({
    ip: '10.9.9.9',
    virtual_service: { href: `/orgs/1/sec_policy/active/virtual_services/${id}`, name, labels },
  })
  const bench = await scripted(t, [
    flow(a, vip(1, 'front'), { service: { port: 22, proto: 6 } }),
    flow(a, vip(2, 'back'), { num_connections: 5 }),
    flow(a, { ip: '10.9.9.8', virtual_server: { href: '/s', name: 'lb', labels } }),
    flow(a, { ip: '10.9.9.7', cloud_resource: { resource_uuid: 'c1', labels } }),
    flow(a, { ip: '192.0.2.7', ip_lists: [{ href: '/orgs/1/sec_policy/active/ip_lists/9' }] }),
    flow(a, { ip: '192.0.2.8', ip_lists: [{ href: '/orgs/1/sec_policy/active/ip_lists/1', name: 'Any (0.0.0.0/0)' }] }),
  ])
  const { results } = await bench.ok('identify-infrastructure-services', {})
  partial(
    t,
    results.find(({ app }: Json) => app === 'vip'),
    { env: 'prod', in_degree: 1, inbound_connections: 8 },
    'labels of virtual services, virtual servers and cloud resources make applications',
  )
  const summary = await bench.ok(SUMMARY, WEEK)
  t.same(
    summary.external_destinations.map(({ to }: Json) => to).sort(),
    [
      '10.9.9.7',
      '192.0.2.7 (/orgs/1/sec_policy/active/ip_lists/9)',
      '192.0.2.8 (Any (0.0.0.0/0))',
      'back',
      'front',
      'lb',
    ],
    'two virtual services of one address stay two; a list without name goes by its href',
  )
  const { unmanaged_destinations: unlabelled } = await bench.ok('find-unmanaged-traffic', {})
  t.same(
    unlabelled.map(({ dst_ip: ip, kind }: Json) => `${ip} ${kind}`).sort(),
    ['192.0.2.7 ip_list', '192.0.2.8 unknown_ip'],
    'the old name of the Any list says as little as the new one',
  )
})

t.test('says when an answer is incomplete', async (t) => {
  const a = host('a', '10.0.0.1')
  const b = host('b', '10.0.0.2')
  const regions = [
    { pce_fqdn: 'eu.pce.example', responded: true },
    { pce_fqdn: 'us.pce.example', responded: false },
  ]
  const half = await scripted(t, [flow(a, b)], { regions })
  partial(t, (await half.ok(SUMMARY, WEEK)).totals, {
    truncated: true,
    coverage_note: /us\.pce\.example.*lower bounds/,
  })
  partial(t, await half.ok('find-unmanaged-traffic', {}), {
    flows_truncated: true,
    analysed: { note: /us\.pce\.example/ },
  })
  const both = { truncated: true, flows_truncated: true }
  partial(t, await half.ok('get-traffic-flows', WEEK), both, 'what is cut at the PCE is not complete here')
  partial(t, await half.ok('identify-infrastructure-services', {}), both)
  const whole = await scripted(t, [flow(a, b)], { regions: regions.slice(0, 1), flows_count: 1 })
  partial(t, await whole.ok('get-traffic-flows', WEEK), { truncated: false, flows_truncated: false })
  partial(t, (await whole.ok(SUMMARY, WEEK)).totals, { truncated: false, coverage_note: undefined })
  const cut = await scripted(t, [flow(a, b)], { flows_count: 900 })
  partial(t, (await cut.ok(SUMMARY, WEEK)).totals, { truncated: true, coverage_note: /counted 900 rows and sent 1/ })
  const full = await scripted(t, [flow(a, b), flow(b, a), flow(a, b)])
  partial(
    t,
    (await full.ok(SUMMARY, { ...WEEK, max_results: 3, include_sources: ['10.0.0.2/32'] })).totals,
    { rows: 1, pce_flows: 3, truncated: true, coverage_note: /row limit.*10\.0\.0\.2\/32/ },
    'rows that a filter left out here count for the limit',
  )
})

t.test('says so if either of two queries is incomplete', async (t) => {
  const labels = ['app', 'env'].map((key) => ({ href: `/orgs/1/labels/${key}-x`, key, value: 'x' }))
  const own = host('own', '10.0.0.1', { app: 'x', env: 'x' })
  const rows = [flow(host('a', '10.0.0.2'), own), flow(own, host('b', '10.0.0.3'))]
  const cut = [{ pce_fqdn: 'us.pce.example', responded: false }]
  for (const [silent, truncated] of [
    [0, true],
    [1, true],
    [2, false],
  ] as const) {
    const bench = await scripted(t, rows, (before) => (before === silent ? { regions: cut } : {}), labels)
    const answer = await bench.ok('get-policy-coverage-report', { app_name: 'x', env_name: 'x' })
    t.equal(answer.flows_truncated, truncated, `query ${silent}`)
  }
})

t.test('a query gets the configured number of seconds and no more', async (t) => {
  const simulator = await createPceSimulator({ workloads: 20, flows: 0 })
  t.teardown(() => simulator.close())
  const { port } = new URL(await simulator.listen())
  let now = 0
  const sleep = async (ms: number) => void (now += ms)
  const timers = { now: () => now, random: () => 0.5, sleep }
  const pce = createPceClient({ url: 'http://127.0.0.1', port, orgId: simulator.orgId, timers })
  t.teardown(() => pce.close())
  pce.setCredentials(simulator.credentials.key, simulator.credentials.secret)
  simulator.faults.add({ method: 'POST', path: /async_queries$/, kind: 'job-stuck', times: 1 })
  const ctx = {
    pce,
    progress: () => undefined,
    signal: new AbortController().signal,
    limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 30, trafficMaxParts: 64 },
    now: () => now,
  }
  const window = { start: '2026-06-08T00:00:00Z', end: '2026-06-14T23:59:59Z' }
  const read = createFlowReader(ctx, createFlowEncoder(indexLabels([])))({ name: 'stuck', window }, () => undefined)
  await t.rejects(read, { code: 'traffic_query_timeout', message: /after 30 s/ })
  t.equal(now, 30_000)
})

t.test('label keys may have any name', async (t) => {
  const keys = ['ip', 'hostname', 'constructor', '__proto__', 'app']
  const labels = keys.map((key, at) => ({ href: `/orgs/1/labels/${at}`, key, value: `v${at}` }))
  const bench = await scripted(
    t,
    [flow({ ...host('a', '10.0.0.1', {}, { labels }) }, host('b', '10.0.0.2'))],
    {},
    labels,
  )
  const answer = await bench.ok(FLOWS, {
    ...WEEK,
    group_by: ['src_ip', 'source_ip', 'source_hostname', 'source_constructor', 'source___proto__', 'source_app'],
  })
  t.same(answer.columns.slice(0, 6), [
    'src_ip',
    'source_ip',
    'source_hostname',
    'src_constructor',
    'src___proto__',
    'src_app',
  ])
  t.same(answer.data[0].slice(0, 6), ['10.0.0.1', 'v0', 'v1', 'v2', 'v3', 'v4'])
  const summary = await bench.ok(SUMMARY, { ...WEEK, identity_labels: ['constructor', '__proto__'] })
  t.equal(summary.app_to_app[0].from, 'v2 (v3)')
})

t.test('distinguishes thousands of names behind one address without comparing all pairs', async (t) => {
  const { ends } = createFlowEncoder(null)
  let looks = 0
  const node = (at: number): Json => ({
    ip: '104.16.1.1',
    get fqdn() {
      looks += 1
      return `site-${at}.example`
    },
  })
  const codes = Array.from({ length: 2000 }, (_, at) => ends.code(node(at)))
  t.equal(new Set(codes).size, 2000)
  looks = 0
  t.same(
    Array.from({ length: 2000 }, (_, at) => ends.code(node(at))),
    codes,
  )
  t.ok(looks < 2000 * 40, `${looks} looks at a name for 2,000 rows`)
})

t.test('a cancelled call stops at the PCE too', async (t) => {
  const bench = await startBench(t, { workloads: 60, flows: 6000, pollsUntilDone: 4 })
  const { simulator } = bench
  const gone = () =>
    simulator.requests.filter(({ method, path }) => method === 'DELETE' && /async_queries\//.test(path))
  const read = () => simulator.requests.filter(({ path }) => path.endsWith('/download'))

  await t.test('while the PCE works on it', async (t) => {
    const error = await bench.cancelled(SUMMARY, WEEK, ({ message = '' }) => /working|queued/.test(message))
    t.equal(error['error'], 'cancelled')
    t.equal(gone().length, 1, 'the query is deleted')
    t.equal(read().length, 0, 'nothing is downloaded')
  })

  await t.test('while its rows are being summed', async (t) => {
    const error = await bench.cancelled(SUMMARY, WEEK, ({ message = '' }) => /rows read/.test(message))
    t.equal(error['error'], 'cancelled')
    t.equal(gone().length, 2, 'the query is deleted')
    t.equal(read().length, 1)
    const rows = bench.progress.map(({ message = '' }) => Number(/(\d+) rows read/.exec(message)?.[1] ?? 0))
    t.ok(Math.max(...rows) < (await bench.ok(SUMMARY, WEEK)).totals.rows, 'before the last row')
  })
})

t.test('groups, sums and order match a naive count for any rows', async (t) => {
  const ends = [
    host('web', '10.0.0.1', { app: 'a', env: 'p' }),
    host('web2', '10.0.0.2', { app: 'ab', env: 'p' }),
    host('half', '10.0.0.3', { app: 'a' }),
    { ip: '192.0.2.1' },
    { ip: '192.0.2.2', fqdn: 'x.example.com' },
    { ip: 'fd00::1' },
  ]
  const flows = fc.array(
    fc
      .record({
        src: fc.constantFrom(...ends),
        dst: fc.constantFrom(...ends),
        port: fc.constantFrom(0, 22, 443, null),
        process: fc.constantFrom(null, '', ' p ', 'p', 'q'),
        decision: fc.constantFrom('allowed', 'blocked', 'potentially_blocked'),
        connections: fc.constantFrom(0, 1, 2, null),
      })
      .map(({ src, dst, port, process, decision, connections }) =>
        flow(src, dst, {
          service: { port, proto: 6, process_name: process },
          policy_decision: decision,
          num_connections: connections,
        }),
      ),
    { maxLength: 60 },
  )
  const plain = (rows: TrafficFlow[]) => {
    const groups = new Map<string, number>()
    for (const { src, dst, service, num_connections: count } of rows) {
      const name = (end: Json) => end.fqdn ?? end.workload?.hostname ?? end.ip
      const app = (src as Json).workload?.labels.find(({ key }: Json) => key === 'app')?.value ?? null
      const id = JSON.stringify([name(src), name(dst), app, service.port ?? null, service.process_name?.trim() || null])
      groups.set(id, (groups.get(id) ?? 0) + (count ?? 0))
    }
    return groups
  }
  fc.assert(
    fc.property(
      flows,
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 4 }),
      (rows: TrafficFlow[], limit, least) => {
        const encoder = createFlowEncoder(null)
        const grouping = groupRows({
          from: endColumn(encoder, 'src', endpointLabel),
          to: endColumn(encoder, 'dst', endpointLabel),
          app: labelColumn(encoder, 'src', 'app'),
          port: portColumn,
          process: textColumn(encoder, 'process'),
        })
        for (const row of rows) grouping.add(encoder.encode(structuredClone(row)))
        const truth = plain(rows)
        const found = new Map(
          [...grouping].map(({ keys, measures }) => [JSON.stringify(Object.values(keys)), measures.connections]),
        )
        const { total, groups } = grouping.busiest(limit, least)
        const shown = groups.map(
          ({ keys, measures }) => [measures.connections, Object.values(keys).map((key) => key ?? '')] as const,
        )
        const reached = [...truth.values()].filter((count) => count >= least).sort((x, y) => y - x)
        const sorted = [...shown].sort(([x, keysX], [y, keysY]) => y - x || compare(keysX, keysY))
        return (
          JSON.stringify([...found].sort()) === JSON.stringify([...truth].sort()) &&
          total === reached.length &&
          JSON.stringify(shown.map(([count]) => count)) === JSON.stringify(reached.slice(0, limit)) &&
          JSON.stringify(shown) === JSON.stringify(sorted)
        )
      },
    ),
    { numRuns: 300 },
  )
  t.pass('300 estates')
})

function compare(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  for (const [at, one] of a.entries()) {
    const other = b[at]!
    if (typeof one === 'number' && typeof other === 'number' && one !== other) return one - other
    if (String(one) !== String(other)) return String(one) < String(other) ? -1 : 1
  }
  return 0
}
