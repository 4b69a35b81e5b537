/** Rules by everything they can be found by, in an estate whose right answers are known in full (T29). */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'

const WEB = { port: 443, proto: 6 }
const estate = handMade({
  hosts: {
    'pay-web': { ip: '10.0.0.1', labels: 'app=pay env=prod role=web' },
    'pay-db': { ip: '10.0.0.2', labels: 'app=pay env=prod role=db' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod role=web' },
    twin: { ip: '10.0.9.9' },
    'twin-2': { ip: '10.0.9.9' },
  },
  ipLists: { Office: ['192.168.0.0/16', '!192.168.9.9'], Servers: ['10.0.0.0/30'] },
  services: {
    web: { service_ports: [{ port: 80, to_port: 443, proto: 6 }] },
    updates: { windows_services: [{ process_name: 'c:\\windows\\WSUS.exe', port: 8530, proto: 6 }] },
    agent: { windows_egress_services: [{ process_name: 'backup-agent.exe' }] },
  },
  ruleSets: [
    {
      name: 'pay | prod',
      scope: 'app=pay env=prod',
      allow: [
        { from: 'role=web', to: 'role=db', services: [{ port: 5432, proto: 6 }] }, // 1
        { from: 'iplist:Office', to: 'role=web', services: ['web'] }, // 2
        { from: 'app=crm', to: 'ams', services: ['updates'], egress: ['agent'], extra: true }, // 3
        { from: 'host:crm-1', to: 'host:pay-db', services: [WEB], extra: true, enabled: false }, // 4
      ],
      deny: [{ from: 'any', to: 'role=db', services: [{ port: 22, proto: 6 }] }], // 5
      override: [{ from: 'ams', to: 'iplist:Servers', services: [{ port: 23, proto: 6 }] }], // 6
    },
    { name: 'crm', scope: 'app=crm', allow: [{ from: 'role=web', to: 'role=web' }] }, // 7
    { name: 'Default', scope: '', allow: [{ from: 'ams', to: 'any', services: [{ port: 53, proto: 17 }] }] }, // 8
  ],
})
const idOf = (href: string) => Number(href.slice(href.lastIndexOf('/') + 1))
const idsOf = ({ rules }: Json) => rules.map(({ href }: Json) => idOf(href)) as number[]

t.test('by what they name', async (t) => {
  const bench = await startBench(t, { estate })
  const { simulator } = bench
  const cases: [args: object, ids: number[], engine: 'rule_search' | 'own'][] = [
    [{ actor: 'role=web' }, [1, 2, 7], 'rule_search'],
    [{ consumer: 'role=web' }, [1, 7], 'rule_search'],
    [{ provider: 'role=web', consumer: 'iplist:Office' }, [2], 'rule_search'],
    [{ actor: 'ams' }, [3, 6, 8], 'rule_search'],
    [{ actor: 'workload:crm-1' }, [4], 'rule_search'],
    [{ actor: { href: '/orgs/1/sec_policy/active/ip_lists/3' } }, [6], 'rule_search'],
    [{ actor: 'ams', enabled: true, rule_type: 'override_deny' }, [6], 'rule_search'],
    // Addresses: Office leaves one out, and the built-in list has every one.
    [{ consumer: '192.168.1.1' }, [2, 5], 'own'],
    [{ consumer: '192.168.9.9' }, [5], 'own'],
    [{ actor: '10.0.0.2' }, [5, 6, 8], 'own'],
    [{ service: 'web' }, [2], 'rule_search'],
    [{ service: { port: 443, proto: 'tcp' } }, [2, 4, 7], 'own'],
    [{ service: '443/tcp' }, [2, 4, 7], 'own'],
    [{ service: 'agent' }, [3], 'own'],
    [{ process: 'wsus' }, [3], 'own'],
    [{ process: 'agent' }, [3], 'own'],
    [{ text: 'PAY |' }, [1, 2, 3, 4, 5, 6], 'own'],
    [{ enabled: false }, [4], 'own'],
    [{ rule_type: 'deny' }, [5], 'own'],
    [{ author: 'ADMIN@example.com', actor: 'role=db' }, [1, 5], 'rule_search'],
    [{ author: 'Ada Admin', rule_type: 'deny' }, [5], 'own'],
    [{ policy_version: 'active', actor: 'role=db' }, [1, 5], 'rule_search'],
    [{ policy_version: 1, actor: 'role=db' }, [1, 5], 'own'],
  ]
  for (const [args, ids, engine] of cases) {
    const answer = await bench.ok('find-rules', args)
    t.same([idsOf(answer), answer.found_by], [ids, engine], JSON.stringify(args))
    t.equal(answer.total_count, ids.length)
    if (engine === 'own') continue
    for (const status of [404, 406]) {
      simulator.faults.add({ kind: 'status', path: /rule_search/, times: 9, status, body: [] })
      const own = await bench.ok('find-rules', args)
      simulator.faults.clear()
      t.same([own.rules, own.counts, own.found_by], [answer.rules, answer.counts, 'own'], 'the same without its search')
      t.match(own.summary, new RegExp(`compared here, since the rule search of the PCE answered ${status}\\.$`))
    }
  }
  t.same(bench.writes(), [])
})

t.test('that apply to a workload, an address or labels', async (t) => {
  const bench = await startBench(t, { estate })
  const asOf = ({ rules }: Json) =>
    rules.map((rule: Json) => [
      idOf(rule.href),
      ...rule.as,
      ...(rule.by_address ?? []).map((end: string) => `${end} by address`),
    ])
  const db = await bench.ok('find-rules', { applies_to: 'pay-db' })
  t.equal(db.applies_to, '"pay-db" ("app=pay, env=prod, role=db")')
  t.same(asOf(db), [
    [1, 'provider'],
    // Not 4, which is disabled.
    [3, 'provider'],
    [5, 'provider', 'consumer', 'consumer by address'],
    [6, 'provider', 'consumer', 'provider by address'],
    [8, 'provider', 'consumer', 'provider by address'],
  ])
  const inbound = await bench.ok('find-rules', { applies_to: 'pay-db', as: 'provider', text: 'Default' })
  t.same(asOf(inbound), [[8, 'provider', 'provider by address']])
  t.match(inbound.summary, /^1 rule of the draft policy that applies to "pay-db" \(.*\) as provider, out of/)
  for (const applies_to of ['workload:pay-db', ' workload: pay-db ', ['workload:pay-db']])
    t.same(await bench.ok('find-rules', { applies_to }), db, 'as other tools have it')
  t.same(idsOf(await bench.ok('find-rules', { applies_to: 'pay-db', as: 'consumer' })), [5, 6, 8])
  t.same(idsOf(await bench.ok('find-rules', { applies_to: 'pay-db', enabled: false })), [4])
  const byAddress = await bench.ok('find-rules', { applies_to: 'crm-1' })
  t.same(asOf(byAddress), [
    [3, 'consumer'],
    [5, 'consumer', 'consumer by address'],
    [7, 'provider', 'consumer'],
    [8, 'provider', 'consumer', 'provider by address'],
  ])
  t.same((await bench.ok('find-rules', { applies_to: '10.0.0.2' })).applies_to, db.applies_to, 'who has the address')
  const outside = await bench.ok('find-rules', { applies_to: '192.168.1.1' })
  t.equal(outside.applies_to, '192.168.1.1, which no workload has')
  t.same(asOf(outside), [
    [2, 'consumer'],
    [5, 'consumer'],
    [8, 'provider'],
  ])
  const labels = await bench.ok('find-rules', { applies_to: ['app=pay', 'env=prod'], as: 'provider' })
  for (const one of ['pay-db', '10.0.0.2', 'app=pay'])
    t.same(await bench.ok('find-rules', { applies_to: [one] }), await bench.ok('find-rules', { applies_to: one }), one)
  t.same(
    labels.rules.map((rule: Json) => [idOf(rule.href), rule.uncertain]),
    [
      [1, 'labels that only some workloads may have'],
      [2, 'labels that only some workloads may have'],
      [3, undefined],
      [5, 'labels that only some workloads may have'],
    ],
  )
  partial(t, labels, { uncertain_count: 3 })
})

t.test('of a draft: what is pending, and where it stands', async (t) => {
  const bench = await startBench(t, { estate })
  await bench.ok('update-sec-rule', {
    href: '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1',
    description: 'To the database',
  })
  await bench.ok('delete-deny-rule', { href: '/orgs/1/sec_policy/draft/rule_sets/1/deny_rules/5' })
  const ids = async (args: object) => idsOf(await bench.ok('find-rules', args))
  t.same(await ids({ pending: 'update' }), [1])
  t.same(await ids({ pending: 'delete' }), [5])
  t.same(await ids({ pending: 'any' }), [1, 5])
  t.same(await ids({ pending: 'none', actor: 'role=db' }), [])
  t.same(await ids({ text: 'database' }), [1])
  t.same(await ids({ text: 'database', policy_version: 'active' }), [])
  t.same(await ids({ applies_to: 'pay-db', as: 'provider' }), [1, 3, 6, 8], 'what is to be deleted no longer applies')
  t.same(await ids({ applies_to: 'pay-db', as: 'provider', policy_version: 'active' }), [1, 3, 5, 6, 8])
  const [row] = (await bench.ok('find-rules', { pending: 'update' })).rules
  partial(t, row, {
    pending: 'update',
    description: 'To the database',
    scope: 'app=pay env=prod',
    rule_set: 'pay | prod',
  })
})

t.test('rule sets that are off, boundaries, and what the search of the PCE may leave out', async (t) => {
  const bench = await startBench(t, { estate })
  const ids = async (args: object) => idsOf(await bench.ok('find-rules', args))
  const db = (await bench.pce.labels.getAll()).find(({ value }) => value === 'db')!.href
  const boundary = await bench.pce.enforcementBoundaries.create({
    name: 'No telnet',
    providers: [{ label: { href: db } }],
    consumers: [{ actors: 'ams' }],
    ingress_services: [{ port: 23, proto: 6 }],
  })
  const named = await bench.ok('find-rules', { provider: 'role=db' })
  t.equal(named.found_by, 'rule_search')
  t.same(
    named.rules.map(({ href, rule_set }: Json) => [idOf(href), rule_set]),
    [
      [1, 'pay | prod'],
      [5, 'pay | prod'],
      [idOf(boundary.href), 'enforcement boundary No telnet'],
    ],
  )
  await bench.pce.ruleSets.update('/orgs/1/sec_policy/draft/rule_sets/2', { enabled: false })
  t.same(await ids({ enabled: false }), [4, 7], 'a rule is off with its rule set')

  bench.simulator.clearRequests()
  await bench.ok('find-rules', { policy_version: 'active', actor: 'iplist:Office' })
  const asked = bench.simulator.requests.filter(({ path }) => path.endsWith('/sec_policy/active/rule_search'))
  t.same(
    asked.map(({ body }: Json) => (body.providers ?? body.consumers)[0].ip_list.href),
    Array(2).fill('/orgs/1/sec_policy/active/ip_lists/2'),
    'in force, lists have other hrefs',
  )
  const [one] = await bench.pce.searchRules({ rule_types: ['sec_rules'] }, 'draft')
  const body = Array.from({ length: 500 }, (_, at) => ({ ...one!, href: `${one!.href}${at}` }))
  bench.simulator.faults.add({ kind: 'status', path: /rule_search/, status: 200, times: 1, body })
  const cut = await bench.ok('find-rules', { provider: 'role=db' })
  t.equal(cut.found_by, 'own', 'a list of exactly a page may be cut')
  t.same(cut.rules, named.rules)

  const path = '/orgs/1/sec_policy/1/rule_sets'
  const bare = (bench.simulator.state.find(path) as unknown as Json[]).map(({ deny_rules: _, ...set }) => set)
  bench.simulator.faults.add({ kind: 'status', path: new RegExp(`${path}$`), status: 200, times: 1, body: bare })
  const old = await bench.ok('find-rules', { policy_version: 1, rule_type: 'deny' })
  t.match(old.not_read[0], /^The deny rules of 3 rule sets could not be read: this release does not keep them/)
  for (const end of ['actor', 'provider', 'consumer']) {
    const { message } = await bench.fails('find-rules', { [end]: '' }, 'invalid_actor')
    t.match(message, new RegExp(`^"" cannot be used in ${end}\\.`), 'nothing is not everything')
  }
})

t.test('the ports of services leave room for rules, and are those of the rules of the page', async (t) => {
  const ports = Array.from({ length: 100 }, (_, at) => ({ port: 10_000 + at, proto: 6 }))
  const many = Array.from({ length: 60 }, (_, at) => `service ${at}`)
  const wide = handMade({
    services: Object.fromEntries(many.map((name) => [name, { service_ports: ports }])),
    ruleSets: [{ name: 'wide', scope: '', allow: many.map((name) => ({ from: 'ams', to: 'ams', services: [name] })) }],
  })
  const bench = await startBench(t, { estate: wide, budget: 12_000 })
  for (const [tool, rulesOf] of [
    ['find-rules', ({ rules }: Json) => rules.map(({ rule }: Json) => /service \d+/u.exec(rule as string)![0])],
    ['get-rulesets', ({ rulesets }: Json) => rulesets[0].rules.map((rule: Json) => rule.ingress_services[0])],
  ] as const) {
    const shown: string[] = []
    let page: Json
    do {
      page = await bench.ok(tool, page?.next_cursor === undefined ? {} : { cursor: page.next_cursor })
      t.ok(Buffer.byteLength(JSON.stringify(page)) <= 12_000, `${tool}: within the budget`)
      const here: string[] = rulesOf(page)
      const listed = Object.keys(page.services as object)
      t.ok(page.next_cursor === undefined || here.length > 10, `${tool}: ${here.length} rules have room`)
      t.same(listed, here.slice(0, listed.length), `${tool}: services of its rules alone`)
      t.equal(listed.length + (page.services_left_out ?? 0), here.length, `${tool}: the others are counted`)
      t.match(page.services[here[0]!], /^10000\/tcp, .*, 100\d\d\/tcp and [6-7]\d more$/u)
      shown.push(...here)
    } while (page.next_cursor !== undefined)
    t.same(shown, many, `${tool}: every rule once`)
  }
})

t.test('pages, and bad arguments', async (t) => {
  const bench = await startBench(t, { estate })
  const first = await bench.ok('find-rules', { rule_type: 'allow', max_results: 3 })
  const rest = await bench.ok('find-rules', { rule_type: 'allow', cursor: first.next_cursor })
  t.same([...idsOf(first), ...idsOf(rest)], [1, 2, 3, 4, 7, 8])
  t.same([first.total_count, first.truncated, rest.truncated], [6, true, false])
  const fails: [object, string][] = [
    [{ actor: 'app=pey' }, 'label_not_found'],
    [{ actor: 'iplist:Offic' }, 'not_found'],
    [{ actor: 'pay' }, 'invalid_actor'],
    [{ service: 'wep' }, 'invalid_argument'],
    [{ policy_version: 'newest' }, 'invalid_argument'],
    [{ policy_version: 99 }, 'not_found'],
    [{ author: 'adam@example.com' }, 'not_found'],
    [{ applies_to: 'pay-dp' }, 'not_found'],
    [{ applies_to: 'workload:pay-dp' }, 'not_found'],
    [{ applies_to: 'workload:' }, 'not_found'],
    [{ applies_to: 'workload:app=pay' }, 'not_found'],
    [{ applies_to: 'ams' }, 'invalid_argument'],
    [{ applies_to: 'labelgroup:x' }, 'invalid_argument'],
    [{ applies_to: '10.0.9.9' }, 'ambiguous_name'],
    [{ applies_to: ['app=pay', 'app=crm'] }, 'invalid_argument'],
    [{ applies_to: ['app=pey'] }, 'label_not_found'],
    [{ as: 'provider' }, 'invalid_argument'],
  ]
  const advised: [object, string, RegExp][] = [
    [{ service: 443 }, 'invalid_argument', /expected object with port, to_port, proto, href, service or string, got/],
    [{ service: '443' }, 'invalid_argument', /^service: .* A port has a protocol: "443\/tcp"\.$/],
    [{ service: '443/icmp' }, 'invalid_argument', /^service: ports in a rule are tcp or udp/],
    [{ service: '70000/tcp' }, 'invalid_argument', /^service: ports are whole numbers from 0 to 65535\.$/],
    [{ service: 'udp/443-80' }, 'invalid_argument', /^service: to_port 80 is below port 443\.$/],
    [{ service: 'web/tcp' }, 'invalid_argument', / is named exactly "web\/tcp"\.$/],
    [{ actor: 'Any (0.0.0.0/0 and ::/0)' }, 'invalid_actor', / Write "iplist:Any \(0\.0\.0\.0\/0 and ::\/0\)"\.$/],
    [{ consumer: 'crm-1' }, 'invalid_actor', / Write "workload:crm-1"\.$/],
  ]
  for (const [args, code, message] of advised) {
    const { message: said } = await bench.fails('find-rules', args, code)
    t.ok(message.test(said), said)
  }
  for (const [args, code] of fails) await bench.fails('find-rules', args, code)
})
