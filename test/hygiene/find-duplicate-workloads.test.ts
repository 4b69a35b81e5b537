/** find-duplicate-workloads: which workloads may be one machine, what hangs on each, and which to keep. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from '../tools/hand-made.js'
import { startBench, type Bench, type Json } from '../tools/harness.js'

const ESTATE = handMade({
  hosts: {
    'web-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
    'web-1-old': { ip: '10.0.0.1', managed: false, labels: 'app=pay role=web' },
    'db-1': { ip: '10.0.1.1', managed: false, labels: 'app=pay' },
    'db-1b': { ip: '10.0.1.1', managed: false, labels: 'app=crm' },
    'nas-1': { ip: '2001:db8::5', managed: false },
    'nas-2': { ip: '2001:0db8:0::5', managed: false, labels: 'env=prod' },
    alone: { ip: '10.0.9.9', managed: false },
    clone: { ip: '10.0.3.1' },
    'clone-2': { ip: '10.0.3.1' },
    'srv.example.com': { ip: '10.0.4.1' },
    srv: { ip: '10.0.4.2', managed: false },
    loop: { ip: '127.0.0.1', managed: false },
    loop2: { ip: '127.0.0.1', managed: false },
  },
  ruleSets: [
    {
      name: 'pay',
      scope: '',
      allow: [
        { from: 'host:db-1b', to: 'app=pay', extra: true },
        { from: 'app=pay', to: 'host:web-1-old', enabled: false },
        { from: 'role=web', to: 'app=crm' },
      ],
      deny: [{ from: 'any', to: 'app=crm' }],
    },
  ],
  flows: [
    { from: 'web-1', to: 'db-1', connections: 7 },
    { from: 'db-1', to: 'web-1', connections: 5 },
  ],
})
const HREF = (n: number) => `/orgs/1/workloads/00000000-0000-4000-8000-${String(n).padStart(12, '0')}`

const membersOf = ({ member_columns: columns }: Json, group: Json, ...fields: string[]): Json[][] =>
  group.members.map((row: Json[]) => fields.map((field) => row[columns.indexOf(field)]))
const groupOf = (answer: Json, shared: string): Json =>
  answer.groups.find((one: Json) => one.shared.some((value: string) => value === shared))
const find = (bench: Bench, args: object = {}): Promise<Json> =>
  bench.ok('find-duplicate-workloads', { max_results: 30, ...args })

t.test('workloads that share an address or a name are found, shadows of managed hosts first', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const answer = await find(bench)
  t.same(
    answer.groups.map(({ kind, shared, keep }: Json) => [kind, shared, keep]),
    [
      ['shadow', ['address 10.0.0.1'], HREF(1)],
      ['shadow', ['short_name srv'], null],
      ['unmanaged', ['address 10.0.1.1'], HREF(4)],
      ['unmanaged', ['address 2001:db8::5'], HREF(6)],
      ['managed', ['address 10.0.3.1'], null],
    ],
    'in any spelling, and never by a loopback address',
  )
  partial(t, answer, {
    summary:
      'Among 13 workloads: 2 groups in which an unmanaged workload shadows a managed host, 2 groups of unmanaged workloads, 1 group of managed hosts. Nothing is deleted or merged: decide for each.',
    workloads_total: 13,
    groups_total: 5,
    counts: { shadow: 2, unmanaged: 2, managed: 1 },
  })
  t.notOk('warnings' in answer)
})

t.test('each has what hangs on it: rules by itself and by labels, virtual services, traffic', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const answer = await find(bench)
  const fields = ['name', 'rules_naming_it', 'virtual_services', 'rules_applying', 'rules_undecided', 'connections']
  t.same(membersOf(answer, groupOf(answer, 'address 10.0.0.1'), ...fields), [
    ['web-1', 0, 0, 1, 0, 12],
    ['web-1-old', 1, 0, 2, 0, 0],
  ])
  t.same(membersOf(answer, groupOf(answer, 'address 10.0.1.1'), ...fields), [
    ['db-1', 0, 0, 1, 0, 12],
    ['db-1b', 1, 0, 3, 0, 0],
  ])
  const shadow = groupOf(answer, 'address 10.0.0.1')
  t.equal(shadow.why, 'A VEN runs on it, which reports its addresses and enforces its policy.')
  t.same(shadow.first, [
    '"web-1-old": 1 rule name it: put the kept one in its place; it has "role=web", which the kept one has not.',
  ])
  const twins = groupOf(answer, 'address 10.0.1.1')
  t.equal(twins.why, '1 rule or virtual services name it by itself, more than the others.')
  t.same(twins.first, ['"db-1": it has "app=pay", which the kept one has not.'])
  t.equal(groupOf(answer, 'address 2001:db8::5').why, 'It has more labels than the others.')
  t.match(groupOf(answer, 'short_name srv').why, /^They share no address, so they may be two machines/)
  t.match(groupOf(answer, 'address 10.0.3.1').why, /^Each has a VEN/)
})

t.test('names of workloads and of hosts are compared together, without case', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  const create = (name: string, hostname: string, address: string) =>
    bench.pce.workloads.create({ name, hostname, interfaces: [{ name: 'eth0', address }] })
  await create('x', 'HOST.example.com', '10.6.0.1')
  await create('y', 'host.example.com', '10.6.0.2')
  await create('ALONE', 'z', '10.6.0.3')
  await create('both', 'both', '10.6.0.4')
  await create('both', 'both', '10.6.0.4')
  const answer = await find(bench, { kinds: ['unmanaged'] })
  t.same(
    answer.groups.map(({ shared }: Json) => shared),
    [
      ['address 10.0.1.1'],
      ['address 2001:db8::5'],
      ['address 10.6.0.4', 'hostname both'],
      ['name alone'],
      ['hostname host.example.com'],
    ],
  )
})

t.test('what could not be read is not known, and nothing is given up for it', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  bench.simulator.faults.add({ kind: 'status', path: '/orgs/1/sec_policy/active/rule_sets', times: 9, status: 403 })
  const answer = await find(bench)
  const twins = groupOf(answer, 'address 10.0.1.1')
  t.same(membersOf(answer, twins, 'rules_naming_it', 'rules_applying', 'connections'), [
    [null, null, 12],
    [null, null, 0],
  ])
  t.same([twins.keep, twins.why], [null, 'What policy hangs on them is not known, so none can be given up.'])
  t.match(answer.warnings[0], /^Which rules hang on them is not known: /)
})

t.test('an answer is small, and the groups come page by page', async (t) => {
  const bench = await startBench(t, { estate: ESTATE })
  for (let n = 0; n < 40; n += 1)
    for (const name of ['p', 'q'])
      await bench.pce.workloads.create({ name: `${name}-${n}`, interfaces: [{ name: 'eth0', address: `10.5.0.${n}` }] })
  for (let n = 0; n < 9; n += 1)
    await bench.pce.workloads.create({ name: `many-${n}`, interfaces: [{ name: 'eth0', address: '10.5.1.1' }] })
  const first = await bench.ok('find-duplicate-workloads')
  t.equal(first.groups.length, 6)
  t.ok(JSON.stringify(first).length < 6_000, `${JSON.stringify(first).length} bytes`)
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page: Json = await bench.ok('find-duplicate-workloads', { max_results: 20, ...(cursor && { cursor }) })
    seen.push(...page.groups.map(({ shared }: Json) => shared[0]))
    cursor = page.next_cursor
    t.equal(page.truncated, cursor !== undefined)
  } while (cursor !== undefined)
  t.same([seen.length, new Set(seen).size], [46, 46])
  const many = groupOf(await find(bench, { kinds: ['unmanaged'], max_results: 3 }), 'address 10.0.1.1')
  t.equal(many.members_total, undefined)
  let crowd: Json
  let next: string | undefined
  do {
    const page: Json = await bench.ok('find-duplicate-workloads', { max_results: 30, ...(next && { cursor: next }) })
    crowd ??= groupOf(page, 'address 10.5.1.1')
    next = page.next_cursor
  } while (next !== undefined)
  t.same([crowd.members_total, crowd.members.length, crowd.keep], [9, 6, null])
  const none = await startBench(t, { estate: handMade({ hosts: { a: { ip: '10.0.0.1' } } }) })
  const empty = await none.ok('find-duplicate-workloads')
  t.same(
    [empty.summary, empty.groups, empty.groups_total],
    ['No two of 1 workload share an address, a host name or a name.', [], 0],
  )
})
