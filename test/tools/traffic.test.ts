/** get-traffic-flows-summary: windows, filters as they reach the PCE, the summary's arithmetic, and its size. */
import t from 'tap'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { indexLabels } from '../../domain/inventory/labels.js'
import { mapBounded } from '../../domain/text/pace-work.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createFlowSummary } from '../../domain/traffic/summarize-flows.js'
import { partial } from '../partial.js'
import { startBench, WEEK, type Bench, type Json } from './harness.js'

const TOOL = 'get-traffic-flows-summary'
const SECTIONS = ['by_process', 'external_destinations', 'blocked', 'app_to_app']
const EVERYTHING = {
  sources: { include: [[]], exclude: [] },
  destinations: { include: [[]], exclude: [] },
  services: { include: [], exclude: [] },
}
const sum = (rows: Json[], field = 'connections'): number =>
  rows.reduce((total, row) => total + (row[field] as number), 0)

/** The query the PCE got in the last call. */
function sent(bench: Bench): Json {
  const posts = bench.simulator.requests.filter(
    ({ method, path }) => method === 'POST' && path.endsWith('/async_queries'),
  )
  return posts.at(-1)!.body
}

async function rowsOf(bench: Bench, more: object = {}): Promise<TrafficFlow[]> {
  return bench.pce.getTrafficFlowsAsync('truth', {
    ...EVERYTHING,
    start_date: '2026-06-08T00:00:00Z',
    end_date: '2026-06-14T23:59:59Z',
    policy_decisions: [],
    max_results: 200_000,
    ...more,
  })
}

t.test('the window', async (t) => {
  const bench = await startBench(t, { workloads: 30, flows: 50 })
  const windowOf = async (start_date: string, end_date: string) => {
    const { window } = await bench.ok(TOOL, { start_date, end_date })
    partial(t, sent(bench), { start_date: window.start, end_date: window.end })
    return [window.start, window.end]
  }

  await t.test('bare dates become whole days, other forms instants, all in UTC', async (t) => {
    t.same(await windowOf('2026-06-08', '2026-06-08'), ['2026-06-08T00:00:00Z', '2026-06-08T23:59:59Z'])
    t.same(await windowOf('2026-06-08T02:00:00+02:00', '2026-06-08 12:30'), [
      '2026-06-08T00:00:00Z',
      '2026-06-08T12:30:00Z',
    ])
    t.same(await windowOf('2026-06-08T00:00:00.250Z', '2026-06-09T00:00:00Z'), [
      '2026-06-08T00:00:00.250Z',
      '2026-06-09T00:00:00Z',
    ])
    t.same(
      await windowOf('1780876800', '1780876800000'),
      ['2026-06-08T00:00:00Z', '2026-06-08T00:00:00Z'],
      'epoch seconds and milliseconds',
    )
    t.same(
      await windowOf('978307200', '978307200000'),
      ['2001-01-01T00:00:00Z', '2001-01-01T00:00:00Z'],
      'milliseconds from twelve digits on',
    )
  })

  await t.test('a nonexistent date is invalid_window, without any request', async (t) => {
    bench.simulator.clearRequests()
    for (const bad of [
      '2026-02-30',
      '2026-13-01',
      '2026-06-00',
      '2026-00-10',
      '2026-04-31',
      '2025-02-29',
      '08.06.2026',
      'yesterday',
      '',
      '2026-06-08T25:00:00Z',
      '2026-06-08T24:00:00Z',
      '2026-06-08T10:61',
      '20260608',
      'NaN',
    ]) {
      partial(t, await bench.fails(TOOL, { start_date: bad, end_date: '2026-06-14' }, 'invalid_window'), {
        argument: 'start_date',
        value: bad,
      })
    }
    partial(t, await bench.fails(TOOL, { start_date: '2026-06-14', end_date: '2026-06-08' }, 'invalid_window'), {
      message: /swap/,
    })
    t.equal(bench.simulator.requests.length, 0)
  })
})

t.test('filters as the PCE gets them', async (t) => {
  const bench = await startBench(t, { flows: 300 })
  const labels = indexLabels(await bench.pce.labels.getAll())
  const label = (key: string, value: string) => ({ label: { href: labels.find(key, value)!.href } })
  const query = async (args: object, tool = TOOL) => {
    await bench.ok(tool, { ...WEEK, ...args })
    return sent(bench)
  }
  const list = (await bench.pce.ipLists.getAll('active')).find(({ name }) => name === 'Internet')!
  const workload = (await bench.pce.workloads.getAll())[0]!

  await t.test('no filter means everything', async (t) => {
    partial(t, await query({}), {
      ...EVERYTHING,
      query_name: 'mcp-traffic-summary',
      policy_decisions: [],
      max_results: 200_000,
      exclude_workloads_from_ip_list_query: true,
      sources_destinations_query_op: 'and',
    })
    t.same((await query({ include_sources: [], exclude_sources: [] })).sources, { include: [[]], exclude: [] })
  })

  await t.test('a flat list is one block; values of one key are ORed, keys ANDed', async (t) => {
    const { sources, destinations } = await query({
      include_sources: ['app=payments', 'env=prod'],
      include_destinations: ['app=payments', 'app=ordering', 'env=prod'],
    })
    t.same(sources.include, [[label('app', 'payments'), label('env', 'prod')]])
    t.same(destinations.include, [
      [label('app', 'payments'), label('env', 'prod')],
      [label('app', 'ordering'), label('env', 'prod')],
    ])
  })

  await t.test('takes a list of lists as it is; refuses a mixture', async (t) => {
    const { sources } = await query({
      include_sources: [['app=payments', { key: 'env', value: 'prod' }], [{ href: label('app', 'pay').label.href }]],
    })
    t.same(sources.include, [[label('app', 'payments'), label('env', 'prod')], [label('app', 'pay')]])
    await bench.fails(TOOL, { ...WEEK, include_sources: ['app=pay', ['env=prod']] }, 'invalid_argument')
  })

  await t.test('takes blocks as texts; a label that contains what would divide one is that label', async (t) => {
    const odd = await bench.pce.labels.create({ key: 'app', value: 'R&D&env=prod' })
    const { sources, destinations } = await query({
      include_sources: ['app=payments & env=prod', 'app=pay'],
      include_destinations: ['app=R&D&env=prod'],
    })
    t.same(sources.include, [[label('app', 'payments'), label('env', 'prod')], [label('app', 'pay')]])
    t.same(destinations.include, [[{ label: { href: odd.href } }]])
    partial(
      t,
      await bench.fails(TOOL, { ...WEEK, include_sources: ['app=none&env=prod'] }, 'unresolved_label_filter'),
      {
        unresolved: ['app=none'],
      },
    )
  })

  await t.test('addresses, IP lists, workloads, label groups and host names are real filters', async (t) => {
    const { sources, destinations } = await query({
      include_sources: ['10.0.0.1', '2001:db8::1'],
      exclude_sources: [
        'iplist:Internet',
        list.href.replace('/active/', '/draft/'),
        workload.href,
        { key: 'env', value: 'dev' },
        '10.9.9.9',
      ],
      include_destinations: ['www.example.com'],
      exclude_destinations: ['api.example.com', `workload:${workload.hostname}`],
    })
    t.same(
      sources.include,
      [[{ ip_address: '10.0.0.1' }], [{ ip_address: '2001:db8::1' }]],
      'plain strings: the PCE refuses objects',
    )
    t.same(sources.exclude, [
      { ip_list: { href: list.href } },
      { ip_list: { href: list.href } },
      { workload: { href: workload.href } },
      label('env', 'dev'),
      { ip_address: '10.9.9.9' },
    ])
    t.same(destinations.include, [[{ fqdn: 'www.example.com' }]])
    t.same(destinations.exclude, [{ fqdn: 'api.example.com' }, { workload: { href: workload.href } }])
    t.same((await query({ include_sources: ['ams'] })).sources.include, [[{ actors: 'ams' }]])
    const group = await bench.pce.labelGroups.create({
      name: 'Lower',
      key: 'env',
      labels: [{ href: labels.find('env', 'dev')!.href }],
    })
    await bench.pce.provisionPolicyChanges('group', [group.href])
    const active = group.href.replace('/draft/', '/active/')
    t.same(
      (await query({ include_sources: ['labelgroup:Lower', 'env=prod'] })).sources.include,
      [[{ label_group: { href: active } }], [label('env', 'prod')]],
      'a group and a label of its key are alternatives',
    )
  })

  await t.test('applies a network to the rows, counts before and after, and says so', async (t) => {
    const all = await rowsOf(bench)
    const inside = (ip: string) => ip.startsWith('10.10.')
    const outer = (rows: TrafficFlow[]) => rows.length
    const from = await bench.ok(TOOL, { ...WEEK, include_sources: ['10.10.0.0/16'] })
    t.same(sent(bench).sources, { include: [[]], exclude: [] })
    t.equal(from.totals.rows, outer(all.filter((flow) => inside(flow.src.ip))))
    t.equal(from.totals.pce_flows, all.length)
    t.match(from.totals.coverage_note, /include_sources 10\.10\.0\.0\/16/)
    t.ok(from.totals.rows > 0 && from.totals.rows < all.length)
    const not = await bench.ok(TOOL, { ...WEEK, exclude_sources: ['10.10.0.0/16'] })
    t.equal(not.totals.rows, all.length - from.totals.rows)
    // An address beside a network is an alternative to it, so both are tested here; a label stays with the PCE.
    const one = all.find((flow) => !inside(flow.src.ip))!.src.ip
    const either = await bench.ok(TOOL, { ...WEEK, include_sources: ['10.10.0.0/16', one, 'env=prod'] })
    t.same(sent(bench).sources.include, [[label('env', 'prod')]])
    const prod = await rowsOf(bench, { sources: { include: [[label('env', 'prod')]], exclude: [] } })
    t.equal(either.totals.rows, prod.filter((flow) => inside(flow.src.ip) || flow.src.ip === one).length)
    const host = all.find((flow) => inside(flow.src.ip))!.src.ip
    const both = await bench.ok(TOOL, { ...WEEK, include_sources: [['10.10.0.0/16', `${host}/32`]] })
    t.equal(both.totals.rows, all.filter((flow) => flow.src.ip === host).length, 'in one block they hold together')
    t.ok(both.totals.rows < from.totals.rows)
    await bench.fails(TOOL, { ...WEEK, include_sources: [['10.10.0.0/16'], ['env=prod']] }, 'invalid_argument')
  })

  await t.test('names everything unresolved at once and runs no query', async (t) => {
    bench.simulator.clearRequests()
    const refs = [
      'app=payment',
      'iplist:Corporate',
      '10.0.0.300',
      '10.0.0.0/40',
      'payments',
      'www.example.com',
      '/orgs/1/labels/99999',
      `/orgs/1/workloads/${'0'.repeat(8)}`,
      'host=',
    ]
    const error = await bench.fails(
      TOOL,
      { ...WEEK, include_sources: refs, exclude_destinations: ['app=nope', 'ams'] },
      'unresolved_label_filter',
    )
    t.same(error.unresolved, [...refs, 'app=nope', 'ams'])
    t.equal(error.valid_values['app=payment'][0], 'payments')
    t.ok(error.valid_values['app=payment'].length <= 25)
    t.ok(error.valid_values['iplist:Corporate'].includes('iplist:Corporate networks'))
    t.match(error.valid_values['www.example.com'], /^Only destinations can be filtered by host name/)
    for (const address of ['10.0.0.300', '10.0.0.0/40']) t.match(error.valid_values[address], /CIDR/)
    t.notOk(bench.simulator.requests.some(({ path }) => path.includes('async_queries')))
  })

  await t.test('an IP list that was never provisioned cannot have matched anything', async (t) => {
    const draft = await bench.pce.ipLists.create({ name: 'Only a draft', ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
    for (const reference of ['iplist:Only a draft', draft.href, { key: 'app', value: 'pay', href: 5 }])
      await bench.fails(TOOL, { ...WEEK, include_sources: [reference] }, 'unresolved_label_filter')
    t.pass()
  })

  await t.test('sends up to a thousand combinations and fifty conditions per block, refuses more', async (t) => {
    const addresses = (length: number) => Array.from({ length }, (_, at) => `10.0.0.${at}`)
    const apps = (length: number) =>
      labels
        .values('app')
        .slice(0, length)
        .map((value) => `app=${value}`)
    const combined = (...counts: [number, number]) => [...addresses(counts[0]), ...apps(counts[1])]
    t.equal((await query({ include_sources: combined(125, 8) })).sources.include.length, 1000)
    const { message } = await bench.fails(TOOL, { ...WEEK, include_sources: combined(143, 7) }, 'invalid_argument')
    t.equal(message, 'include_sources multiplies out to 1001 combinations, more than 1000.')
    t.equal((await query({ include_sources: [addresses(50)] })).sources.include[0].length, 50)
    await bench.fails(TOOL, { ...WEEK, include_sources: [addresses(51)] }, 'invalid_argument')
  })

  await t.test('services, decisions and the rest pass through, checked', async (t) => {
    partial(
      t,
      await query({
        include_services: [
          { port: 443, proto: 'TCP' },
          { port: 8000, to_port: 8099, proto: 6 },
          { port: 9000, to_port: 9000 },
          { proto: 'icmp' },
          { process_name: 'nginx' },
        ],
        exclude_services: [{ windows_service_name: 'Spooler' }],
        policy_decisions: ['blocked'],
        exclude_workloads_from_ip_list_query: false,
        max_results: 50,
        query_name: 'mine',
      }),
      {
        query_name: 'mine',
        services: {
          include: [
            { port: 443, proto: 6 },
            { port: 8000, to_port: 8099, proto: 6 },
            { port: 9000, to_port: 9000 },
            { proto: 1 },
            { process_name: 'nginx' },
          ],
          exclude: [{ windows_service_name: 'Spooler' }],
        },
        policy_decisions: ['blocked'],
        exclude_workloads_from_ip_list_query: false,
        max_results: 50,
      },
    )
    const texts = {
      include_services: ['443/tcp', 'tcp/445', '8000-8099/tcp', 'icmp'],
      exclude_services: ['53/udp', '22'],
    }
    for (const tool of [TOOL, 'get-traffic-flows', 'compare-traffic'])
      t.same(
        (await query(texts, tool)).services,
        {
          include: [
            { port: 443, proto: 6 },
            { port: 445, proto: 6 },
            { port: 8000, to_port: 8099, proto: 6 },
            { proto: 1 },
          ],
          exclude: [{ port: 53, proto: 17 }, { port: 22 }],
        },
        tool,
      )
    for (const argument of ['include_services', 'exclude_services']) {
      const error = await bench.fails(TOOL, { ...WEEK, [argument]: ['443/tcp', '443/http'] }, 'invalid_argument')
      t.same([error.argument, error.index], [argument, 1])
    }
    for (const bad of [
      {},
      { port: 1, proto: 'icmp' },
      { port: 2, to_port: 1 },
      { to_port: 2 },
      { proto: 'x' },
      { port: 70000 },
      { ports: 1 },
    ]) {
      await bench.fails(TOOL, { ...WEEK, include_services: [bad] }, 'invalid_argument')
    }
    for (const bad of [
      { policy_decisions: ['denied'] },
      { max_results: 200_001 },
      { detail_level: 'all' },
      { include_source: [] },
    ]) {
      await bench.fails(TOOL, { ...WEEK, ...bad }, 'invalid_argument')
    }
  })

  await t.test('an identity label that no label has is unknown_dimension', async (t) => {
    partial(t, await bench.fails(TOOL, { ...WEEK, identity_labels: ['app', 'team'] }, 'unknown_dimension'), {
      unknown: ['team'],
      available_dimensions: { labels: ['app', 'env', 'loc', 'role'] },
    })
    await bench.pce.labelDimensions.create({ key: 'team', display_name: 'Team' })
    await bench.pce.labels.create({ key: 'team', value: 'red' })
    t.same(
      (await bench.ok(TOOL, { ...WEEK, identity_labels: ['team', 'app'] })).identity_labels,
      ['team', 'app'],
      'one made elsewhere since',
    )
  })
})

t.test('the summary of an estate', async (t) => {
  const bench = await startBench(t)
  const rows = await rowsOf(bench)
  const full = await bench.ok(TOOL, { ...WEEK, detail_level: 'full' })
  const wide = await startBench(t, { budget: 800_000 })
  const whole = await wide.ok(TOOL, { ...WEEK, detail_level: 'full' })

  await t.test('counts what the PCE counted', async (t) => {
    partial(t, full.totals, {
      rows: rows.length,
      pce_flows: rows.length,
      connections: rows.reduce((total, flow) => total + (flow.num_connections ?? 0), 0),
      bytes_in: rows.reduce((total, flow) => total + (flow.dst_bi ?? 0), 0),
      distinct_processes: new Set(rows.flatMap((flow) => flow.service.process_name || [])).size,
      truncated: false,
      truncated_at: 200_000,
      unparseable: 0,
    })
    t.ok(full.totals.raw_observations > rows.length, 'raw observations are not rows')
    partial(t, full, {
      window: { start: '2026-06-08T00:00:00Z', end: '2026-06-14T23:59:59Z' },
      identity_labels: ['app', 'env'],
    })
    t.same(full.available_dimensions.labels, ['app', 'env', 'loc', 'role'])
    t.ok(full.available_dimensions.named.includes('process'))
  })

  await t.test('traffic between and inside identities adds up to the total', async (t) => {
    const identity = (end: Json) => {
      const of = (key: string) => end.workload?.labels?.find((one: Json) => one.key === key)?.value
      const [first, second] = [of('app'), of('env')].filter(Boolean)
      if (first) return second ? `${first} (${second})` : first
      const lists = (end.ip_lists ?? []).map((one: Json) => one.name)
      const telling = lists.length > 1 ? lists.filter((name: string) => !name.startsWith('Any ')) : lists
      const outside = end.fqdn ?? telling.join(', ')
      return outside ? `external:${outside}` : 'unlabelled'
    }
    const inside = rows.filter((flow) => identity(flow.src) === identity(flow.dst))
    t.notOk(whole.truncated_sections?.includes('app_to_app'), 'all of it is shown')
    t.ok(inside.length > 0)
    t.equal(
      sum(whole.app_to_app) + inside.reduce((total, flow) => total + (flow.num_connections ?? 0), 0),
      whole.totals.connections,
    )
    t.ok(whole.app_to_app.every((row: Json) => row.from !== row.to))
  })

  await t.test('each section has every row that belongs to it', async (t) => {
    const blocked = rows.filter((flow) => ['blocked', 'potentially_blocked'].includes(flow.policy_decision))
    const external = rows.filter((flow) => flow.dst.workload === undefined || flow.dst.workload?.managed === false)
    const process = rows.filter((flow) => flow.service.process_name)
    const count = (flows: TrafficFlow[]) => flows.reduce((total, flow) => total + (flow.num_connections ?? 0), 0)
    for (const [name, flows] of [
      ['blocked', blocked],
      ['external_destinations', external],
      ['by_process', process],
    ] as const) {
      t.ok(flows.length > 0, name)
      const shownWhole = whole[name].length === whole.section_totals[name]
      if (shownWhole) t.equal(sum(whole[name]), count(flows), `${name}: every connection`)
      else t.ok(sum(whole[name]) < count(flows))
    }
    t.ok(whole.by_process.length === whole.section_totals.by_process)
  })

  await t.test('a section that was not asked for is not taken for an empty one', async (t) => {
    const { sections_left_out: leftOut, ...one } = await bench.ok(TOOL, { ...WEEK, sections: ['app_to_app'] })
    t.notOk('blocked' in one)
    t.same(one.section_totals, whole.section_totals)
    t.same(leftOut, ['by_process', 'external_destinations', 'blocked'])
    t.notOk('sections_left_out' in whole)
  })

  await t.test('totals do not depend on detail or budget; the rows shown are the busiest', async (t) => {
    const overview = await bench.ok(TOOL, WEEK)
    t.ok(overview.by_process.some(({ destinations_total: all }: Json) => all > 3))
    // An overview has the three busiest destinations of a process.
    const briefly = ({ destinations, ...row }: Json) => ({ ...row, destinations: destinations.slice(0, 3) })
    t.same(overview.by_process, whole.by_process.slice(0, overview.by_process.length).map(briefly))
    const standard = { ...overview, by_process: whole.by_process.slice(0, overview.by_process.length) }
    for (const other of [standard, full]) {
      t.same(other.totals, whole.totals)
      t.same(other.section_totals, whole.section_totals)
      t.ok(Buffer.byteLength(JSON.stringify(other)) <= 80_000)
      for (const name of SECTIONS) {
        t.same(other[name], whole[name].slice(0, other[name].length), `${name}: a prefix`)
        t.equal(
          other.truncated_sections?.includes(name) ?? false,
          other[name].length < other.section_totals[name],
          `${name}: says when cut`,
        )
        const connections = other[name].map((row: Json) => row.connections)
        t.same(
          connections,
          [...connections].sort((a, b) => b - a),
          `${name}: sorted`,
        )
      }
      t.match(other.truncation_note, /section_totals/)
    }
    t.ok(SECTIONS.every((name) => standard[name].length <= 100))
    t.ok(
      sum(SECTIONS.map((name) => ({ connections: full[name].length }))) >=
        sum(SECTIONS.map((name) => ({ connections: standard[name].length }))),
    )
  })

  await t.test('a small budget costs rows, down to none, and never the totals', async (t) => {
    for (const budget of [1_500, 4_000, 12_000]) {
      const small = await startBench(t, { budget })
      const answer = await small.ok(TOOL, WEEK)
      t.same(answer.totals, whole.totals)
      t.ok(Buffer.byteLength(JSON.stringify(answer)) <= budget, `within ${budget} bytes`)
      t.same(answer.truncated_sections, SECTIONS)
    }
  })

  await t.test('a query that reaches its row limit marks everything as a lower bound', async (t) => {
    const cut = await bench.ok(TOOL, { ...WEEK, max_results: 40 })
    partial(t, cut.totals, { pce_flows: 40, truncated: true, truncated_at: 40, coverage_note: /lower bounds/ })
  })

  await t.test('no traffic is an answer with every section', async (t) => {
    const none = await bench.ok(TOOL, { start_date: '2001-01-01', end_date: '2001-01-02' })
    partial(t, none, {
      totals: { rows: 0, connections: 0, truncated: false },
      note: 'no flows in window',
      note_process: /./,
    })
    for (const name of SECTIONS) {
      t.same(none[name], [])
      t.equal(none.section_totals[name], 0)
    }
  })

  await t.test('progress starts at once and rises with every poll', async (t) => {
    const slow = await startBench(t, { workloads: 30, flows: 50, pollsUntilDone: 5 })
    await slow.ok(TOOL, WEEK)
    const steps = slow.progress.map(({ progress }) => progress)
    t.equal(steps[0], 0)
    t.ok(steps.length >= 7, `${steps.length} reports`)
    t.same(
      steps,
      [...steps].sort((a, b) => a - b),
    )
    t.equal(new Set(steps).size, steps.length)
  })

  await t.test('a query the PCE reports as failed is traffic_query_failed, a refused one pce_error', async () => {
    bench.simulator.faults.add({
      kind: 'status',
      path: /async_queries$/,
      method: 'POST',
      times: 1,
      status: 406,
      body: [{ token: 'input_validation_error', message: 'x' }],
    })
    await bench.fails(TOOL, WEEK, 'pce_error')
    bench.simulator.faults.add({ kind: 'status', path: /async_queries$/, method: 'POST', times: 1, status: 502 })
    bench.simulator.clearRequests()
    await bench.fails(TOOL, WEEK, 'outcome_unknown')
  })
})

t.test('the arithmetic on hand-made flows', async (t) => {
  const end = (ip: string, more: Json = {}) => ({ ip, ...more })
  const host = (hostname: string, ip: string, labels: Record<string, string> = {}, managed = true) =>
    end(ip, {
      workload: {
        href: `/orgs/1/workloads/${hostname}`,
        hostname,
        managed,
        labels: Object.entries(labels).map(([key, value]) => ({ href: `/l/${key}${value}`, key, value })),
      },
    })
  const flow = (src: Json, dst: Json, more: Json = {}): TrafficFlow => ({
    src,
    dst,
    service: { port: 443, proto: 6 },
    num_connections: 1,
    policy_decision: 'allowed',
    flow_direction: 'outbound',
    ...more,
  })
  const summarize = (
    flows: TrafficFlow[],
    identityLabels = ['app', 'env'],
    labels: Parameters<typeof createFlowEncoder>[0] = null,
  ) => {
    const encoder = createFlowEncoder(labels)
    const summary = createFlowSummary(encoder, identityLabels)
    for (const row of flows) summary.add(encoder.encode(row))
    return summary.finish(2_000, () => true)
  }
  const list = (name: string) => ({ href: `/i/${name}`, name })
  const ANY = list('Any (0.0.0.0/0 and ::/0)')

  await t.test('two hosts of one IP list stay separate endpoints', async (t) => {
    const source = host('web', '10.0.0.1')
    const { sections } = summarize([
      flow(source, end('203.0.113.1', { ip_lists: [ANY, list('Partner')] })),
      flow(source, end('203.0.113.2', { ip_lists: [ANY, list('Partner')] })),
      flow(source, end('203.0.113.3', { fqdn: 'api.example.com', ip_lists: [ANY] })),
      flow(source, end('203.0.113.4', { fqdn_name: 'old.example.com' })),
      flow(source, end('203.0.113.5', { ip_lists: [ANY] })),
      flow(source, host('legacy', '10.0.0.9', {}, false)),
    ])
    t.same(sections.external_destinations.map(({ to }) => to).sort(), [
      '203.0.113.1 (Partner)',
      '203.0.113.2 (Partner)',
      '203.0.113.5 (Any (0.0.0.0/0 and ::/0))',
      'api.example.com',
      'legacy',
      'old.example.com',
    ])
    t.same(sections.app_to_app.map(({ from, to }) => `${from} > ${to}`).sort(), [
      'unlabelled > external:Any (0.0.0.0/0 and ::/0)',
      'unlabelled > external:Partner',
      'unlabelled > external:api.example.com',
      'unlabelled > external:old.example.com',
    ])
  })

  await t.test('a managed workload without a host name is shown among the external destinations', async (t) => {
    const nameless = end('10.0.0.7', { workload: { href: '/w', managed: true, labels: [] } })
    const { sections } = summarize([flow(host('a', '10.0.0.1'), nameless), flow(nameless, host('a', '10.0.0.1'))])
    t.same(
      sections.external_destinations.map(({ to }) => to),
      ['10.0.0.7'],
    )
  })

  await t.test('missing values form their own group; nothing is dropped', async (t) => {
    const { sections } = summarize([
      flow(host('a', '10.0.0.1', { app: 'x' }), host('b', '10.0.0.2', { app: 'y', env: 'prod' }), {
        num_connections: null,
        policy_decision: 'blocked',
        service: {},
      }),
      flow(host('a', '10.0.0.1', { app: 'x' }), host('b', '10.0.0.2', { app: 'y', env: 'prod' }), {
        num_connections: 5,
        policy_decision: 'blocked',
        service: { port: null, proto: 1, process_name: ' ' },
        dst_bi: 7,
        dst_bo: 9,
      }),
    ])
    partial(t, sections.blocked, [
      { process: '-', from: 'a', to: 'b', port: null, proto: 'icmp', connections: 5 },
      { process: '-', proto: '-', connections: 0 },
    ])
    partial(t, sections.app_to_app, [
      { from: 'x', to: 'y (prod)', policy: 'blocked', connections: 5, bytes_in: 7, bytes_out: 9 },
    ])
    t.same(sections.by_process, [], 'a blank process is none')
  })

  await t.test('counts a process in full, though only ten destinations and five users are shown', async (t) => {
    const flows = Array.from({ length: 25 }, (_, index) =>
      flow(host('a', '10.0.0.1'), end(`198.51.100.${index}`), {
        num_connections: index + 1,
        flow_direction: index % 2 ? 'inbound' : 'outbound',
        service: { port: 443, proto: 6, process_name: 'curl', user_name: `user${String(index % 8)}` },
        timestamp_range: {
          first_detected: `2026-06-0${(index % 9) + 1}T00:00:00Z`,
          last_detected: `2026-06-1${index % 9}T00:00:00Z`,
        },
      }),
    )
    const [process] = summarize(flows).sections.by_process
    partial(t, process, {
      process: 'curl',
      connections: 325,
      destination_count: 25,
      destinations_total: 25,
      user_count: 8,
      first_detected: '2026-06-01T00:00:00Z',
      last_detected: '2026-06-18T00:00:00Z',
    })
    t.same(process!.users, ['user0', 'user1', 'user2', 'user3', 'user4'])
    t.same(
      process!.destinations.map(({ connections }) => connections),
      [25, 24, 23, 22, 21, 20, 19, 18, 17, 16],
    )
    t.same(
      process!.destinations.slice(0, 2).map(({ process_runs_on: where }) => where),
      ['source', 'destination'],
    )
  })

  await t.test('identities follow the chosen labels, in their order', async (t) => {
    const both = [
      flow(
        host('a', '10.0.0.1', { app: 'x', env: 'prod', loc: 'eu' }),
        host('b', '10.0.0.2', { app: 'x', env: 'prod', loc: 'us' }),
      ),
    ]
    t.same(summarize(both).sections.app_to_app, [], 'one application to itself')
    partial(t, summarize(both, ['loc', 'app', 'env']).sections.app_to_app, [
      { from: 'eu (x, prod)', to: 'us (x, prod)' },
    ])
  })

  await t.test('looks up labels the PCE gives only by href', async (t) => {
    const bare = end('10.0.0.1', { workload: { href: '/w', hostname: 'a', labels: [{ href: '/orgs/1/labels/1' }] } })
    const labels = indexLabels([{ href: '/orgs/1/labels/1', key: 'app', value: 'x' }])
    partial(t, summarize([flow(bare, end('1.1.1.1'))], ['app'], labels).sections.app_to_app, [{ from: 'x' }])
  })
})

t.test('parallel reads stay within their limit, keep their order, and stop at the first failure', async (t) => {
  let running = 0
  let most = 0
  const started: number[] = []
  const work = async (item: number) => {
    started.push(item)
    most = Math.max(most, ++running)
    await new Promise(setImmediate)
    running--
    if (item === 5) throw new Error('five')
    return item * 2
  }
  t.same(await mapBounded([1, 2, 3, 4, 6, 7, 8, 9], 3, work), [2, 4, 6, 8, 12, 14, 16, 18])
  t.equal(most, 3)
  started.length = 0
  await t.rejects(mapBounded([5, 1, 2, 3, 4, 6, 7, 8], 2, work), { message: 'five' })
  t.ok(started.length <= 3)
})
