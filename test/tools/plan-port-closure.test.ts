/** plan-port-closure: who keeps a service, who loses it, what stays open by rules of others, and writes that break off. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeFlow, type HandMadeHost } from './hand-made.js'
import { startBench, WEEK, type Bench, type BenchOptions, type Json } from './harness.js'

const TOOL = 'plan-port-closure'
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const OUTSIDE = '203.0.113.9'
const HOSTS: Record<string, HandMadeHost> = {
  web: { ip: '10.0.0.1', labels: 'app=web env=prod' },
  pay: { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'selective' },
  crm: { ip: '10.0.0.3', labels: 'app=crm env=prod' },
  adm: { ip: '10.0.0.4', labels: 'app=adm env=ops' },
  db: { ip: '10.0.0.5', labels: 'app=db env=prod', mode: 'full' },
}
const SMB = { port: 445, proto: 6 }
const FLOWS: HandMadeFlow[] = [
  { from: 'web', to: 'pay', port: 445, connections: 5 },
  { from: 'crm', to: 'pay', port: 445, connections: 9 },
  { from: 'adm', to: 'pay', port: 445, connections: 2 },
  { from: OUTSIDE, to: 'pay', port: 445, connections: 4 },
  { from: OUTSIDE, to: 'crm', port: 445, connections: 3 },
  { from: 'web', to: 'crm', port: 445, connections: 1 },
  { from: 'web', to: 'db', port: 445, connections: 6 },
  { from: 'crm', to: 'db', port: 445, connections: 7 },
  { from: 'crm', to: 'pay', port: 443, connections: 50 },
]
const start = (t: Test, options: BenchOptions = {}): Promise<Bench> =>
  startBench(t, {
    estate: handMade({
      hosts: HOSTS,
      flows: FLOWS,
      services: { SMB: { service_ports: [SMB] }, Ping: { service_ports: [{ proto: 1 }] } },
      ipLists: { Partner: [OUTSIDE] },
      ruleSets: [
        {
          name: 'db',
          scope: 'app=db env=prod',
          allow: [
            { from: 'app=web', to: 'ams', extra: true, services: [{ port: 400, to_port: 500, proto: 6 }] },
            { from: 'app=crm', to: 'ams', extra: true, services: [{ port: 443, proto: 6 }] },
          ],
        },
      ],
    }),
    ...options,
  })
const CLOSE = { services: ['SMB'] }
const ruleSets = async ({ pce }: Bench): Promise<Json[]> =>
  (await pce.ruleSets.getAll()).filter(({ name }) => name === 'Close SMB')
const lostOf = (answer: Json): string[] =>
  answer.lost.map(({ from, to, effect, connections, ports }: Json) =>
    [from, to, effect, connections, ...ports].join(' '),
  )

t.test('a plan over all applications, written as one rule set whose deny rule comes last', async (t) => {
  const bench = await start(t)
  bench.writes()
  const plan = await bench.ok(TOOL, { ...CLOSE, dry_run: true })
  t.same(
    bench.writes().filter(({ path }) => !path.includes('traffic_flows')),
    [],
    'a dry run writes nothing',
  )
  t.same(plan.connections, { cut: 4, cut_once_enforced: 3, kept_by_exception: 17, kept_by_rule: 6, blocked_already: 7 })
  t.same(plan.destinations, { cut: 1, cut_once_enforced: 1, kept_by_rule: 1 })
  t.match(plan.message, /, of 0 it is undecided, and 6 stay open by other rules\.$/)
  t.same(plan.kept, [
    { to: 'crm (prod)', from: ['web (prod)'] },
    { to: 'pay (prod)', from: ['adm (ops)'] },
    { to: 'pay (prod)', from: ['crm (prod)', 'web (prod)'] },
  ])
  t.same(lostOf(plan), [
    '203.0.113.9 (Partner) pay (prod) cut 4 445/tcp',
    '203.0.113.9 (Partner) crm (prod) cut_once_enforced 3 445/tcp',
  ])
  t.same(
    plan.open_rules.map(({ rule_set, rule }: Json) => [rule_set, rule]),
    [['db', 'app=web to all workloads, 400-500/tcp']],
  )
  t.same(plan.not_kept, [
    {
      reason: 'source_without_application',
      pairs: 2,
      connections: 7,
      examples: ['203.0.113.9 (Partner) to pay (prod)', '203.0.113.9 (Partner) to crm (prod)'],
    },
  ])
  t.match(
    plan.warnings[0],
    /^2 pairs in use would lose it, or may \("203.0.113.9 \(Partner\)" to "pay \(prod\)", .* not_kept says why/,
  )
  const short = await bench.ok(TOOL, { ...CLOSE, max_results: 1, dry_run: true })
  t.same([short.lost.length, short.lost_total, short.truncated_sections], [1, 2, ['kept', 'lost']])
  t.same([plan.rules, plan.without_traffic], [{ exceptions: 0, used: 3, deny: 1, present: 0, written: 0 }, 2])
  t.same(plan.enforced_by, { visibility_only: 3, selective: 1, full: 1 })
  t.same(
    plan.requests.map(({ path }: Json) => path),
    [SETS, ...['sec_rules', 'sec_rules', 'sec_rules', 'deny_rules'].map((kind) => `${SETS}/{new}/${kind}`)],
  )

  const written = await bench.ok(TOOL, CLOSE)
  t.same(written.rules, { exceptions: 0, used: 3, deny: 1, present: 0, written: 4 })
  t.equal(written.differences, undefined, 'it was stored as sent')
  const sent = bench.writes().filter(({ path }) => path.startsWith(`/api/v2${SETS}`) || path.startsWith(SETS))
  t.equal(sent.length, 5)
  t.ok(sent.at(-1)!.path.endsWith('/deny_rules'), 'the deny rule comes last')
  t.same(bench.simulator.state.policyVersion, 1, 'and nothing is provisioned')

  const again = await bench.ok(TOOL, CLOSE)
  t.same(again.rules, { exceptions: 0, used: 3, deny: 1, present: 4, written: 0 })
  t.equal(again.message, '"Close SMB" has all of it already; nothing was written.')
  t.same(
    bench.writes().filter(({ path }) => path.includes('rule_sets')),
    [],
  )

  // The simulator decides about traffic with code of its own.
  await bench.pce.provisionPolicyChanges('close', bench.simulator.state.pendingHrefs())
  const { data, columns } = await bench.ok('get-traffic-flows', {
    ...WEEK,
    include_services: [SMB],
    group_by: ['source', 'destination', 'policy_decision'],
  })
  const decision = columns.indexOf('policy_decision')
  t.same(
    data.map((row: Json[]) => row[decision]),
    ['allowed', 'blocked', 'allowed', 'allowed', 'blocked', 'potentially_blocked', 'allowed', 'allowed'],
    'what the plan said of each pair, the busiest first',
  )
  const provisioned = await bench.ok(TOOL, { ...CLOSE, dry_run: true })
  t.same(provisioned.rules, { exceptions: 0, used: 3, deny: 1, present: 4, written: 0 }, 'and is still complete')
})

t.test('ports are closed as answers show them', async (t) => {
  const { ok } = await start(t)
  const [text, object] = await Promise.all(
    ['tcp/445', SMB].map((service) => ok(TOOL, { services: [service], dry_run: true })),
  )
  t.equal(text.rule_set.name, 'Close 445/tcp')
  t.same(text.requests.at(-1).body.ingress_services, [SMB])
  t.same(text, object)
})

t.test('exceptions are rules of their own, and may be all that stays', async (t) => {
  const bench = await start(t)
  const partner = [{ consumers: ['iplist:Partner'], providers: ['app=pay', 'env=prod'] }]
  const plan = await bench.ok(TOOL, { ...CLOSE, exceptions: partner, dry_run: true })
  t.same(lostOf(plan), ['203.0.113.9 (Partner) crm (prod) cut_once_enforced 3 445/tcp'])
  t.same(
    plan.not_kept,
    [
      {
        reason: 'source_without_application',
        pairs: 1,
        connections: 3,
        examples: ['203.0.113.9 (Partner) to crm (prod)'],
      },
    ],
    'the exception keeps the other pair',
  )
  const only = await bench.ok(TOOL, { ...CLOSE, exceptions: partner, keep_used: false, dry_run: true })
  t.same(only.connections, { cut: 16, cut_once_enforced: 4, kept_by_exception: 4, kept_by_rule: 6, blocked_already: 7 })
  t.same(only.rules, { exceptions: 1, used: 0, deny: 1, present: 0, written: 0 })
})

t.test('an exception that no traffic used is remarked', async (t) => {
  const bench = await start(t)
  const exceptions = [
    { consumers: ['iplist:Partner'], providers: ['app=pay', 'env=prod'] },
    { consumers: ['app=adm'], providers: ['app=db'] },
    { consumers: ['app=crm'], providers: ['app=pay'] },
    { consumers: ['app=db'] },
  ]
  const remarks = async (asked: Json[]) => {
    const { warnings } = await bench.ok(TOOL, { ...CLOSE, exceptions: asked, dry_run: true })
    return warnings.filter((text: string) => text.startsWith('No traffic'))
  }
  t.same(await remarks(exceptions), [
    'No traffic of the window uses exceptions[1], exceptions[3]: they open what nobody was seen to need.',
  ])
  t.same(await remarks(exceptions.slice(0, 1)), [])
})

t.test('a write that breaks off cuts nothing, and the same call completes it without repeating anything', async (t) => {
  for (const [path, times] of [
    [/rule_sets\/\d+\/sec_rules$/, 1],
    [/rule_sets\/\d+\/deny_rules$/, 1],
  ] as const) {
    const bench = await start(t)
    bench.simulator.faults.add({ kind: 'status', method: 'POST', path, status: 406, times })
    const error = await bench.fails(TOOL, CLOSE, 'pce_error')
    t.equal(error.partial, true)
    const [half] = await ruleSets(bench)
    t.same(half.deny_rules ?? [], [], 'no deny rule without its allow rules')
    const done = await bench.ok(TOOL, CLOSE)
    t.equal(done.rules.present + done.rules.written, 4)
    const all = await ruleSets(bench)
    t.same(
      all.map((one) => [one.rules.length, one.deny_rules.length]),
      [[3, 1]],
    )
  }
})

t.test('a lost answer is looked for, and nothing is there twice', async (t) => {
  const bench = await start(t)
  bench.simulator.faults.add({ kind: 'commit-then-drop', method: 'POST', path: /sec_rules$/, times: 1 })
  await bench.fails(TOOL, CLOSE, 'outcome_unknown')
  const done = await bench.ok(TOOL, CLOSE)
  t.same(done.rules, { exceptions: 0, used: 3, deny: 1, present: 1, written: 3 })
  t.same(
    (await ruleSets(bench)).map((one) => [one.rules.length, one.deny_rules.length]),
    [[3, 1]],
  )
})

t.test('rows that were cut withhold the deny rule', async (t) => {
  const bench = await start(t, { trafficRows: 3 })
  const answer = await bench.ok(TOOL, CLOSE)
  t.equal(answer.flows_truncated, true)
  t.equal(answer.rules.deny, 0)
  t.same(
    (await ruleSets(bench)).map((one) => (one.deny_rules ?? []).length),
    [0],
  )
  const whole = await bench.ok(TOOL, { ...CLOSE, complete: true })
  t.equal(whole.rules.deny, 1)
})

const IN_FORCE = {
  name: 'Close SMB',
  scope: '',
  allow: [{ from: 'app=web env=prod', to: 'app=pay env=prod', extra: true, services: ['SMB'] }],
  deny: [{ from: 'any', to: 'ams', extra: true, services: ['SMB'] }],
}
const SERVICES = { SMB: { service_ports: [SMB] } }

t.test('attempts that a closure in force blocks do not become rules', async (t) => {
  const hosts = { web: HOSTS.web!, pay: HOSTS.pay!, crm: HOSTS.crm! }
  const flows = [
    { from: 'web', to: 'pay', port: 445, connections: 5 },
    { from: 'crm', to: 'pay', port: 445, connections: 9 },
  ]
  const { ok } = await start(t, { estate: handMade({ hosts, flows, services: SERVICES, ruleSets: [IN_FORCE] }) })
  const plan = await ok(TOOL, { ...CLOSE, dry_run: true })
  t.same(plan.connections, { kept_by_exception: 5, blocked_already: 9 })
  t.same(plan.kept, [{ to: 'pay (prod)', from: ['web (prod)'] }])
  t.same(plan.rules, { exceptions: 0, used: 1, deny: 1, present: 2, written: 0 })
})

t.test('what rules by label let in that is blocked today is counted and named', async (t) => {
  const hosts = { ...HOSTS, pay2: { ip: '10.0.0.6', labels: 'app=pay env=prod', mode: 'full' as const } }
  const flows = [
    { from: 'web', to: 'pay', port: 445, connections: 5 },
    { from: 'web', to: 'pay2', port: 445, connections: 3 },
  ]
  const { ok } = await start(t, { estate: handMade({ hosts, flows, services: SERVICES }) })
  const plan = await ok(TOOL, { ...CLOSE, dry_run: true })
  t.same(plan.connections, { opened: 3, kept_by_exception: 5 })
  t.same(
    plan.warnings.filter((text: string) => text.startsWith('Rules by label')),
    [
      'Rules by label let in what is blocked today, or may: 3 connections ("web (prod)" to "pay (prod)"). For fewer, name the users as exceptions with keep_used: false.',
    ],
  )
})

t.test('rules that the rule set has beside the plan count, and so do override deny rules of others', async (t) => {
  const own = {
    ...IN_FORCE,
    allow: [...IN_FORCE.allow, { from: 'iplist:Partner', to: 'ams', extra: true, services: ['SMB'] }],
  }
  const lock = {
    name: 'lock',
    scope: '',
    override: [{ from: 'app=crm', to: 'app=pay', extra: true, services: ['SMB'] }],
  }
  const flows = [
    { from: OUTSIDE, to: 'pay', port: 445, connections: 4 },
    { from: 'crm', to: 'pay', port: 445, connections: 9 },
  ]
  const { ok } = await start(t, {
    estate: handMade({
      hosts: HOSTS,
      flows,
      services: SERVICES,
      ipLists: { Partner: [OUTSIDE] },
      ruleSets: [own, lock],
    }),
  })
  const exceptions = [{ consumers: ['app=crm'], providers: ['app=pay'] }]
  const plan = await ok(TOOL, { ...CLOSE, exceptions, dry_run: true })
  t.same(plan.connections, { kept_by_exception: 4, blocked_already: 9 })
  t.same(
    plan.warnings.filter((text: string) => /override deny rule|further rule/.test(text)),
    [
      '1 override deny rule covers these services and beats the allow rules of the closure: /orgs/1/sec_policy/draft/rule_sets/2/deny_rules/4 of "lock".',
      'The rule set has 2 further rules, which stay in force: what the rule set lets in is counted as kept.',
    ],
  )
})

t.test('override deny rules are no matter where the closure has no allow rule', async (t) => {
  const lock = {
    name: 'lock',
    scope: '',
    override: [{ from: 'app=crm', to: 'app=pay', extra: true, services: ['SMB'] }],
  }
  const flows = [{ from: 'web', to: 'pay', port: 445, connections: 5 }]
  const { ok } = await start(t, { estate: handMade({ hosts: HOSTS, flows, services: SERVICES, ruleSets: [lock] }) })
  const warned = async (keepUsed: boolean) => {
    const { rules, warnings } = await ok(TOOL, { ...CLOSE, keep_used: keepUsed, dry_run: true })
    return [rules.used, warnings.filter((text: string) => text.includes('override deny rule')).length]
  }
  t.same(await warned(false), [0, 0])
  t.same(await warned(true), [1, 1])
})

t.test('one rule names at most a hundred applications', async (t) => {
  const users = Array.from({ length: 101 }, (_, at) => `u${at}`)
  const hosts = Object.fromEntries(
    users.map((name, at) => [name, { ip: `10.1.0.${at + 1}`, labels: `app=${name} env=prod` }]),
  )
  const flows = users.map((from) => ({ from, to: 'pay', port: 445 }))
  const { ok } = await start(t, { estate: handMade({ hosts: { ...HOSTS, ...hosts }, flows, services: SERVICES }) })
  const plan = await ok(TOOL, { ...CLOSE, dry_run: true })
  t.same(plan.connections, { kept_by_exception: 101 })
  t.same(
    plan.kept.map(({ from }: Json) => from.length),
    [100, 1],
  )
  t.same(
    plan.requests.map(({ body }: Json) => body.consumers?.length),
    [undefined, 101, 2, 1],
  )
})

t.test('whatever is wrong is found before the first write', async (t) => {
  const bench = await start(t)
  await bench.ok('create-ruleset', { name: 'Taken', scopes: [['app=pay']] })
  bench.writes()
  for (const [args, code, text] of [
    [{ services: ['SMB 2'] }, 'invalid_ingress_services', /^services: No service is named exactly "SMB 2"/],
    [{ services: ['445'] }, 'invalid_ingress_services', /^services: .* A port has a protocol: "445\/tcp"\.$/],
    [{ services: ['445/icmp'] }, 'invalid_ingress_services', /^services: ports in a rule are tcp or udp/],
    [{ services: ['Ping'] }, 'invalid_argument', /^services: /],
    [{ services: ['All Services'] }, 'invalid_argument', /^services: /],
    [{ ...CLOSE, exceptions: [{ consumers: ['app=nobody'] }] }, 'label_not_found', /^exceptions\[0\]: /],
    [{ ...CLOSE, ruleset_name: 'Taken' }, 'already_exists', /Taken/],
  ] as const) {
    const { message } = await bench.fails(TOOL, args, code)
    t.ok(text.test(message), message)
  }
  t.same(
    bench.writes().filter(({ path }) => path.includes('rule_sets')),
    [],
  )
})
