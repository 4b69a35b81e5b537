/** compare-traffic: differences that were planted, found exactly; and what may look like one and is none. */
import t, { type Test } from 'tap'
import { contains, partial } from '../partial.js'
import { handMade, type HandMadeEstate, type HandMadeFlow, type HandMadeHost } from './hand-made.js'
import { NOW, startBench, type Bench, type BenchOptions, type Json } from './harness.js'

const TOOL = 'compare-traffic'
const DAY_MS = 86_400_000
/** Without dates, before is 12 June to the noon of the 13th, now the 14th to the noon of the 15th. */
const [BEFORE, NOW_SEEN, EARLIER] = [3, 1, 20] as const

const HOSTS: Record<string, HandMadeHost> = {
  web: { ip: '10.0.0.1', labels: 'app=web env=prod' },
  pay: { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'full' },
  crm: { ip: '10.0.0.3', labels: 'app=crm env=prod' },
  nas: { ip: '10.0.0.4' },
}
const RULES = [
  {
    name: 'pay',
    scope: 'app=pay env=prod',
    allow: [{ from: 'app=web', to: 'ams', extra: true, services: [{ port: 443, proto: 6 }] }],
  },
]
const both = (flow: HandMadeFlow, before: number, now: number): HandMadeFlow[] => [
  ...(before > 0 ? [{ ...flow, daysAgo: BEFORE, connections: before }] : []),
  ...(now > 0 ? [{ ...flow, daysAgo: NOW_SEEN, connections: now }] : []),
]
const start = (
  t: Test,
  flows: HandMadeFlow[],
  options: BenchOptions & Pick<HandMadeEstate, 'hosts' | 'ipLists'> = {},
) =>
  startBench(t, {
    estate: handMade({
      hosts: options.hosts ?? HOSTS,
      flows,
      ruleSets: RULES,
      ...(options.ipLists !== undefined && { ipLists: options.ipLists }),
    }),
    ...options,
  })
const LISTS = ['new', 'gone', 'risen', 'fallen'] as const
/** The rows of all lists in one line each, with the doubt where there is one. */
const rows = (answer: Json): string[] =>
  LISTS.flatMap((list) =>
    answer[list].map((row: Json[]) => {
      const cells = Object.fromEntries(answer.columns.map((name: string, at: number) => [name, row[at]]))
      const { seen: _seen, doubt, ...shown } = cells
      return [list, ...Object.values(shown), ...(doubt == null ? [] : [`(${doubt})`])].join(' ')
    }),
  )
const compared = async (bench: Bench, args: object = {}) => bench.ok(TOOL, args)

t.test('what is new, gone, risen, fallen and as before', async (t) => {
  const bench = await start(t, [
    ...both({ from: 'web', to: 'pay' }, 0, 7),
    ...both({ from: 'crm', to: 'pay', port: 22 }, 0, 2),
    ...both({ from: 'crm', to: 'web', port: 8080 }, 0, 50),
    ...both({ from: 'web', to: 'crm', port: 443 }, 5, 0),
    ...both({ from: 'crm', to: 'pay', port: 3306 }, 4, 0),
    ...both({ from: 'nas', to: 'web', port: 445 }, 20, 40),
    ...both({ from: 'nas', to: 'crm', port: 445 }, 40, 20),
    ...both({ from: 'nas', to: 'pay', port: 445 }, 20, 39),
    ...both({ from: 'nas', to: 'web', port: 80 }, 3, 12),
    ...both({ from: 'nas', to: 'web', port: 81 }, 6, 6),
    { from: 'crm', to: 'nas', port: 9, daysAgo: EARLIER },
  ])
  const answer = await compared(bench)
  t.same(rows(answer), [
    'new crm (prod) pay (prod) 22 tcp blocked 0 2',
    'new crm (prod) web (prod) 8080 tcp potentially_blocked 0 50',
    'new web (prod) pay (prod) 443 tcp allowed 0 7',
    'gone crm (prod) pay (prod) 3306 tcp blocked 4 0',
    'gone web (prod) crm (prod) 443 tcp potentially_blocked 5 0',
    'risen nas web (prod) 445 tcp potentially_blocked 20 40',
    'fallen nas crm (prod) 445 tcp potentially_blocked 40 20',
  ])
  t.same(answer.totals, { new: 3, gone: 2, risen: 1, fallen: 1, same: 3, not_known: 0 })
  t.same(answer.by_policy, {
    new: { blocked: 1, potentially_blocked: 1, allowed: 1 },
    gone: { blocked: 1, potentially_blocked: 1 },
    risen: { potentially_blocked: 1 },
    fallen: { potentially_blocked: 1 },
  })
  t.equal(
    answer.summary,
    'Of 10 pairs: 3 new (1 blocked, 1 potentially_blocked), 2 gone (1 blocked, 1 potentially_blocked), 1 risen (1 potentially_blocked), 1 fallen (1 potentially_blocked), 3 as before. Now is 2026-06-14T00:00:00Z to 2026-06-15T12:00:00Z, before 2026-06-12T00:00:00Z to 2026-06-13T12:00:00Z.',
  )
  t.same(answer.new[0].at(-1), '2026-06-14T01:00:00Z', 'since when it is new')
  t.same(answer.gone[0].at(-1), '2026-06-12T01:00:00Z', 'until when it was seen')
  t.same(answer.risen[0].at(-1), '2026-06-14T01:00:00Z', 'first seen now')
  t.same(answer.fallen[0].at(-1), '2026-06-12T01:00:00Z', 'last seen before')
  t.same([answer.before.until, answer.now.until], ['2026-06-13T12:00:00Z', '2026-06-15T12:00:00Z'])
  t.same(answer.before.window, { start: '2026-06-12T00:00:00Z', end: '2026-06-13T12:00:00Z' })
  t.same(answer.now.window, { start: '2026-06-14T00:00:00Z', end: '2026-06-15T23:59:59Z' })
  t.same([answer.before.hours, answer.now.hours], [36, 36])
  t.same([answer.before.connections, answer.now.connections], [98, 176])
  t.equal(answer.doubts, undefined)
})

t.test('policy of today decides both windows, whatever was recorded', async (t) => {
  const bench = await start(t, [
    ...both({ from: 'crm', to: 'pay', recorded: 'allowed' }, 0, 5),
    ...both({ from: 'web', to: 'pay', recorded: 'blocked' }, 0, 5),
  ])
  t.same(rows(await compared(bench)), [
    'new crm (prod) pay (prod) 443 tcp blocked 0 5',
    'new web (prod) pay (prod) 443 tcp allowed 0 5',
  ])
  t.same(rows(await compared(bench, { policy_decisions: ['allowed'] })), [
    'new web (prod) pay (prod) 443 tcp allowed 0 5',
  ])
  const rule = {
    providers: ['ams'],
    consumers: ['app=crm'],
    ingress_services: ['All Services'],
    unscoped_consumers: true,
  }
  await bench.ok('create-ruleset', { name: 'crm', scopes: [['app=pay', 'env=prod']], rules: [rule] })
  const draft = await compared(bench, { decide_by: 'draft' })
  t.same(draft.by_policy.new, { allowed: 2 })
  t.equal(draft.decided.by, 'draft')
})

t.test('random pairs, held against arithmetic', async (t) => {
  let seed = 7
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const planted = Array.from({ length: 200 }, (_, at) => ({
    port: 1000 + at,
    before: random(3) === 0 ? 0 : random(60),
    now: random(3) === 0 ? 0 : random(60),
  }))
  const kindOf = (before: number, now: number) => {
    if (before === 0) return 'new'
    if (now === 0) return 'gone'
    if (now >= 2 * before && now >= before + 10) return 'risen'
    return before >= 2 * now && before >= now + 10 ? 'fallen' : 'same'
  }
  const flows = planted.flatMap(({ port, before, now }) => both({ from: 'web', to: 'crm', port }, before, now))
  const bench = await start(t, flows)
  const answer = await compared(bench, { detail_level: 'full', group_by: ['port'] })
  const found = LISTS.flatMap((list) => answer[list].map((row: Json[]) => `${row[0]} ${list} ${row[2]} ${row[3]}`))
  const seen = planted.filter(({ before, now }) => before + now > 0)
  const told = seen.map(({ port, before, now }) => `${port} ${kindOf(before, now)} ${before} ${now}`)
  t.same(found.sort(), told.filter((line) => !line.includes('same')).sort())
  t.equal(answer.totals.same, told.filter((line) => line.includes('same')).length)
  t.ok(
    LISTS.every((list) => answer[list].length > 5),
    'there are some of each',
  )
})

t.test('ports that programs are given count as one', async (t) => {
  const bench = await start(t, [
    ...both({ from: 'web', to: 'crm', port: 50_001 }, 4, 0),
    ...both({ from: 'web', to: 'crm', port: 50_002 }, 0, 4),
    ...both({ from: 'web', to: 'crm', port: 49_151 }, 0, 4),
    ...both({ from: 'web', to: 'nas', port: 65_535, proto: 17 }, 0, 1),
    ...both({ from: 'web', to: 'nas', proto: 1 }, 0, 1),
  ])
  t.same(rows(await compared(bench)), [
    'new web (prod) crm (prod) 49151 tcp potentially_blocked 0 4',
    'new web (prod) nas 0 icmp potentially_blocked 0 1',
    'new web (prod) nas 49152-65535 udp potentially_blocked 0 1',
  ])
  const unfolded = await compared(bench, { fold_ports_from: 65_536, include_destinations: ['app=crm'] })
  t.same(rows(unfolded), [
    'new web (prod) crm (prod) 49151 tcp potentially_blocked 0 4',
    'new web (prod) crm (prod) 50002 tcp potentially_blocked 0 4',
    'gone web (prod) crm (prod) 50001 tcp potentially_blocked 4 0',
  ])
  const grouped = await compared(bench, { fold_ports_from: 32_768, group_by: ['dst_app', 'port'] })
  t.same(rows(grouped), ['new - 0 potentially_blocked 0 1', 'new - 32768-65535 potentially_blocked 0 1'])
  t.ok(grouped.notes.includes('Ports from 32768 on count as one.'))
})

t.test('sources outside count by IP list or as public, destinations by address', async (t) => {
  const bench = await start(
    t,
    [
      ...both({ from: '8.8.8.8', to: 'web' }, 3, 0),
      ...both({ from: '9.9.9.9', to: 'web' }, 0, 3),
      ...both({ from: '192.0.2.1', to: 'web' }, 3, 0),
      ...both({ from: '192.0.2.2', to: 'web' }, 0, 3),
      ...both({ from: '10.9.9.9', to: 'web' }, 0, 3),
      ...both({ from: 'web', to: '8.8.8.8' }, 3, 0),
      ...both({ from: 'web', to: '9.9.9.9' }, 0, 3),
    ],
    { ipLists: { Partners: ['192.0.2.0/24'] } },
  )
  const any = '(Any (0.0.0.0/0 and ::/0))'
  t.same(rows(await compared(bench)), [
    `new 10.9.9.9 ${any} web (prod) 443 tcp potentially_blocked 0 3`,
    `new web (prod) 9.9.9.9 ${any} 443 tcp potentially_blocked 0 3`,
    `gone web (prod) 8.8.8.8 ${any} 443 tcp potentially_blocked 3 0`,
  ])
  t.equal((await compared(bench)).totals.same, 2, 'of Partners and of public addresses')
})

t.test('services are filtered as texts or objects', async (t) => {
  const flows = [22, 443, 8001, 8002].map((port) => ({ from: 'web', to: 'crm', port, daysAgo: NOW_SEEN }))
  const bench = await start(t, [...flows, { ...flows[0]!, port: 53, proto: 17 }, { ...flows[0]!, proto: 1 }])
  const ports = async (include_services: unknown[], more: object = {}) => {
    const answer = await compared(bench, { include_services, group_by: ['port', 'proto'], ...more })
    return answer.new.map(([port, proto]: Json[]) => `${port}/${proto}`).sort()
  }
  t.same(await ports(['22/tcp', '8000-8001/tcp', 'icmp']), ['0/icmp', '22/tcp', '8001/tcp'])
  t.same(await ports(['53', { port: 443, proto: 'tcp' }]), ['443/tcp', '53/udp'])
  t.same(await ports(['UDP / 53', '443-444/tcp']), ['443/tcp', '53/udp'])
  t.same(await ports([], { exclude_services: ['tcp'] }), ['0/icmp', '53/udp'])
})

t.test('a conversation that both ends report counts once, and by programs twice', async (t) => {
  const client = { from: 'web', to: 'crm', direction: 'outbound', process: 'client' } as const
  const server = { from: 'web', to: 'crm', direction: 'inbound', process: 'server' } as const
  const bench = await start(t, [...both(client, 30, 30), ...both(server, 0, 30)])
  partial(t, await compared(bench), { totals: { same: 1, new: 0 }, now: { connections: 30 } })
  const answer = await compared(bench, { group_by: ['process_name'] })
  t.same(rows(answer), ['new server potentially_blocked 0 30'])
  contains(t, answer.now.analysed.note, 'Both ends report: 30 connections')
})

t.test('a cut window says that what is gone may only be cut', async (t) => {
  const flows = [
    ...[1, 2, 3, 4].flatMap((port) => both({ from: 'web', to: 'crm', port }, 0, 5)),
    ...both({ from: 'web', to: 'crm', port: 9 }, 5, 5),
    ...both({ from: 'web', to: 'crm', port: 8 }, 5, 0),
  ]
  const bench = await start(t, flows, { trafficRows: 3 })
  const answer = await compared(bench)
  t.same([answer.before.flows_truncated, answer.now.flows_truncated], [false, true])
  t.same(
    rows(answer).filter((row) => row.startsWith('gone')),
    [
      'gone web (prod) crm (prod) 8 tcp potentially_blocked 5 0 (cut)',
      'gone web (prod) crm (prod) 9 tcp potentially_blocked 5 0 (cut)',
    ],
  )
  t.ok(
    rows(answer)
      .filter((row) => row.startsWith('new'))
      .every((row) => !row.includes('cut')),
    'what is new is new, since before is whole',
  )
  t.equal(answer.notes[0], 'The rows of now were cut: what is gone may only be cut.')
  contains(t, answer.doubts.cut, '2 pairs: ')
  const whole = await compared(bench, { complete: true })
  t.same(
    rows(whole).filter((row) => row.startsWith('gone')),
    ['gone web (prod) crm (prod) 8 tcp potentially_blocked 5 0'],
  )
  t.equal(whole.totals.same, 1)
  const swapped = await start(
    t,
    flows.map((flow) => ({ ...flow, daysAgo: BEFORE + NOW_SEEN - flow.daysAgo! })),
    { trafficRows: 3 },
  )
  const other = await compared(swapped)
  t.equal(other.notes[0], 'The rows of before were cut: what is new may have been there.')
  t.same(
    rows(other).filter((row) => row.includes('cut')),
    [
      'new web (prod) crm (prod) 8 tcp potentially_blocked 0 5 (cut)',
      'new web (prod) crm (prod) 9 tcp potentially_blocked 0 5 (cut)',
    ],
  )
})

t.test('windows of different lengths are compared per hour', async (t) => {
  // Before has one day, now has four.
  const on = (port: number, before: number, now: number): HandMadeFlow[] => [
    { from: 'web', to: 'crm', port, daysAgo: 10, connections: before },
    { from: 'web', to: 'crm', port, daysAgo: 5, connections: now },
  ]
  const bench = await start(t, [
    ...on(1, 20, 80),
    ...on(2, 20, 160),
    ...on(3, 20, 40),
    { from: 'web', to: 'crm', port: 4, daysAgo: 5, connections: 11 },
    { from: 'web', to: 'crm', port: 5, daysAgo: 5, connections: 12 },
    { from: 'web', to: 'crm', port: 6, daysAgo: 10, connections: 1 },
  ])
  const dates = {
    start_date: '2026-06-08',
    end_date: '2026-06-11',
    before_start_date: '2026-06-05',
    before_end_date: '2026-06-05',
  }
  const answer = await compared(bench, { ...dates, group_by: ['port'] })
  t.same(rows(answer), [
    'new 5 potentially_blocked 0 12',
    'new 4 potentially_blocked 0 11 (rare)',
    'gone 6 potentially_blocked 1 0',
    'risen 2 potentially_blocked 20 160',
    'fallen 3 potentially_blocked 20 40',
  ])
  t.equal(answer.totals.same, 1)
  t.same([answer.before.hours, answer.now.hours], [24, 96])
  t.ok(answer.notes.includes('The window before has 24 h, now has 96 h: connections are compared per hour.'))
})

t.test('the windows', async (t) => {
  const bench = await start(t, [])
  const windows = async (args: object) => {
    const { before, now, notes } = await compared(bench, args)
    return { before: Object.values(before.window).join(' '), now: Object.values(now.window).join(' '), notes }
  }
  const week = await windows({ start_date: '2026-06-08', end_date: '2026-06-14' })
  t.equal(week.before, '2026-06-01T00:00:00Z 2026-06-07T23:59:59Z')
  t.notOk(week.notes.join().includes('days_earlier'), 'the same weekdays')
  const shifted = await windows({ days_earlier: 7 })
  t.equal(shifted.before, '2026-06-07T00:00:00Z 2026-06-08T12:00:00Z')
  t.notOk(shifted.notes.join().includes('days_earlier'))
  const [weekdays] = (await windows({})).notes
  t.equal(weekdays, 'Before begins on a Friday, now on a Sunday; days_earlier: 7 compares the same weekdays.')
  const alone = await windows({ before_end_date: '2026-06-10T12:00:00Z' })
  t.equal(alone.before, '2026-06-09T00:00:00Z 2026-06-10T12:00:00Z')
  const begun = await windows({ before_start_date: '2026-06-10T06:00:00Z' })
  t.equal(begun.before, '2026-06-10T06:00:00Z 2026-06-11T18:00:00Z')
  t.ok(begun.notes.includes('The windows cover different times of the day.'))
  for (const [args, argument] of [
    [{ before_end_date: '2026-06-14' }, 'before_end_date'],
    [{ before_start_date: '2026-06-20' }, 'before_end_date'],
    [{ before_start_date: '2026-06-10', before_end_date: '2026-06-09' }, 'before_end_date'],
    [{ before_start_date: 'yesterday' }, 'before_start_date'],
    [{ days_earlier: 1 }, 'days_earlier'],
    [{ start_date: '2026-06-16', end_date: '2026-06-17' }, 'start_date'],
  ] as const)
    t.equal((await bench.fails(TOOL, args, 'invalid_window')).argument, argument)
  const twice = { days_earlier: 7, before_start_date: '2026-06-01' }
  t.equal((await bench.fails(TOOL, twice, 'invalid_argument')).argument, 'days_earlier')
  for (const text of [
    'http',
    '443/tcp/x',
    '443/http',
    '',
    '70000/tcp',
    '9-8/tcp',
    '443/icmp',
    'tcp/http',
    'http/443',
  ]) {
    const error = await bench.fails(TOOL, { include_services: [text] }, 'invalid_argument')
    t.same([error.argument, error.index], ['include_services', 0], text)
  }
  const before = bench.simulator.requests.filter(({ method }) => method === 'POST').length
  await bench.fails(TOOL, { group_by: ['colour'] }, 'unknown_group_by')
  await bench.fails(TOOL, { include_sources: ['app=nobody'] }, 'unresolved_label_filter')
  t.equal(bench.simulator.requests.filter(({ method }) => method === 'POST').length, before, 'nothing was asked')
})

t.test('rows that the PCE adds up beyond a window leave open what rose', async (t) => {
  const estate = handMade({
    hosts: HOSTS,
    flows: [
      { from: 'web', to: 'crm', port: 1 },
      { from: 'web', to: 'crm', port: 2, daysAgo: NOW_SEEN },
      { from: 'web', to: 'crm', port: 3, daysAgo: BEFORE },
      { from: 'web', to: 'crm', port: 4 },
    ],
  })
  // One is seen every day from the 1st on, so that its rows reach over both ends of the window before; the other from the 12th
  // to the 14th, so that it was in both windows for certain, but nobody knows how often.
  const conversations = [...estate.conversations].map((one, at) =>
    at === 0
      ? { ...one, firstDay: one.firstDay - 13, lastDay: null }
      : at === 3
        ? { ...one, firstDay: one.firstDay - 2, connectionsPerDay: 20 }
        : one,
  )
  const bench = await startBench(t, { estate: { ...estate, conversations }, addUpBeforeCutting: true })
  const answer = await compared(bench)
  t.same(answer.totals, { new: 1, gone: 1, risen: 0, fallen: 0, same: 0, not_known: 2 })
  t.match(answer.notes.join(' '), /not_known: rows reach out of a window/)
})

t.test('what began in the window before is not new, though the PCE left it out there', async (t) => {
  const estate = handMade({
    hosts: HOSTS,
    flows: [
      { from: 'web', to: 'crm', port: 1, daysAgo: BEFORE },
      { from: 'web', to: 'crm', port: 2 },
    ],
  })
  const conversations = [...estate.conversations].map((one, at) =>
    at === 1 ? { ...one, firstDay: one.firstDay - 2 } : one,
  )
  const bench = await startBench(t, { estate: { ...estate, conversations }, addUpBeforeCutting: true, trafficRows: 1 })
  t.same((await compared(bench)).totals, { new: 0, gone: 1, risen: 0, fallen: 0, same: 0, not_known: 1 })
})

t.test('agents that could not report', async (t) => {
  const hosts: Record<string, HandMadeHost> = {
    off: { ip: '10.0.1.1', labels: 'app=off env=prod', online: false },
    late: { ip: '10.0.1.2', labels: 'app=late env=prod' },
    idle: { ip: '10.0.1.3', labels: 'app=idle env=prod', mode: 'idle' },
    mute: { ip: '10.0.1.4', labels: 'app=mute env=prod', online: false },
    well: { ip: '10.0.1.5', labels: 'app=well env=prod' },
  }
  const estate = handMade({
    hosts,
    flows: [
      ...both({ from: 'off', to: '192.0.2.1' }, 5, 0),
      ...both({ from: 'off', to: 'well' }, 5, 0),
      ...both({ from: 'late', to: '192.0.2.1' }, 0, 5),
      ...both({ from: 'idle', to: '192.0.2.1' }, 0, 5),
      ...both({ from: 'mute', to: '192.0.2.1' }, 5, 0),
      ...both({ from: 'well', to: '192.0.2.1' }, 5, 0),
    ],
  })
  const status: Record<string, object> = {
    off: { last_heartbeat_on: new Date(NOW - DAY_MS).toISOString() },
    late: { managed_since: '2026-06-13T00:00:00Z' },
    mute: { last_heartbeat_on: null },
  }
  const workloads = estate.workloads.map((one) => ({ ...one, agent: { status: status[one.name!] ?? {} } }))
  const bench = await startBench(t, { estate: { ...estate, workloads } as never, reality: 'lab' })
  const group_by = ['src_app', 'dst_app']
  const answer = await compared(bench, { group_by })
  t.same(
    rows(answer).map((row) => row.replace(' potentially_blocked', '').replace(' unknown', '')),
    [
      'new late - 0 5 (agents)',
      'new idle - 0 5 (idle)',
      'gone mute - 5 0 (agents_unknown)',
      'gone off - 5 0 (agents)',
      'gone off well 5 0',
      'gone well - 5 0',
    ],
  )
  contains(t, answer.doubts.agents, '2 pairs: no agent that could have reported it')
  bench.simulator.faults.add({ kind: 'status', path: /\/workloads/, status: 403, times: 99, body: [] })
  const blind = await compared(bench, { group_by })
  t.ok(
    rows(blind).every((row) => row.endsWith('(agents_unknown)')),
    'nothing is known of agents',
  )
  t.match(blind.notes.join(' '), /Agents could not be read: /)
})

t.test('an answer has 6,000 bytes, more on request, and the call can be cancelled', async (t) => {
  const ports = Array.from({ length: 100 }, (_, at) => 1000 + at)
  const planted = ports.flatMap((port) => both({ from: 'web', to: 'crm', port }, port % 2, 1 - (port % 2)))
  const bench = await start(t, planted)
  const answer = await compared(bench)
  const bytes = Buffer.byteLength(JSON.stringify(answer))
  t.ok(bytes <= 6000, `${bytes} bytes`)
  t.same(answer.truncated_sections, ['new', 'gone'])
  contains(t, answer.truncation_note, 'detail_level full shows more.')
  const full = await compared(bench, { detail_level: 'full' })
  for (const list of LISTS) t.equal(full[list].length, full.totals[list], `all that is ${list}`)
  t.ok(bench.progress.length > 4, 'progress of both queries')
  const error = await bench.cancelled(TOOL, {}, ({ message = '' }) => message.includes('rows read'))
  t.equal(error.error, 'cancelled')
})
