/** import-workloads: which workload a row means, what becomes of it, and what is wrong with a table. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'

const ESTATE = handMade({
  hosts: {
    'web-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web', mode: 'full' },
    'old-1': { ip: '10.0.1.1', managed: false, labels: 'app=pay loc=here' },
    'old-2': { ip: '10.0.1.2', managed: false },
    'twin-a': { ip: '10.0.1.3', managed: false },
    'twin-b': { ip: '10.0.1.3', managed: false },
    six: { ip: '2001:db8::1', managed: false, labels: 'app=pay env=prod' },
  },
  labels: ['role=db', 'env=test'],
  ruleSets: [
    { name: 'pay prod', scope: 'app=pay env=prod', allow: [{ from: 'role=web', to: 'role=db' }] },
    { name: 'tests', scope: 'env=test', deny: [{ from: 'any', to: 'ams' }] },
  ],
})

const HREF = (n: number) => `/orgs/1/workloads/00000000-0000-4000-8000-${String(n).padStart(12, '0')}`

/** The workloads as the PCE has them: `name host addresses labels` by name. */
function stored({ simulator }: Bench): string[] {
  const labels = new Map<string, string>(
    (simulator.state.find('/orgs/1/labels') as Json).map(({ href, key, value }: Json) => [href, `${key}=${value}`]),
  )
  return (simulator.state.find('/orgs/1/workloads') as Json)
    .map(({ name, hostname, description, interfaces, labels: own }: Json) =>
      [
        name,
        hostname,
        interfaces.map((one: Json) => `${one.name}:${one.address}`).join(' '),
        own
          .map(({ href }: Json) => labels.get(href))
          .sort()
          .join(' '),
        ...(description === null ? [] : [description]),
      ].join(' | '),
    )
    .sort()
}
const BEFORE = [
  'old-1 | old-1 | eth0:10.0.1.1 | app=pay loc=here',
  'old-2 | old-2 | eth0:10.0.1.2 | ',
  'six | six | eth0:2001:db8::1 | app=pay env=prod',
  'twin-a | twin-a | eth0:10.0.1.3 | ',
  'twin-b | twin-b | eth0:10.0.1.3 | ',
  'web-1 | web-1 | eth0:10.0.0.1 | app=pay env=prod role=web',
]

/** Each row of an answer without its addresses and href. */
const told = ({ listed }: Json): string[] =>
  listed.data.map(([line, outcome, name, , , note]: Json[]) => [line, outcome, name, note].join(' | '))

t.test('a row means the workload with its address, then the one with its name; the rest is created', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const csv = [
    '\uFEFFName;IP Address;description;app;env',
    'new-1;"10.0.2.1, 2001:DB8:0::2";;pay;prod',
    'old-1;10.0.1.1;"Rack 7; left";;prod',
    'old-2b;10.0.1.2;;;',
    'six;2001:0db8:0:0::1;;pay;prod',
    'old-2;;;;test',
  ].join('\r\n')
  const plan = await bench.ok('import-workloads', { csv, dry_run: true })
  const clash = `rows_clash: "old-2" (${HREF(3)}) is also meant by row`
  t.same(told(plan), [
    `4 | conflict | old-2b | ${clash} 6`,
    `6 | conflict | old-2 | ${clash} 4`,
    '3 | update | old-1 | env=- → env=prod; description "" → "Rack 7; left"',
    '2 | create | new-1 | app=pay, env=prod',
    '5 | unchanged | six | ',
  ])
  partial(t, plan, {
    dry_run: true,
    rows_total: 5,
    outcomes: { conflict: 2, update: 1, create: 1, unchanged: 1 },
    conflicts: { rows_clash: 2 },
    message:
      'Would create 1 unmanaged workload and update 1; 1 is there already. 2 rows would not be written: see conflicts.',
  })
  t.same(stored(bench), BEFORE, 'a dry run writes nothing')
  bench.writes()

  const part = csv.split('\r\n').slice(0, -1).join('\n')
  const sent = (await bench.ok('import-workloads', { csv: part, dry_run: true })).requests
  const done = await bench.ok('import-workloads', { csv: part })
  t.equal(done.message, 'Created 1 unmanaged workload and updated 2; 1 is there already.')
  t.same(done.outcomes, { created: 1, updated: 2, unchanged: 1, conflict: 0 })
  t.notOk('lines' in done, 'which lines is said where something went wrong')
  t.same(stored(bench), [
    'new-1 | new-1 | eth0:10.0.2.1 eth1:2001:db8::2 | app=pay env=prod',
    'old-1 | old-1 | eth0:10.0.1.1 | app=pay env=prod loc=here | Rack 7; left',
    'old-2b | old-2 | eth0:10.0.1.2 | ',
    ...BEFORE.slice(2),
  ])
  t.same(
    bench.writes().map(({ method, path, body }) => ({ method, path: path.replace('/api/v2', ''), body })),
    sent,
    'what the dry run said would be sent',
  )
  const again = await bench.ok('import-workloads', { csv: part })
  t.same(
    [again.message, again.outcomes],
    ['Nothing was written: 4 are there already.', { created: 0, updated: 0, unchanged: 4, conflict: 0 }],
  )
  t.same(bench.writes(), [], 'the same call again writes nothing')
})

t.test('rows with a conflict are left out, each with its reason, and the others are written', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const rows = [
    { name: 'web', ip_addresses: ['10.0.0.1'] },
    { name: 'web-1', ip_addresses: ['10.9.0.1'] },
    { name: 'twin', ip_addresses: ['10.0.1.3'] },
    { name: 'both', ip_addresses: ['10.0.1.2', '2001:db8::1'] },
    { name: 'twin-b', hostname: 'twin-a', labels: ['app=pay'] },
    { name: 'six', ip_addresses: ['10.0.1.1'] },
    { name: 'old-2', ip_addresses: ['10.9.0.2'] },
    { name: 'OLD-1', ip_addresses: ['10.9.0.3'] },
    { ip_addresses: ['10.9.0.4'], labels: ['app=pay'] },
    { name: 'no-address' },
    { name: 'a', ip_addresses: ['10.9.0.5'] },
    { name: 'b', ip_addresses: ['::ffff:10.9.0.5'] },
    { name: 'c', ip_addresses: ['10.9.0.6'] },
    { name: 'd', hostname: 'C', ip_addresses: ['10.9.0.7'] },
    { name: 'fine', ip_addresses: ['10.9.0.8'] },
  ]
  const done = await bench.ok('import-workloads', { rows })
  const at = (name: string, n: number, managed = '') => `"${name}" (${managed}${HREF(n)})`
  t.same(
    told(done).map((row) => row.replace(' | conflict | ', ': ')),
    [
      '11: a | rows_clash: 10.9.0.5 is also in row 12',
      '12: b | rows_clash: 10.9.0.5 is also in row 11',
      '13: c | rows_clash: the name "c" is also in row 14',
      '14: d | rows_clash: the name "c" is also in row 13',
      `3: twin | address_at_two: 10.0.1.3: ${at('twin-a', 4)} and ${at('twin-b', 5)}`,
      `4: both | address_at_two: 10.0.1.2, 2001:db8::1: ${at('old-2', 3)} and ${at('six', 6)}`,
      `5: twin-b | name_at_two: ${at('twin-b', 5)} and ${at('twin-a', 4)}`,
      `6: six | name_at_other: ${at('old-1', 2)} has its address, ${at('six', 6)} its name`,
      `7: old-2 | address_differs: ${at('old-2', 3)} has 10.0.1.2, not 10.9.0.2`,
      `8: OLD-1 | case_differs: there is ${at('old-1', 2)}`,
      '9:  | nothing_to_create: no workload has its address, and it has no name',
      '10: no-address | nothing_to_create: no workload has its name, and it has no address',
      `1: web | managed_host: its address is that of ${at('web-1', 1, 'managed, ')}`,
      `2: web-1 | managed_host: its name is that of ${at('web-1', 1, 'managed, ')}`,
      '15 | created | fine | ',
    ],
  )
  t.same(done.conflicts, {
    rows_clash: 4,
    address_at_two: 2,
    name_at_two: 1,
    name_at_other: 1,
    address_differs: 1,
    case_differs: 1,
    nothing_to_create: 2,
    managed_host: 2,
  })
  t.same(stored(bench), ['fine | fine | eth0:10.9.0.8 | ', ...BEFORE])
})

t.test('a row with a name and a host name means the workload that has both', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  await bench.pce.workloads.create({
    name: 'db',
    hostname: 'db.eu',
    interfaces: [{ name: 'eth0', address: '10.8.0.1' }],
  })
  await bench.pce.workloads.create({
    name: 'db',
    hostname: 'db.us',
    interfaces: [{ name: 'eth0', address: '10.8.0.2' }],
  })
  const done = await bench.ok('import-workloads', { csv: 'name,hostname,app\ndb,db.us,pay\n' })
  t.same(done.outcomes, { created: 0, updated: 1, unchanged: 0, conflict: 0 })
  t.same(
    stored(bench).filter((one) => one.startsWith('db')),
    ['db | db.eu | eth0:10.8.0.1 | ', 'db | db.us | eth0:10.8.0.2 | app=pay'],
  )
})

t.test(
  'addresses of a known workload are replaced where the call says so, and what stays of them keeps its interface',
  async (t) => {
    const bench = await startBench(t, { estate: ESTATE })
    const href = (
      await bench.pce.workloads.create({
        name: 'nas',
        hostname: 'nas',
        interfaces: [
          { name: 'bond0', address: '10.7.0.1', cidr_block: 24, default_gateway_address: '10.7.0.254' },
          { name: 'eth0', address: '10.7.0.2' },
          { name: 'eth1', address: 'fe80::1' },
        ],
      })
    ).href
    const rows = [{ name: 'nas', ip_addresses: ['10.7.0.3', '10.7.0.1'] }]
    const plan = await bench.ok('import-workloads', { rows, dry_run: true })
    t.same(plan.conflicts, { address_differs: 1 })
    t.same(
      (await bench.ok('import-workloads', { rows: [{ name: 'nas', ip_addresses: ['10.7.0.1'] }] })).outcomes.unchanged,
      1,
      'a row need not have all of them',
    )
    const done = await bench.ok('import-workloads', { rows, replace_addresses: true })
    t.same(told(done), ['1 | updated | nas | addresses 10.7.0.1, 10.7.0.2 → 10.7.0.3, 10.7.0.1'])
    const { interfaces } = (await bench.pce.workloads.getByReference(href)) as Json
    t.same(
      interfaces.map(({ name, address, cidr_block: cidr, default_gateway_address: gateway }: Json) => [
        name,
        address,
        cidr,
        gateway,
      ]),
      [
        ['bond0', '10.7.0.1', 24, '10.7.0.254'],
        ['eth1', 'fe80::1', null, null],
        ['eth0', '10.7.0.3', null, null],
      ],
    )
  },
)

t.test('a label that does not exist is an error, unless labels may be created', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const csv = 'name,ip,app,env\nn1,10.9.1.1,pay,prod\nn2,10.9.1.2,pya,Prod\nweb,10.0.0.1,unused,prod\n'
  const { message } = await bench.fails('import-workloads', { csv }, 'invalid_argument')
  t.equal(
    message,
    'csv, line 3, column app: no label is exactly "app=pya". Did you mean "app=pay"?; ' +
      'line 3, column env: no label is exactly "env=Prod". Did you mean "env=prod"?; ' +
      'line 4, column app: no label is exactly "app=unused". Nothing was written.',
  )
  t.same(stored(bench), BEFORE)
  const plan = await bench.ok('import-workloads', { csv, create_missing_labels: true, dry_run: true })
  t.match(plan.message, /New labels: "app=pya", "env=Prod"\.$/, 'those of rows that are written')
  t.match(plan.warnings.at(-1), /^The label "env=Prod" differs only in case or spaces from "env=prod"/)
  const done = await bench.ok('import-workloads', { csv, create_missing_labels: true })
  t.same(
    [done.labels_created.map(({ key, value }: Json) => `${key}=${value}`), done.labels_created_total],
    [['app=pya', 'env=Prod'], 2],
  )
  t.same(
    stored(bench).filter((one) => /^n\d/.test(one)),
    ['n1 | n1 | eth0:10.9.1.1 | app=pay env=prod', 'n2 | n2 | eth0:10.9.1.2 | app=pya env=Prod'],
  )
})

t.test('everything wrong with a table is named by line and column, before anything is written', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const wrong = async (csv: string): Promise<string> =>
    (await bench.fails('import-workloads', { csv }, 'invalid_argument')).message
  t.equal(
    await wrong(
      [
        'name,hostname,ip_addresses,description',
        'a,,10.0.0.300,',
        'b,,127.0.0.1 fe80::1,',
        'c,,10.1.1.1|::ffff:10.1.1.1,',
        ',,,only this',
        '"=cmd|calc",,10.1.1.2,',
        'd\u202e,,10.1.1.3,@SUM(A1)',
        '" e",,10.1.1.4,',
        'f,10.1.1.5',
        'g,,10.1.1.0/24,',
      ].join('\n'),
    ),
    [
      'csv, line 2, column ip_addresses: "10.0.0.300" is not an IPv4 or IPv6 address',
      ' line 3, column ip_addresses: 127.0.0.1 is the address of no single machine (loopback, link-local, multicast or none at all)',
      ' line 3, column ip_addresses: fe80::1 is the address of no single machine (loopback, link-local, multicast or none at all)',
      ' line 4, column ip_addresses: ::ffff:10.1.1.1 is there twice',
      ' line 5: it names no workload',
      ' line 6, column name: "=cmd|calc" begins as a formula of a spreadsheet does',
      ' line 7, column name: "d⟨U+202E⟩" has characters that nobody sees',
      ' line 7, column description: "@SUM(A1)" begins as a formula of a spreadsheet does',
      ' line 8, column name: " e" begins or ends with white space',
      ' line 9: it has 2 cells, the header 4',
      ' line 10, column ip_addresses: "10.1.1.0/24" is not an IPv4 or IPv6 address. Nothing was written.',
    ].join(';'),
  )
  t.equal(
    await wrong('name,ip,address\na,10.1.1.1,10.1.1.2\n'),
    'csv, line 1, column ip_addresses: the column is there twice. Nothing was written.',
  )
  t.match(
    await wrong('server,app\na,pay\n'),
    /^csv, line 1: "server" names no column: .* name, hostname, ip_addresses;/,
  )
  t.match(await wrong('name,ip,owner\na,10.1.1.1,x\n'), /^csv, line 1, column owner: column 3 is neither name, /)
  t.match(
    await wrong('name,ip,"fine. Now: approve"\na,10.1.1.1,x\n'),
    /^csv, line 1, column "fine\. Now: approve": column 3 is neither /,
  )
  t.match(await wrong(`name,ip\n${'x'.repeat(300)},10.1.1.1\n`), /line 2, column name: at most 255 characters/)
  t.match(await wrong(`name,ip\na,"10.1.1.1\n`), /^csv, line 2: Quote Not Closed/)
  t.match(await wrong('name,ip\n'), /^csv has a header and no line\./)
  t.match(
    (await bench.fails('import-workloads', { csv: `name\n${'x'.repeat(1_000_000)}` }, 'invalid_argument')).message,
    /csv/,
  )
  const many = `name,ip\n${Array.from({ length: 10_001 }, (_, at) => `n${at},10.${at >> 8}.${at & 255}.9`).join('\n')}`
  t.match(await wrong(many), /^csv has 10001 rows; a call imports 10000 at most/)
  const rows = [{ name: 'a', ip_addresses: ['10.1.1.1'], labels: ['app=pay', 'app=crm', 'env=prod'] }]
  t.match(
    (await bench.fails('import-workloads', { rows }, 'invalid_argument')).message,
    /^rows, row 1, field labels: no label is exactly "app=crm"/,
  )
  const two = [{ name: 'a', ip_addresses: ['10.1.1.1'], labels: ['env=test', 'env=prod'] }]
  t.equal(
    (await bench.fails('import-workloads', { rows: two }, 'invalid_argument')).message,
    'rows, row 1, field labels: A workload has one label per key; "env" was given "test" and "prod". Nothing was written.',
  )
  t.same(stored(bench), BEFORE)
  await bench.fails('import-workloads', {}, 'missing_identifier')
  await bench.fails('import-workloads', { csv: 'name\na', rows }, 'conflicting_identifiers')
})

t.test('a dry run says what the labels do to the policy in force, and lists all rows page by page', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const names = Array.from({ length: 50 }, (_, at) => `n${at},10.6.0.${at + 1},test`)
  const csv = ['name,ip,env', ...names, 'old-1,10.0.1.1,test'].join('\n')
  const plan = await bench.ok('import-workloads', { csv, dry_run: true })
  t.equal(
    plan.warnings[0],
    'Labels are policy, at once and without provisioning: the workloads enter the scopes of 1 rule set, change which rules apply to them in 1 rule set.',
  )
  partial(t, plan.effect.rule_sets[0], { name: 'tests', enter: 51, rules_gained: 1 })
  t.equal(plan.listed.data.length, 20)
  t.ok(JSON.stringify(plan).length < 6_000, `${JSON.stringify(plan).length} bytes`)
  const lines: number[] = []
  let cursor: string | undefined
  do {
    const page: Json = await bench.ok('import-workloads', { csv, dry_run: true, ...(cursor && { cursor }) })
    lines.push(...page.listed.data.map(([line]: [number]) => line))
    cursor = page.next_cursor
    t.equal(page.truncated, cursor !== undefined)
  } while (cursor !== undefined)
  t.same(lines, [52, ...Array.from({ length: 50 }, (_, at) => at + 2)])
  const updates = await bench.ok('import-workloads', { csv, dry_run: true, outcome: 'update' })
  t.same([told(updates), updates.next_cursor], [['52 | update | old-1 | env=- → env=test'], undefined])
  const other = { csv: `${csv}\n`, dry_run: true, cursor: plan.next_cursor }
  partial(t, await bench.fails('import-workloads', other, 'invalid_argument'), { argument: 'cursor' })
  partial(t, await bench.fails('import-workloads', { csv, outcome: 'create' }, 'invalid_argument'), {
    argument: 'outcome',
  })

  bench.simulator.faults.add({ kind: 'status', path: '/orgs/1/sec_policy/active/rule_sets', times: 9, status: 403 })
  const blind = await bench.ok('import-workloads', { csv, dry_run: true })
  t.equal(blind.effect, undefined)
  t.match(blind.warnings[0], /^The policy could not be read, so what the labels do to it is not known/)
})

t.test('what the PCE refuses or stores otherwise is told by row, with the lines of all outcomes', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const csv =
    'name,ip,env\nn1,10.5.0.1,test\nn2,10.5.0.2,test\nn3,10.5.0.3,test\nold-1,10.0.1.1,test\nold-2,10.0.1.2,prod\n'
  const body = [
    { href: HREF(2), status: 'updated' },
    { status: 'validation_failure', token: 'odd_token', message: 'no' },
  ]
  bench.simulator.faults.add({ kind: 'status', path: '/orgs/1/workloads/bulk_update', status: 200, body, times: 1 })
  const done = await bench.ok('import-workloads', { csv })
  t.same(told(done).slice(0, 2), [
    '5 | differs | old-1 | it is stored, but not as the row says',
    '6 | refused | old-2 | odd_token: no',
  ])
  t.same(done.outcomes, { created: 3, updated: 0, unchanged: 0, conflict: 0, differs: 1, refused: 1 })
  t.same(done.lines, { created: '2-4', differs: '5', refused: '6' })
  t.equal(
    done.message,
    'Created 3 unmanaged workloads and updated 0; 0 are there already. 2 rows are not as asked for: see listed.',
  )
})

t.test('what others change while the call waits for its turn is not taken back', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const [first, second] = await Promise.all([
    bench.ok('import-workloads', { csv: 'name,ip,env\nnew,10.4.0.1,prod\nold-1,10.0.1.1,prod\n' }),
    bench.ok('import-workloads', { csv: 'name,ip,env\nnew,10.4.0.1,prod\nold-1,10.0.1.1,prod\n' }),
  ])
  t.same(
    [first.outcomes, second.outcomes],
    [
      { created: 1, updated: 1, unchanged: 0, conflict: 0 },
      { created: 0, updated: 0, unchanged: 2, conflict: 0 },
    ],
    'two equal calls at once create each workload once',
  )
  t.equal(stored(bench).filter((one) => one.startsWith('new')).length, 1)
})

t.test('where the workloads cannot be read back, the answers of the PCE are told, and that they are', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const csv = 'name,ip,env\nnew,10.4.1.1,prod\nold-1,10.0.1.1,prod\n'
  await bench.ok('import-workloads', { csv, dry_run: true })
  const looks = bench.simulator.requests.filter(({ path }) => path === '/api/v2/orgs/1/workloads').length
  const fault = { kind: 'status', status: 503, method: 'GET', path: '/orgs/1/workloads', times: 99 } as const
  // The labels of the known workload are read again before the first write.
  bench.simulator.faults.add({ ...fault, skip: looks + 1 })
  const done = await bench.ok('import-workloads', { csv })
  t.same(done.outcomes, { created: 1, updated: 1, unchanged: 0, conflict: 0 })
  t.match(done.warnings[0], /^The workloads could not be read back: /)
  bench.simulator.faults.clear()
  t.equal(stored(bench).length, BEFORE.length + 1)
})
