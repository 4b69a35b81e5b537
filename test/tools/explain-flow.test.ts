/** explain-flow: estates by hand with the whole right answer. */
import t, { type Test } from 'tap'
import type { Estate } from '../../pce-simulator/model.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const TOOL = 'explain-flow'
const SQL = { port: 5432, proto: 'tcp' }
const SQL_PORT = { port: 5432, proto: 6 }
const SETS = '/orgs/1/sec_policy/draft/rule_sets'

/** One application whose database is enforced, and everybody who may want something of it. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=db', mode: 'full' },
    'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod role=web', mode: 'full' },
    'web-2': { ip: '10.0.0.3', labels: 'app=pay env=prod role=web', mode: 'visibility_only', online: false },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod', mode: 'selective' },
    'log-1': { ip: '10.0.3.1', labels: 'app=log env=prod', mode: 'selective' },
    'idle-1': { ip: '10.0.4.1', labels: 'app=idle env=prod', mode: 'idle' },
    'win-1': { ip: '10.0.5.1', labels: 'app=win env=prod', mode: 'full', os: 'win-x86_64-server' },
    'bare-1': { ip: '10.0.9.9', managed: false },
  },
  ipLists: { Office: ['192.168.10.0/24', '!192.168.10.9'], Guests: ['192.168.10.128/25'] },
  services: {
    postgres: { service_ports: [{ port: 5432, proto: 6 }] },
    updates: { windows_services: [{ service_name: 'WsusService', port: 8531, proto: 6 }] },
  },
  flows: [
    { from: 'crm-1', to: 'db-1', port: 5432, connections: 9, process: '/usr/bin/psql' },
    { from: 'web-1', to: 'db-1', port: 5432, connections: 100 },
    { from: 'web-1', to: 'db-1', port: 22, connections: 3 },
  ],
  ruleSets: [
    {
      name: 'pay | prod',
      scope: 'app=pay env=prod',
      allow: [
        { from: 'role=web', to: 'role=db', services: ['postgres'] },
        { from: 'app=log', to: 'role=web', services: ['postgres'], extra: true, enabled: false },
      ],
      deny: [{ from: 'any', to: 'role=db', services: [{ port: 22, proto: 6 }], extra: true }],
    },
    { name: 'isolate', scope: '', override: [{ from: 'app=crm', to: 'app=log', services: ['postgres'] }] },
    {
      name: 'win | prod',
      scope: 'app=win env=prod',
      allow: [{ from: 'ams', to: 'ams', services: ['updates'], extra: true }],
    },
    { name: 'offices', scope: '', allow: [{ from: 'iplist:Guests', to: 'app=pay role=web', services: ['postgres'] }] },
  ],
}

const start = (t: Test, change = (estate: Estate) => estate): Promise<Bench> =>
  startBench(t, { estate: change(handMade(ESTATE)) })
const quiet = (source: unknown, destination: unknown, on: object = SQL) => ({
  source,
  destination,
  ...on,
  lookback_days: 0,
})
const WRITTEN = {
  created_by: 'admin@example.com',
  updated_by: 'admin@example.com',
  updated_at: '2026-01-10T09:00:00.000Z',
}
const ALLOW_SQL = {
  rule_type: 'allow',
  rule: 'role=web to role=db, postgres',
  href: `${SETS}/1/sec_rules/1`,
  ruleset: 'pay | prod',
  ruleset_href: `${SETS}/1`,
  scopes: [['app=pay', 'env=prod']],
  in: ['active', 'draft'],
  applies: 'yes',
  written_to: ['source', 'destination'],
  ...WRITTEN,
}
const SAME = 'The same: nothing is pending.'

t.test('why is this blocked?', async (t) => {
  const bench = await start(t)

  await t.test('no rule allows it: the whole answer', async (t) => {
    const answer = await bench.ok(TOOL, { source: 'crm-1', destination: 'db-1', ...SQL })
    t.same(answer, {
      flow: 'crm-1 to db-1, 5432/tcp',
      active: { verdict: 'blocked', why: 'dropped by "db-1" (full): no rule allows it.' },
      draft: { verdict: 'blocked', why: SAME },
      source: {
        asked: 'crm-1',
        kind: 'workload',
        members: 1,
        modes: { selective: 1 },
        labels: { app: 'crm', env: 'prod' },
        does: 'selective, outbound: it lets it through (no rule).',
      },
      destination: {
        asked: 'db-1',
        kind: 'workload',
        members: 1,
        modes: { full: 1 },
        labels: { app: 'pay', env: 'prod', role: 'db' },
        does: 'full, inbound: it drops it (no rule).',
      },
      rules: [],
      rules_total: 0,
      observed: {
        days: 7,
        window: { start: '2026-06-08T00:00:00Z', end: '2026-06-15T23:59:59Z' },
        connections: { blocked: 9 },
        first_detected: '2026-06-14T01:00:00Z',
        last_detected: '2026-06-14T01:00:00Z',
        programs: ['/usr/bin/psql'],
      },
      pce_check: { agrees: true, pairs: 1 },
      not_judged: [],
    })
    t.ok(JSON.stringify(answer).length < 2_000, 'a short answer to a short question')
    t.same(bench.writes(), [])
  })

  await t.test('allowed, with the rule and who wrote it', async (t) => {
    const answer = await bench.ok(TOOL, quiet('web-1', 'db-1'))
    const why =
      'let through by "web-1" (full) and "db-1" (full): allow rule "role=web to role=db, postgres" in "pay | prod".'
    t.same(answer.active, { verdict: 'allowed', why })
    t.same(answer.rules, [ALLOW_SQL])
    t.notOk('observed' in answer, 'traffic is not asked for')
    t.notOk(bench.simulator.requests.slice(-3).some(({ path }) => path.includes('traffic_flows')))
  })

  await t.test('a deny rule, at the destination alone', async (t) => {
    const answer = await bench.ok(TOOL, quiet('192.168.10.7', 'db-1', { port: 22, proto: 'tcp' }))
    const why = 'dropped by "db-1" (full): deny rule "Any (0.0.0.0/0 and ::/0) to role=db, 22/tcp" in "pay | prod".'
    t.same(answer.active, { verdict: 'blocked', why })
    t.same(
      answer.rules.map(({ rule_type: type, written_to: to }: Json) => [type, to]),
      [['deny', ['destination']]],
    )
    t.equal(answer.source.does, 'No VEN: it enforces nothing.')
    t.same(answer.source.modes, { none: 1 })
  })

  await t.test(
    'an override deny beats what comes after it; whether it reaches a selective source does not matter here',
    async (t) => {
      const answer = await bench.ok(TOOL, quiet('crm-1', 'log-1'))
      const rule = 'override deny rule "app=crm to app=log, postgres" in "isolate", which beats every allow rule'
      t.same(answer.active, { verdict: 'blocked', why: `dropped by "log-1" (selective): ${rule}.` })
    },
  )

  await t.test('what only enforcement would block', async (t) => {
    const answer = await bench.ok(TOOL, quiet('log-1', 'web-2'))
    const why = 'passes for now; "web-2" (visibility_only) would drop it once enforcing: no rule allows it.'
    t.same(answer.active, { verdict: 'potentially_blocked', why }, 'its being offline changes nothing for log-1')
    const left = 'so the PCE leaves its addresses out of the policy of others'
    t.same(answer.not_judged, [
      `"web-2" is offline, ${left}. The verdicts, and the PCE's own check, are by the rules as if it were online.`,
    ])
    t.same(answer.near_misses, [
      {
        rule: 'app=log to role=web, postgres',
        href: `${SETS}/1/sec_rules/2`,
        ruleset: 'pay | prod',
        ruleset_href: `${SETS}/1`,
        but: 'the rule is disabled',
      },
    ])
    t.match(answer.destination.does, /It is offline, so the PCE leaves its addresses out of the policy of others\.$/)
  })

  await t.test('an end that is offline is to the other end an address that no workload has', async (t) => {
    const left = 'since the PCE leaves its addresses out of the policy of others.'
    const rule = 'allow rule "role=web to role=db, postgres" in "pay | prod"'
    const source = await bench.ok(TOOL, quiet('web-2', 'db-1'))
    t.same(source.active, {
      verdict: 'allowed',
      why: `let through by "web-2" (visibility_only) and "db-1" (full): ${rule}. But "web-2" is offline: until that changes it is blocked, ${left}`,
    })
    t.same(source.draft, { verdict: 'allowed', why: SAME })
    t.same(source.pce_check, { agrees: true, pairs: 1 }, 'which does not ask who is online')
    t.equal(source.not_judged.length, 1)

    const guest = await bench.ok(TOOL, quiet('192.168.10.200', 'web-2'))
    t.notMatch(guest.active.why, /But/, 'what decides at its own end stays')

    const roles = await bench.ok(TOOL, quiet('role=web', 'db-1'))
    t.equal(roles.active.verdict, 'allowed')
    t.match(roles.not_judged[0], /^1 of 2 sources \("web-2"\) is offline, so/)
  })

  await t.test('near misses by service and by scope', async (t) => {
    const service = await bench.ok(TOOL, quiet('web-1', 'db-1', { port: 443, proto: 6 }))
    t.same(
      service.near_misses.map(({ but }: Json) => but),
      ['it is for other services'],
    )
    const role = { ...quiet('bare-1', 'db-1') }
    t.notOk('near_misses' in (await bench.ok(TOOL, role)), 'another source is no near miss')
  })

  await t.test('where nothing is enforced, nothing is blocked', async (t) => {
    const answer = await bench.ok(TOOL, quiet('bare-1', 'idle-1'))
    t.same(answer.active, {
      verdict: 'allowed',
      why: 'Neither end enforces policy: "bare-1" (no VEN), "idle-1" (idle).',
    })
  })
})

t.test('selective mode', async (t) => {
  const hosts = {
    'api-1': { ip: '10.0.0.1', labels: 'app=api', mode: 'selective' as const },
    'sql-1': { ip: '10.0.0.2', labels: 'app=sql', mode: 'selective' as const },
    'watch-1': { ip: '10.0.0.3', labels: 'app=sql', mode: 'visibility_only' as const },
    'bare-1': { ip: '10.0.0.9', managed: false },
  }
  const allow = [{ from: 'app=api', to: 'app=sql', services: [{ port: 22, proto: 6 }] }]
  const deny = [{ from: 'app=api', to: 'any', services: [{ port: 25, proto: 6 }] }]
  const override = [{ from: 'app=api', to: 'any', services: [{ port: 26, proto: 6 }] }]
  const flows = [
    { from: 'api-1', to: 'sql-1', port: 5432 },
    { from: 'api-1', to: 'bare-1', port: 5432 },
    { from: 'api-1', to: 'sql-1', port: 22 },
  ]
  const ruleSets = [{ name: 'all', scope: '', allow, deny, override }]
  const bench = await startBench(t, { estate: handMade({ hosts, flows, ruleSets }) })
  const ask = (destination: string, port: number) =>
    bench.ok(TOOL, { source: 'api-1', destination, port, proto: 'tcp' })

  await t.test('what no rule is about passes for now, and the PCE says potentially_blocked', async (t) => {
    const note =
      'In selective mode, potentially_blocked means that no rule allows it: it passes for now, and full mode would block it.'
    const answer = await ask('sql-1', 5432)
    t.same(answer.active, {
      verdict: 'allowed',
      why: 'let through by "api-1" (selective) and "sql-1" (selective): no rule is about it, so selective mode lets it pass for now.',
    })
    t.same([answer.observed.connections, answer.observed.note], [{ potentially_blocked: 1 }, note])
    t.equal((await ask('bare-1', 5432)).observed.note, note, 'with one VEN as well')
    const allowed = await ask('sql-1', 22)
    t.same([allowed.observed.connections, 'note' in allowed.observed], [{ allowed: 1 }, false])
  })

  await t.test('whether deny rules reach the source is not settled', async (t) => {
    const why = 'allowed or blocked: deny rules at sources in selective mode decide.'
    for (const port of [25, 26]) {
      const { active, assumes } = await ask('bare-1', port)
      t.same([active, assumes], [{ verdict: 'uncertain', why }, ['P51']], `${port}`)
    }
    t.notOk('assumes' in (await ask('sql-1', 22)), 'an answer that hangs on no such fact names none')
  })
})

t.test('off the corporate network', async (t) => {
  const hosts = {
    home: { ip: '10.0.0.1', labels: 'app=api', mode: 'full' as const, network: 'External', endpoint: true },
    desk: { ip: '10.0.0.2', labels: 'app=api', mode: 'full' as const, network: 'Corporate', endpoint: true },
    lost: { ip: '10.0.0.3', labels: 'app=api', mode: 'full' as const, endpoint: true },
    rack: { ip: '10.0.0.4', labels: 'app=api', mode: 'full' as const },
    bare: { ip: '10.0.0.5', labels: 'app=api', managed: false, network: 'External' },
    sql: { ip: '10.0.1.1', labels: 'app=sql', mode: 'full' as const, network: 'Corporate' },
  }
  const on = (port: number) => [{ port, proto: 6 }]
  const allow = [
    { from: 'app=api', to: 'app=sql', services: on(22) },
    { from: 'app=sql', to: 'app=api', services: on(22) },
    { from: 'app=api', to: 'app=sql', services: on(23), network: 'all' as const },
    { from: 'app=api', to: 'app=sql', services: on(24), network: 'non_brn' as const },
  ]
  const deny = [{ from: 'app=api', to: 'app=sql', services: on(25) }]
  // Recorded interfaces all name a network; here some do not.
  const bench = await startBench(t, {
    estate: handMade({ hosts, ruleSets: [{ name: 'all', scope: '', allow, deny }] }),
    reality: 'lab',
  })
  const ask = (source: string, port: number, destination = 'sql') =>
    bench.ok(TOOL, { source, destination, port, proto: 'tcp', lookback_days: 0 })
  const verdictOf = async (source: string, port: number, destination = 'sql') =>
    (await ask(source, port, destination)).active.verdict

  await t.test('rules for it are undecided at either end, and the answer says whose network it is', async (t) => {
    const { active, assumes, not_judged: notes } = await ask('home', 22)
    t.same(active, {
      verdict: 'uncertain',
      why: 'allowed or blocked: rules for the corporate network, at an end off it decide.',
    })
    t.same(assumes, ['P107'])
    t.equal(
      notes[0],
      '"home" is off the corporate network (on External); whether rules for it reach there is not known.',
    )
    t.equal(await verdictOf('sql', 22, 'home'), 'uncertain', 'the destination')
    t.equal(await verdictOf('10.0.0.1', 22), 'uncertain', 'by its address')
    t.equal(await verdictOf('home', 26), 'blocked', 'no rule is about it')
  })

  await t.test('an endpoint whose network is not named may be off it', async (t) => {
    const { active, not_judged: notes } = await ask('lost', 22)
    t.equal(active.verdict, 'uncertain')
    t.match(notes[0], /^"lost" may be off the corporate network/)
  })

  await t.test('other ends, and rules for all networks, are judged as before', async (t) => {
    for (const source of ['desk', 'rack', 'bare']) t.equal(await verdictOf(source, 22), 'allowed', source)
    t.equal(await verdictOf('home', 23), 'allowed', 'all networks')
    for (const source of ['home', 'desk']) t.equal(await verdictOf(source, 24), 'uncertain', `non_brn, ${source}`)
  })

  await t.test('ends with the same labels are two kinds where their networks differ', async (t) => {
    const { pairs } = await bench.ok(TOOL, {
      source: 'app=api',
      destination: 'sql',
      port: 22,
      proto: 'tcp',
      lookback_days: 0,
    })
    t.same(
      pairs.outcomes.map(({ active, pairs: count }: Json) => [active, count]),
      [
        ['allowed', 3],
        ['uncertain', 2],
      ],
    )
  })
})

t.test('draft and active policy', async (t) => {
  const bench = await start(t)
  await bench.pce.rules.create(
    {
      enabled: true,
      providers: [{ label: { href: (await bench.pce.labels.getAll()).find(({ value }) => value === 'db')!.href } }],
      consumers: [{ label: { href: (await bench.pce.labels.getAll()).find(({ value }) => value === 'crm')!.href } }],
      ingress_services: [{ port: 5432, proto: 6 }],
      unscoped_consumers: true,
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    },
    `${SETS}/1`,
  )
  await bench.pce.put(`${SETS}/1/sec_rules/1`, { includeOrg: false, json: { enabled: false } })
  const opened = await bench.ok(TOOL, quiet('crm-1', 'db-1'))
  t.equal(opened.active.verdict, 'blocked')
  t.same(opened.draft, {
    verdict: 'allowed',
    why: 'let through by "crm-1" (selective) and "db-1" (full): allow rule "app=crm to role=db, 5432/tcp" in "pay | prod".',
  })
  t.same(
    opened.rules.map(({ in: versions, update_type: type }: Json) => [versions, type]),
    [[['draft'], 'create']],
  )
  t.equal(
    opened.destination.does,
    'full, inbound: it drops it (no rule); by the draft it lets it through (an allow rule).',
  )
  const closed = await bench.ok(TOOL, quiet('web-1', 'db-1'))
  t.equal(closed.active.verdict, 'allowed')
  t.equal(closed.draft.verdict, 'blocked')
  t.same(
    closed.rules.map(({ in: versions }: Json) => versions),
    [['active']],
  )
})

t.test('ends of many members', async (t) => {
  const bench = await start(t)
  const split = await bench.ok(TOOL, quiet('env=prod', ['app=pay', 'role=db']))
  t.same(split.active, { verdict: 'split', why: 'Of 6 pairs: 4 blocked, 2 allowed.' })
  partial(t, split.pairs, { total: 6, judged: 6 })
  t.same(
    split.pairs.outcomes.map(({ active, pairs, examples }: Json) => [active, pairs, examples.length]),
    [
      ['blocked', 4, 3],
      ['allowed', 2, 2],
    ],
  )
  t.same(split.source, {
    asked: 'env=prod',
    kind: 'labels',
    members: 7,
    modes: { full: 3, visibility_only: 1, selective: 2, idle: 1 },
  })
  t.same(split.rules, [{ ...ALLOW_SQL, pairs: 2 }])

  const list = await bench.ok(TOOL, quiet('iplist:Office', 'web-1'))
  t.same(
    list.active,
    { verdict: 'split', why: 'Of 255 pairs: 128 allowed, 127 blocked.' },
    'without the excluded address',
  )
  t.same(
    list.pairs.outcomes.map(({ examples }: Json) => examples[0].source),
    ['192.168.10.128 to 192.168.10.255', '192.168.10.0 to 192.168.10.8'],
  )
  const all = await bench.ok(TOOL, quiet('iplist:Guests', 'db-1'))
  t.equal(all.active.verdict, 'blocked')
  t.match(all.active.why, /^All 128 pairs; /)
})

t.test('more kinds of pairs than are judged: what holds for some is not said of all', async (t) => {
  const hosts = Object.fromEntries(
    Array.from({ length: 65 }, (_, at) => {
      return [`h-${at}`, { ip: `10.0.0.${at}`, labels: `app=a${at} env=prod`, mode: 'full' as const }]
    }),
  )
  const ruleSets = [{ name: 'last', scope: '', allow: [{ from: 'app=a64', to: 'app=a63', services: [SQL_PORT] }] }]
  const bench = await startBench(t, { estate: handMade({ hosts, ruleSets }) })
  const some = await bench.ok(TOOL, quiet('env=prod', 'env=prod'))
  t.equal(some.active.verdict, 'uncertain', 'the last pair is allowed, and was not judged')
  t.match(some.active.why, /^All 4000 judged pairs of 4160 are blocked, the others were not judged; "h-0" to "h-1"/)
  partial(t, some.pairs, { total: 4160, judged: 4000 })
  const suggested = await bench.ok('suggest-rule', { ...SQL, source: 'env=prod', destination: 'env=prod' })
  t.match(suggested.message, /It would allow at least 4000 pairs that were asked about, and 0 beyond\./)
  partial(t, suggested.opens, { pairs: 4000, asked: 4000, beyond: 0 })
  t.same(suggested.opens.notes, ['Only 4000 of 4160 kinds of pairs asked about were compared.'])
})

t.test('what it rests on', async (t) => {
  const bench = await start(t)
  const on = { port: 8531, proto: 'tcp' }

  const open = await bench.ok(TOOL, quiet('bare-1', 'win-1', on))
  t.same(open.active, { verdict: 'uncertain', why: 'allowed or blocked: rules for certain processes decide.' })
  t.same(open.not_judged, [
    'Rules that may be about the flow: rules for certain processes.',
    'process_name or windows_service_name, of the program at the destination, would decide about its rules.',
  ])
  partial(t, open.rules[0], {
    applies: 'uncertain',
    undecided_because: 'rules for certain processes',
    pce_says: 'that it applies to this flow',
  })
  const named = await bench.ok(TOOL, { ...quiet('bare-1', 'win-1', on), windows_service_name: 'wsusservice' })
  t.equal(named.active.verdict, 'allowed')
  const other = await bench.ok(TOOL, { ...quiet('bare-1', 'win-1', on), windows_service_name: 'spooler' })
  t.equal(other.active.verdict, 'blocked')

  const address = await bench.ok(TOOL, quiet('10.0.0.2', 'db-1'))
  t.equal(address.active.verdict, 'allowed')
  t.same(address.not_judged, ['10.0.0.2 is the workload "web-1".'])
})

t.test('what may decide and is not known for certain', async (t) => {
  const bench = await start(t, (estate) => ({
    ...estate,
    workloads: estate.workloads.map((one) =>
      one.name === 'bare-1'
        ? { ...one, interfaces: ['10.0.9.9', '192.168.10.200'].map((address) => ({ name: address, address })) }
        : one,
    ),
  }))
  const verdict = async (...asked: Parameters<typeof quiet>) => (await bench.ok(TOOL, quiet(...asked))).active

  partial(
    t,
    await verdict('web-1', 'db-1', { port: 67, proto: 'udp' }),
    { verdict: 'uncertain', why: /protocols that VENs keep open decide\.$/ },
    'what VENs keep open whatever the policy says',
  )
  partial(
    t,
    await verdict('bare-1', 'web-1'),
    { verdict: 'uncertain', why: /an unknown address decide\.$/ },
    'a list has one of its two addresses',
  )
  const guests = await bench.ok(TOOL, quiet('iplist:Guests', 'web-1'))
  t.equal(guests.source.members, 128, 'an address of a workload is counted as the workload alone')
  t.equal(guests.pairs.total, 128)

  for (const version of ['draft', 'active']) {
    const path = `/orgs/1/sec_policy/${version}/rule_sets`
    const bare = (bench.simulator.state.find(path) as unknown as Json[]).map(({ deny_rules: _, ...set }) => set)
    bench.simulator.faults.add(
      { kind: 'status', path: new RegExp(`${path}$`), status: 200, times: 9, body: bare },
      { kind: 'status', path: new RegExp(`${path}/1/deny_rules`), status: 403, times: 9, body: [] },
    )
  }
  const unread = await bench.ok(TOOL, quiet('web-1', 'db-1'))
  partial(t, unread.active, { verdict: 'uncertain', why: /deny rules that could not be read decide\.$/ })
  t.ok(unread.not_judged.includes('Deny rules of 1 rule sets could not be read.'))
})

t.test('held against the PCE', async (t) => {
  const bench = await start(t)
  const answers = (status: number, body: object) =>
    bench.simulator.faults.add({ kind: 'status', path: /policy_check/, status, times: 10, body: body })
  answers(200, { sec_rules: [], deny_rules: [], override_deny_rules: [] })
  const differs = await bench.ok(TOOL, quiet('web-1', 'db-1'))
  const says = 'The PCE: it does not apply to this flow. This server: it does.'
  t.same(differs.pce_check, {
    agrees: false,
    pairs: 1,
    differences: [
      { version: 'active', href: `${SETS}/1/sec_rules/1`, rule_type: 'allow', says },
      { version: 'draft', href: `${SETS}/1/sec_rules/1`, rule_type: 'allow', says },
    ],
    note: 'The PCE and this server disagree about these rules; trust neither verdict before you know why.',
  })
  bench.simulator.faults.clear()
  answers(404, [])
  const silent = await bench.ok(TOOL, quiet('web-1', 'db-1'))
  t.equal(silent.active.verdict, 'allowed', 'the verdict is ours')
  partial(t, silent.pce_check, { agrees: null, pairs: 0, note: /^It could not be asked: / })
})

t.test('what is refused', async (t) => {
  const bench = await start(t)
  const refused = async (args: object, code: string, message: RegExp) => {
    const said = String((await bench.fails(TOOL, { ...quiet('web-1', 'db-1'), ...args }, code)).message)
    t.ok(message.test(said), said)
  }
  const single = quiet('web-1', 'db-1')
  const listed = { ...single, source: ['web-1'], destination: ['db-1'] }
  t.same(await bench.ok(TOOL, listed), await bench.ok(TOOL, single), 'a list of one is what is in it')
  await refused({ source: 'web-9' }, 'not_found', /^source: No workload is named exactly "web-9"\.$/)
  const far = await bench.fails(TOOL, quiet('web-9', 'db-1'), 'not_found')
  t.equal(far.hint, 'No name of a workload contains it; get-workloads lists them.', 'others were not looked at')
  await refused(
    { destination: 'app=pey' },
    'label_not_found',
    /^destination: No label matches "app=pey" exactly\. Did you mean "app=pay"\?$/,
  )
  await refused(
    { source: ['app=pay', 'app=crm'] },
    'invalid_argument',
    /^source: No workload has two labels of the key "app"/,
  )
  await refused({ source: 'iplist:Offices' }, 'not_found', /^source: No IP list is named exactly "Offices"\.$/)
  await refused({ source: '10.0.0.0/8' }, 'invalid_argument', /^source: "10\.0\.0\.0\/8" cannot be an end of a flow\./)
  await refused({ source: ['app=crm', 'role=db'] }, 'no_workloads', /^No workload has "app=crm role=db"\.$/)
  await refused({ source: 'db-1' }, 'invalid_argument', /^source and destination are one workload, "db-1"/)
  await bench.pce.ipLists.create({ name: 'Names alone', ip_ranges: [], fqdns: [{ fqdn: '*.example.com' }] })
  bench.writes()
  await refused(
    { source: 'iplist:Names alone' },
    'invalid_argument',
    /^source: "Names alone" has no address that could be judged\. The 1 domain name of .* was not judged\.$/,
  )
  const none = (text: string) => `^source: No workload is named exactly "${text}"\\. `
  for (const text of ['10.0.0.999', 'fe80::12345', '1:2:3'])
    await refused({ source: text }, 'not_found', new RegExp(`${none(text)}It is not a valid IP address either\\.$`))
  await refused({ source: 'ams' }, 'not_found', new RegExp(`${none('ams')}All workloads \\(ams\\) cannot be an end`))
  await refused({ source: 'crm' }, 'not_found', new RegExp(`${none('crm')}Did you mean "app=crm"\\?$`))
  await refused({ source: 'Office' }, 'not_found', new RegExp(`${none('Office')}Did you mean "iplist:Office"\\?$`))
  for (const port of [0, 70_000]) await refused({ port }, 'invalid_argument', /^explain-flow: \/port: must be at/)
  await refused({ proto: 'tpc' }, 'invalid_argument', /^proto: "tpc" is neither/)
  await refused({ port: undefined }, 'invalid_argument', /^port: tcp and udp need one\.$/)
  await refused({ process_name: ' ' }, 'invalid_argument', /^process_name: it is blank/)
  await refused({ windows_service_name: '' }, 'invalid_argument', /^windows_service_name: it is blank/)
  await refused({ proto: 'icmp' }, 'invalid_argument', /^port: the protocol icmp has no ports/)
  t.same(bench.writes(), [])
})
