/** get-traffic-flows: groupings of small estates whose right answer is known, and what it says of its completeness. */
import t from 'tap'
import tool from '../../tools/traffic/get-traffic-flows.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, WEEK, type Bench, type Json } from './harness.js'

const TOOL = 'get-traffic-flows'

/** Rows as objects by column. */
const objects = ({ columns, data }: Json): Json[] =>
  data.map((row: Json[]) => Object.fromEntries(columns.map((column: string, at: number) => [column, row[at]])))

/** Each row as its keys and connections in one line. */
const lines = (answer: Json, ...columns: string[]): string[] =>
  objects(answer).map((row) => [...columns.map((column) => row[column]), row.num_connections].join(' '))

/** An estate with everything that is awkward about ends of flows. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'pay-web-1': { ip: '10.1.0.1', labels: 'app=pay env=prod role=web' },
    'pay-web-2': { ip: '10.1.0.2', labels: 'app=pay env=prod role=web' },
    'pay-db-1': { ip: '10.1.0.3', labels: 'app=pay env=prod role=db' },
    'payments-1': { ip: '10.2.0.1', labels: 'app=payments env=prod' },
    'half-1': { ip: '10.3.0.1', labels: 'app=pay' },
    'bare-1': { ip: '10.3.0.2' },
    printer: { ip: '10.4.0.1', managed: false, labels: 'app=printing env=prod' },
    'v6-1': { ip: 'fd00::1', labels: 'app=pay env=dev' },
  },
  ipLists: { Office: ['192.168.0.0/16'], 'Office, west': ['192.168.1.0/24'] },
  flows: [
    { from: 'pay-web-1', to: 'pay-db-1', port: 5432, connections: 40, process: '/usr/sbin/nginx', user: 'www' },
    { from: 'pay-web-2', to: 'pay-db-1', port: 5432, connections: 30, process: '/usr/sbin/nginx', user: 'www' },
    { from: 'payments-1', to: 'pay-web-1', port: 443, connections: 20 },
    { from: 'half-1', to: 'pay-web-1', port: 443, connections: 10 },
    { from: 'bare-1', to: 'pay-web-1', port: 443, connections: 9 },
    { from: '192.168.1.7', to: 'pay-web-1', port: 443, connections: 8 },
    { from: 'pay-web-1', to: '203.0.113.9', fqdn: 'api.example.com', port: 443, connections: 7 },
    { from: 'printer', to: 'pay-web-1', port: 9100, connections: 6 },
    { from: 'v6-1', to: 'pay-db-1', port: 5432, connections: 5 },
    { from: 'pay-web-1', to: 'pay-web-2', proto: 1, connections: 4 },
    { from: 'pay-web-1', to: 'pay-web-1', port: 8080, connections: 3 },
    { from: 'pay-web-1', to: 'pay-db-1', port: 5432, proto: 17, connections: 2, daysAgo: 40 },
  ],
}
const start = (t: Parameters<typeof startBench>[0]): Promise<Bench> => startBench(t, { estate: handMade(ESTATE) })

t.test('grouping', async (t) => {
  const bench = await start(t)
  const ask = (args: object) => bench.ok(TOOL, { ...WEEK, ...args })

  await t.test('by default every host and service is a row, with names, lists and labels', async (t) => {
    const answer = await ask({})
    partial(t, answer, { total_pce_flows: 11, rows_analysed: 11, total_rows: 11, returned_rows: 11, truncated: false })
    partial(t, answer, { flows_truncated: false, unparseable: 0, window: { start: '2026-06-08T00:00:00Z' } })
    t.same(answer.columns.slice(-5), ['num_connections', 'bytes_in', 'bytes_out', 'first_detected', 'last_detected'])
    const [first] = objects(answer)
    partial(t, first, {
      src_ip: '10.1.0.1',
      src_hostname: 'pay-web-1',
      dst_ip: '10.1.0.3',
      dst_hostname: 'pay-db-1',
      dst_fqdn: '-',
      port: 5432,
      proto: 'tcp',
      policy_decision: 'potentially_blocked',
      process_name: '/usr/sbin/nginx',
      user_name: 'www',
      src_ip_lists: '-',
      src_app: 'pay',
      src_env: 'prod',
      src_role: 'web',
      dst_role: 'db',
      num_connections: 40,
      bytes_in: 100,
      bytes_out: 200,
      first_detected: '2026-06-14T01:00:00Z',
      last_detected: '2026-06-14T01:00:00Z',
    })
    t.notOk(answer.columns.includes('windows_service_name'), 'a column nobody has a value in is left out')
    const office = objects(answer).find(({ src_ip: ip }) => ip === '192.168.1.7')
    t.equal(office.src_ip_lists, 'Any (0.0.0.0/0 and ::/0), Office, Office, west', 'an address in two lists has both')
    t.equal(office.src_hostname, '-')
  })

  await t.test('applications: values containing one another stay separate, and so do half-labelled ends', async (t) => {
    t.same(
      lines(await ask({ group_by: ['source_app', 'dest_app'] }), 'src_app', 'src_env', 'dst_app', 'dst_env'),
      [
        'pay prod pay prod 77',
        'payments prod pay prod 20',
        'pay - pay prod 10',
        '- - pay prod 17',
        'pay prod - - 7',
        'printing prod pay prod 6',
        'pay dev pay prod 5',
      ].sort((a, b) => Number(b.split(' ').at(-1)) - Number(a.split(' ').at(-1))),
    )
  })

  await t.test('one key per side, in any spelling; each column once', async (t) => {
    for (const name of ['source_role', 'src_role', 'SRC_ROLE', 'Source_Role']) {
      const answer = await ask({ group_by: [name] })
      t.same(answer.columns[0], 'src_role')
      t.same(lines(answer, 'src_role'), ['web 84', '- 58'])
    }
    for (const name of ['destination_role', 'dest_role', 'dst_role']) {
      t.same(lines(await ask({ group_by: [name] }), 'dst_role'), ['db 75', 'web 60', '- 7'])
    }
    const twice = await ask({ group_by: ['port', 'port', 'dst_ip', 'destination'] })
    t.same(twice.columns.slice(0, 4), ['port', 'dst_ip', 'dst_hostname', 'dst_fqdn'])
  })

  await t.test('ports, protocols, decisions, processes, users, names and lists', async (t) => {
    t.same(lines(await ask({ group_by: ['port', 'proto'] }), 'port', 'proto'), [
      '5432 tcp 75',
      '443 tcp 54',
      '9100 tcp 6',
      '0 icmp 4',
      '8080 tcp 3',
    ])
    t.same(lines(await ask({ group_by: ['process', 'user'] }), 'process_name', 'user_name'), [
      '- - 72',
      '/usr/sbin/nginx www 70',
    ])
    t.same(lines(await ask({ group_by: ['fqdn'] }), 'dst_fqdn'), ['- 135', 'api.example.com 7'])
    t.same(lines(await ask({ group_by: ['direction'] }), 'flow_direction'), ['outbound 128', 'inbound 14'])
    t.same(lines(await ask({ group_by: ['state'] }), 'state'), ['closed 142'], 'any column of a row')
    const asked = await ask({ group_by: ['service_name'] })
    t.same(lines(asked, 'windows_service_name'), ['- 142'], 'a column that was asked for stays, though it is empty')
  })

  await t.test('a column goes by the name it has in answers, and by what other tools call it', async (t) => {
    const columnsFor = async (...names: string[]) => (await ask({ group_by: names })).columns.slice(0, -5)
    const { columns } = await ask({})
    t.same(await columnsFor(...columns), columns.slice(0, -5), 'what an answer calls its columns can be asked for')
    for (const [column, ...words] of [
      ['process_name', 'process'],
      ['windows_service_name', 'service_name'],
      ['user_name', 'user'],
      ['policy_decision', 'policy', 'decision', 'Policy_Decisions'],
      ['proto', 'protocol'],
      ['port', 'dst_port', 'destination_port'],
      ['matched_rules', 'rule', 'matched_rule'],
      ['flow_direction', 'direction'],
      ['src_ip', 'source_ip'],
      ['dst_hostname', 'dest_hostname', 'destination_hostname'],
      ['dst_fqdn', 'fqdn'],
    ] as const)
      for (const word of [column, ...words]) t.same(await columnsFor(word), [column], word)
    t.same(await columnsFor('service'), ['port', 'proto'])
    t.same(await columnsFor('ip_lists'), ['src_ip_lists', 'dst_ip_lists'])
    t.same(await columnsFor('app'), ['src_app', 'dst_app'], 'a label key alone is meant for both ends')
    t.equal((await columnsFor('labels')).join(' '), 'src_app src_env src_role dst_app dst_env dst_role')
    t.same((await ask({ group_by: ['connections'] })).data, [
      [142, 1100, 2200, '2026-06-14T01:00:00Z', '2026-06-14T01:00:00Z'],
    ])
  })

  await t.test('whatever the description and the summary name as a dimension is one', async (t) => {
    const description = String(tool.input.properties.group_by.description)
    const told = description.replace('Default ', '').replace('. Also ', ', ').replaceAll('KEY', 'app').split(', ')
    await ask({ group_by: told })
    const { available_dimensions: available } = await bench.ok('get-traffic-flows-summary', WEEK)
    await ask({ group_by: [...available.named, ...available.labels] })
    t.same([told.length, available.labels], [16, ['app', 'env', 'role']])
  })

  await t.test('sums all rows of a group and takes the outermost times', async (t) => {
    const wide = await bench.ok(TOOL, {
      start_date: '2026-05-01',
      end_date: '2026-06-14',
      group_by: ['dst_hostname'],
      include_destinations: ['workload:pay-db-1'],
    })
    t.same(objects(wide), [
      {
        dst_hostname: 'pay-db-1',
        num_connections: 77,
        bytes_in: 400,
        bytes_out: 800,
        first_detected: '2026-05-06T01:00:00Z',
        last_detected: '2026-06-14T01:00:00Z',
      },
    ])
  })
})

t.test('refuses unknown dimensions before any request', async (t) => {
  const bench = await start(t)
  await bench.ok('get-labels')
  const before = bench.simulator.requests.length
  const body = await bench.fails(
    TOOL,
    { ...WEEK, group_by: ['port', 'source_owner', 'constructor'] },
    'unknown_group_by',
  )
  t.same(body.unknown, ['source_owner', 'constructor'])
  t.same(
    body.valid.join(' '),
    'source destination source_app dest_app ip_list service labels src_ip src_name src_hostname src_fqdn src_ip_lists dst_ip ' +
      'dst_name dst_hostname dst_fqdn dst_ip_lists port proto policy_decision process_name windows_service_name user_name flow_direction state ' +
      'matched_rules network client_type draft_policy_decision recorded_decision src_app src_env src_role dst_app dst_env dst_role',
    'each dimension once, by one name',
  )
  t.notOk(bench.simulator.requests.slice(before).some(({ method }) => method === 'POST'))
  for (const group_by of [[], [''], [7]]) {
    const refused = group_by.length === 0 || group_by[0] === 7 ? 'invalid_argument' : 'unknown_group_by'
    await bench.fails(TOOL, { ...WEEK, group_by }, refused)
  }
  await bench.fails(TOOL, { start_date: '2026-06-31', end_date: '2026-07-01' }, 'invalid_window')
  await bench.fails(TOOL, { start_date: '2026-06-14', end_date: '2026-06-08' }, 'invalid_window')
  await bench.fails(TOOL, { ...WEEK, include_sources: ['app=paymentz'] }, 'unresolved_label_filter')
  for (const max_results of [0, 10_001, 1.5]) await bench.fails(TOOL, { ...WEEK, max_results }, 'invalid_argument')
  for (const service of [{ port: -1, proto: 'tcp' }, { port: 70_000 }, { process_name: ' ' }, {}, { to_port: 3 }])
    await bench.fails(TOOL, { ...WEEK, include_services: [service] }, 'invalid_argument')
})

t.test('a workload that has a name goes by it, as everywhere else', async (t) => {
  const bench = await start(t)
  await bench.ok('update-workload', { name: 'pay-db-1', new_name: 'Payments ledger' })
  await bench.ok('update-workload', { name: 'bare-1', new_name: 'Scanner' })
  const answer = await bench.ok(TOOL, { ...WEEK, group_by: ['source', 'destination'] })
  t.same(answer.columns.slice(0, 7), [
    'src_ip',
    'src_name',
    'src_hostname',
    'dst_ip',
    'dst_name',
    'dst_hostname',
    'dst_fqdn',
  ])
  const rows = lines(answer, 'src_name', 'src_hostname', 'dst_name', 'dst_hostname')
  t.same(rows.slice(0, 5), [
    '- pay-web-1 Payments ledger pay-db-1 40',
    '- pay-web-2 Payments ledger pay-db-1 30',
    '- payments-1 - pay-web-1 20',
    '- half-1 - pay-web-1 10',
    'Scanner bare-1 - pay-web-1 9',
  ])
  t.ok((await bench.ok(TOOL, WEEK)).columns.includes('dst_name'), 'by default too')
  const one = { ...WEEK, include_destinations: ['workload:Payments ledger'] }
  t.same(lines(await bench.ok(TOOL, { ...one, group_by: ['destination_name'] }), 'dst_name'), ['Payments ledger 75'])
  const summary = await bench.ok('get-traffic-flows-summary', { ...WEEK, detail_level: 'full' })
  t.ok(summary.blocked.some(({ to }: Json) => to === 'Payments ledger'))
  t.notOk(summary.blocked.some(({ to }: Json) => to === 'pay-db-1'))
  const { unmanaged_sources: sources } = await bench.ok('find-unmanaged-traffic', {})
  const scanner = sources.find(({ src_ip: ip }: Json) => ip === '10.3.0.2')
  t.same([scanner.name, scanner.hostname], ['Scanner', 'bare-1'])

  const plain = await start(t)
  const { columns } = await plain.ok(TOOL, { ...WEEK, group_by: ['source', 'destination'] })
  t.notOk(
    columns.some((column: string) => column.endsWith('_name')),
    'no column where every name is the host name',
  )
  t.same(lines(await plain.ok(TOOL, { ...WEEK, group_by: ['src_name'] }), 'src_name'), ['- 142'], 'unless asked for')
})

t.test('groups everything, whatever is shown', async (t) => {
  const bench = await start(t)
  const posted = () =>
    bench.simulator.requests.filter(({ method, path }) => method === 'POST' && /async_queries$/.test(path))

  await t.test('max_results limits the rows shown, not the query', async (t) => {
    const answer = await bench.ok(TOOL, { ...WEEK, max_results: 3 })
    partial(t, answer, {
      total_pce_flows: 11,
      total_rows: 11,
      returned_rows: 3,
      truncated: true,
      flows_truncated: false,
    })
    t.equal(answer.data.length, 3)
    partial(t, posted().at(-1)!.body, { max_results: 200_000, query_name: 'mcp-traffic-query' })
  })

  await t.test('services and decisions are the query of the PCE', async (t) => {
    await bench.ok(TOOL, { ...WEEK, policy_decisions: ['blocked', 'unknown'], include_services: [{ port: 443 }] })
    partial(t, posted().at(-1)!.body, {
      policy_decisions: ['blocked', 'unknown'],
      services: { include: [{ port: 443 }], exclude: [] },
    })
  })

  await t.test('cuts an answer too large for the budget at a whole row and says so', async (t) => {
    const small = await startBench(t, { estate: handMade(ESTATE), budget: 2_000 })
    const answer = await small.ok(TOOL, WEEK)
    t.equal(answer.total_rows, 11)
    t.ok(answer.returned_rows > 0 && answer.returned_rows < 11)
    t.equal(answer.data.length, answer.returned_rows)
    t.equal(answer.truncated, true)
    t.ok(JSON.stringify(answer).length <= 2_000)
  })

  await t.test('applies networks the PCE cannot filter by to its rows, and names them', async (t) => {
    const answer = await bench.ok(TOOL, { ...WEEK, include_sources: ['10.3.0.0/16'], group_by: ['src_ip'] })
    t.same(lines(answer, 'src_ip'), ['10.3.0.1 10', '10.3.0.2 9'])
    partial(t, answer, { total_pce_flows: 11, rows_analysed: 2, coverage_note: /include_sources 10\.3\.0\.0\/16/ })
  })

  await t.test('no traffic is an answer of the same shape', async (t) => {
    const empty = await bench.ok(TOOL, { start_date: '2026-01-01', end_date: '2026-01-02' })
    partial(t, empty, {
      total_pce_flows: 0,
      total_rows: 0,
      returned_rows: 0,
      truncated: false,
      data: [],
      message: /No flows/,
    })
    t.notOk('data_span' in empty, 'nothing was seen, so not in 1970 either')
  })
})

t.test("each group adds up to the PCE's rows on generated traffic", async (t) => {
  const bench = await startBench(t, { seed: 11, workloads: 80, flows: 1500, budget: 48_000 })
  const rows = await bench.pce.getTrafficFlowsAsync('truth', {
    start_date: '2026-06-08T00:00:00Z',
    end_date: '2026-06-14T23:59:59Z',
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
    max_results: 200_000,
  })
  const truth = new Map<string, number>()
  for (const { src, service, policy_decision: decision, num_connections: count } of rows) {
    const app = src.workload?.labels?.find(({ key }) => key === 'app')?.value ?? '-'
    const id = `${app} ${String(service.port ?? '-')} ${decision}`
    truth.set(id, (truth.get(id) ?? 0) + (count ?? 0))
  }
  const answer = await bench.ok(TOOL, { ...WEEK, group_by: ['source_app', 'port', 'policy'], max_results: 1_000 })
  const apps = new Map<string, number>()
  for (const row of objects(answer)) {
    const id = `${row.src_app} ${row.port} ${row.policy_decision}`
    apps.set(id, (apps.get(id) ?? 0) + row.num_connections)
  }
  t.equal(answer.truncated, false)
  t.same([...apps].sort(), [...truth].sort())
  t.same(answer.grouped_by, { source_app: ['src_app', 'src_env'], policy: ['policy_decision'] }, 'by other names')
  t.notOk('empty_columns' in answer)
  const rules = await bench.ok(TOOL, { ...WEEK, group_by: ['port', 'matched_rules'] })
  t.same([rules.empty_columns, 'grouped_by' in rules], [['matched_rules'], false], 'no row has a value')
})

t.test('off the corporate network', async (t) => {
  const hosts = {
    home: { ip: '10.0.0.1', labels: 'app=api env=lab', network: 'External', endpoint: true },
    desk: { ip: '10.0.0.2', labels: 'app=api env=lab', network: 'Corporate', endpoint: true },
    'sql-1': { ip: '10.0.1.1', labels: 'app=sql env=lab', network: 'Corporate' },
    'sql-2': { ip: '10.0.1.2', labels: 'app=sql env=lab', network: 'Corporate' },
    twin: { ip: '10.0.1.2', labels: 'app=sql env=lab', network: 'Corporate' },
    old: { ip: '10.0.1.9', managed: false },
  }
  const flows = [
    { from: 'home', to: 'sql-1', port: 445, connections: 5, fqdn: 'sql-1.example.com' },
    { from: 'home', to: 'sql-2', port: 445, connections: 4 },
    { from: 'home', to: 'old', port: 445, connections: 3 },
    { from: 'home', to: '8.8.8.8', port: 53, proto: 17, connections: 2 },
    { from: 'sql-1', to: 'home', port: 22, direction: 'inbound' as const },
    { from: 'desk', to: 'sql-1', port: 445, connections: 7 },
  ]
  const bench = await startBench(t, { estate: handMade({ hosts, flows }) })
  const ANY = '(Any (0.0.0.0/0 and ::/0))'
  const requests = (path: string) => bench.simulator.requests.filter((one) => one.path.endsWith(path)).length

  await t.test('an address of a managed workload is marked, and no external destination', async (t) => {
    const {
      external_destinations: external,
      blocked,
      app_to_app: apps,
      totals,
    } = await bench.ok('get-traffic-flows-summary', WEEK)
    t.same(
      external.map(({ to, connections }: Json) => `${to} ${connections}`),
      [`10.0.1.9 ${ANY} 3`, `8.8.8.8 ${ANY} 2`],
    )
    t.same(
      blocked.map(({ from, to, connections }: Json) => `${from} > ${to} ${connections}`),
      [
        'desk > sql-1 7',
        'home > 10.0.1.1 (address of "sql-1", seen from outside) 5',
        'home > 10.0.1.2 (address of "sql-2" or 1 more, seen from outside) 4',
        `home > 10.0.1.9 ${ANY} 3`,
        `home > 8.8.8.8 ${ANY} 2`,
        '10.0.1.1 (address of "sql-1", seen from outside) > home 1',
      ],
    )
    t.ok(apps.some(({ from, to }: Json) => from === 'api (lab)' && to === 'address of "sql-1", seen from outside'))
    t.equal(
      totals.coverage_note,
      "3 rows reported off the corporate network (External): the address is a managed workload's, but may be another machine's there; not counted as external.",
    )
  })

  await t.test('the network and what reported are dimensions and filters', async (t) => {
    const by = { ...WEEK, group_by: ['network', 'client_type'] }
    const all = await bench.ok(TOOL, by)
    t.same(lines(all, 'network', 'client_type'), ['External endpoint 15', 'Corporate endpoint 7'])
    t.same(lines(await bench.ok(TOOL, { ...by, network: ['corporate'] }), 'network'), ['Corporate 7'])
    t.same(lines(await bench.ok(TOOL, { ...by, network: ['/orgs/1/networks/External'] }), 'network'), ['External 15'])
    const servers = await bench.ok(TOOL, { ...by, client_type: ['server', 'flowlink'] })
    partial(t, servers, {
      total_rows: 0,
      total_pce_flows: 6,
      coverage_note: /client_type server, client_type flowlink/,
    })
    t.equal((await bench.ok(TOOL, { ...by, network: [], client_type: [] })).total_rows, 2, 'empty means all')
    const summary = await bench.ok('get-traffic-flows-summary', { ...WEEK, network: ['External'] })
    t.equal(summary.totals.rows, 5)
    t.ok(['network', 'client_type'].every((name) => summary.available_dimensions.named.includes(name)))
  })

  await t.test(
    'workloads are looked up only for such rows; where they cannot be read, the answer says so',
    async (t) => {
      bench.simulator.clearRequests()
      const rows = { ...WEEK, group_by: ['dst_name'] }
      await bench.ok(TOOL, { ...rows, network: ['Corporate'] })
      t.equal(requests('/workloads'), 0)
      t.same(
        lines(await bench.ok(TOOL, { ...rows, include_services: [{ port: 445 }], network: ['External'] }), 'dst_name'),
        ['address of "sql-1", seen from outside 5', 'address of "sql-2" or 1 more, seen from outside 4', '- 3'],
      )
      t.equal(requests('/workloads'), 3, 'one for each address')
      bench.simulator.faults.add({ kind: 'status', path: /\/workloads$/, times: 20, status: 403 })
      const unread = await bench.ok(TOOL, { ...rows, network: ['External'] })
      t.match(
        unread.coverage_note,
        /5 rows reported off the corporate network \(External\): addresses there may be those of managed workloads, which could not be read: /,
      )
      bench.simulator.faults.clear()
    },
  )
})

t.test('processes and users are filtered whole, and the answer says where', async (t) => {
  const flow = (process: string, user: string, connections: number) => ({
    from: 'a',
    to: 'b',
    process,
    user,
    connections,
  })
  const estate = handMade({
    hosts: { a: { ip: '10.0.0.1', labels: 'app=a env=lab' }, b: { ip: '10.0.0.2', labels: 'app=b env=lab' } },
    flows: [
      flow('/usr/bin/java', 'root', 1),
      flow('/opt/java/bin/tool', 'rooted', 2),
      flow('/opt/java/bin/java', 'CORP\\eve', 4),
      flow('C:\\java\\java.exe', 'corp\\eve', 8),
    ],
  })
  const bench = await startBench(t, { estate })
  const asked = { ...WEEK, group_by: ['process_name'] }
  const by = async (filter: object) => {
    const answer = await bench.ok(TOOL, { ...asked, ...filter })
    const { totals } = await bench.ok('get-traffic-flows-summary', { ...WEEK, ...filter })
    const sum = objects(answer).reduce((total, row) => total + (row.num_connections as number), 0)
    t.equal(totals.connections, sum, 'as in the summary')
    return [sum, answer.total_pce_flows, answer.coverage_note]
  }
  const here = (filters: string) =>
    `The PCE cannot apply these filters, so they were applied to its rows here: ${filters}. pce_flows counts the rows before that.`
  t.same(await by({ process_name: ['java'] }), [5, 4, here('process_name java')], 'no part of a path or name')
  t.same(await by({ process_name: ['/usr/bin/JAVA'] }), [1, 4, here('process_name /usr/bin/JAVA')])
  t.same(await by({ user_name: ['root'] }), [1, 4, here('user_name root')])
  t.same(await by({ user: ['Corp\\Eve', 'nobody'] }), [12, 4, here('user_name Corp\\Eve, user_name nobody')])
  const both = { process_name: ['java'], user_name: ['root'], include_services: [{ port: 443 }] }
  t.same(await by(both), [1, 4, here('process_name java, user_name root')])
  const sent = bench.simulator.requests.flatMap(({ body }) => (body as Json | null)?.services?.include ?? [])
  t.same(
    new Set(sent.map((one: Json) => Object.keys(one).join())),
    new Set(['port']),
    'no PCE is asked for a whole name',
  )
  t.same(await by({ process_name: [], user_name: [] }), [15, 4, undefined], 'empty means all')

  bench.simulator.clearRequests()
  for (const argument of ['process_name', 'user_name', 'network'])
    for (const tool of [TOOL, 'get-traffic-flows-summary'])
      t.same((await bench.fails(tool, { [argument]: ['x', ' '] }, 'invalid_argument')).message, EMPTY(argument))
  t.equal(bench.simulator.requests.length, 0, 'and nothing was asked')
})
const EMPTY = (argument: string) => `${argument}[1] is an empty name; leave it out.`

t.test('a table is read to its end by its cursor', async (t) => {
  const traffic = { workloads: 40, flows: 200 }
  const bench = await startBench(t, { ...traffic, budget: 4000 })
  const args = { ...WEEK, group_by: ['src_ip', 'dst_ip', 'port', 'proto'] }
  const large = await startBench(t, { ...traffic, budget: 800_000 })
  const whole = await large.ok(TOOL, { ...args, max_results: 10_000 })
  const pages: Json[] = [await bench.ok(TOOL, args)]
  while (pages.at(-1).next_cursor !== undefined)
    pages.push(await bench.ok(TOOL, { ...args, cursor: pages.at(-1).next_cursor }))
  t.ok(pages.length > 2, `${pages.length} pages`)
  t.same(
    pages.flatMap(({ data }) => data),
    whole.data,
  )
  t.same(
    pages.map(({ truncated }) => truncated),
    pages.map((_page, at) => at < pages.length - 1),
  )
  t.ok(Buffer.byteLength(JSON.stringify(pages[0])) <= 4000)
  const cursor = pages[0].next_cursor
  for (const other of [{ group_by: ['port'] }, { start_date: '2026-06-09' }])
    await bench.fails(TOOL, { ...args, ...other, cursor }, 'invalid_argument')
  t.equal(whole.next_cursor, undefined)
})

t.test('pages have the same columns, and say when the traffic has changed between them', async (t) => {
  const seen = (flows: number) => handMade({ ...ESTATE, flows: ESTATE.flows!.slice(0, flows) })
  const estate = { ...seen(6), conversations: [...seen(6).conversations] }
  const bench = await startBench(t, { estate })
  const ask = (cursor?: string) => bench.ok(TOOL, { ...WEEK, max_results: 2, ...(cursor !== undefined && { cursor }) })
  const first = await ask()
  const second = await ask(first.next_cursor)
  const third = await ask(second.next_cursor)
  // Only the first two groups have a process and a user.
  t.same([second.columns, third.columns], [first.columns, first.columns])
  t.ok(first.columns.includes('process_name'))
  t.same([first.coverage_note, second.coverage_note, third.coverage_note], [undefined, undefined, undefined])
  estate.conversations.push([...seen(7).conversations][6]!)
  const moved = await ask(first.next_cursor)
  t.match(moved.coverage_note, /^The traffic has changed since the page before, .* missing or repeated .* end_date /u)
  t.equal((await ask(moved.next_cursor)).coverage_note, undefined, 'once for each change')
})
