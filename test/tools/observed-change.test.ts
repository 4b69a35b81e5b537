/** What the dry run of a change of policy says of the traffic that was seen: whom it would cut, and what was not looked at. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, withoutModes, type Bench } from './harness.js'
import { startTwisted } from './twisted.js'

const DRAFT = '/orgs/1/sec_policy/draft'
const RULE = `${DRAFT}/rule_sets/1/sec_rules`
const sql = { port: 5432, proto: 6 }
const ssh = { port: 22, proto: 'tcp' }
const https = { port: 443, proto: 'tcp' }

/** The web servers and a job use the database, the CRM uses the web servers; lax is open by its mode alone. */
const ESTATE: HandMadeEstate = {
  hosts: {
    web: { ip: '10.0.0.1', labels: 'app=shop env=prod role=web', mode: 'full' },
    db: { ip: '10.0.0.2', labels: 'app=shop env=prod role=db', mode: 'full' },
    job: { ip: '10.0.0.3', labels: 'app=shop env=prod role=job' },
    crm: { ip: '10.0.1.1', labels: 'app=crm env=prod' },
    lax: { ip: '10.0.1.2', labels: 'app=lax env=prod', mode: 'selective' },
  },
  flows: [
    { from: 'web', to: 'db', port: 5432, connections: 4000 },
    { from: 'job', to: 'db', port: 5432, connections: 500 },
    { from: 'crm', to: 'web', port: 443, connections: 30 },
    { from: '192.0.2.8', to: 'crm', port: 443, connections: 7 },
    { from: '198.51.100.8', to: 'lax', port: 443, connections: 5 },
    { from: '192.0.2.8', to: 'lax', port: 22, connections: 3 },
  ],
  ipLists: { Partners: ['198.51.100.0/24', '203.0.113.0/24'] },
  services: { sql: { service_ports: [sql, { port: 1433, proto: 6 }] } },
  ruleSets: [
    {
      name: 'shop',
      scope: 'app=shop env=prod',
      allow: [
        { from: 'role=web', to: 'role=db', services: ['sql'] },
        { from: 'ams', to: 'role=db', services: [sql] },
        { from: 'ams', to: 'role=web', services: [{ port: 443, proto: 6 }], extra: true },
      ],
    },
    {
      name: 'lax',
      scope: 'app=lax',
      allow: [{ from: 'iplist:Partners', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true }],
      deny: [
        { from: 'any', to: 'ams', services: [{ port: 3389, proto: 6 }], extra: true },
        { from: 'iplist:Partners', to: 'ams', services: [{ port: 22, proto: 6 }], extra: true },
      ],
    },
  ],
}
const start = (t: Test) => startBench(t, { estate: handMade(ESTATE) })
const ANYBODY = '192.0.2.8 (Any (0.0.0.0/0 and ::/0))'
const none = { cut: 0, cut_once_enforced: 0, undecided: 0, not_affected: 0 }
const queries = ({ simulator }: Bench) =>
  simulator.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/traffic_flows/async_queries'))

t.test('a deny: whom it cuts, where its mode leaves it open for now, and whom rules keep', async (t) => {
  const bench = await start(t)
  const rules = [{ rule_type: 'deny', providers: ['ams'], consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'] }]
  const asked = { name: 'No way in', scopes: [[]], rules: [{ ...rules[0], ingress_services: [ssh, https] }] }
  const { observed, warnings } = await bench.ok('create-ruleset', { ...asked, dry_run: true })
  t.same(observed, {
    window: { start: '2026-05-16T00:00:00Z', end: '2026-06-15T23:59:59Z' },
    rows: 4,
    connections: { cut: 3, cut_once_enforced: 7, undecided: 0, not_affected: 35 },
    largest: [
      { source: ANYBODY, destination: 'lax (prod)', effect: 'cut', connections: 3, ports: ['22/tcp'] },
      {
        source: ANYBODY,
        destination: 'crm (prod)',
        effect: 'cut_once_enforced',
        connections: 7,
        ports: ['443/tcp'],
      },
    ],
    pairs_total: 2,
    note: 'Rows decided by the draft without and with the change; only traffic that the changed rules can concern was read.',
  })
  t.same(warnings, [
    'Of the traffic seen in the last 30 days, 3 connections of 1 pair would be cut once provisioned, another 7 connections of 1 pair would be cut once their workloads enforce policy. Largest: "192.0.2.8 (Any (0.0.0.0/0 and ::/0))" → "lax (prod)" 22/tcp (3); "192.0.2.8 (Any (0.0.0.0/0 and ::/0))" → "crm (prod)" 443/tcp (7).',
    'The scope is empty: the rule set covers all workloads.',
    'Rule 0: The consumers are any address in effect: "Any (0.0.0.0/0 and ::/0)" has 100 % of IPv4 and 100 % of IPv6. The rule denies nearly everybody.',
    'Rule 0: 2 of 5 destinations with a VEN are idle or in visibility_only, and nothing is enforced there: "job", "crm".',
  ])
  const [deny] = queries(bench).map(({ body }) => body as Record<string, object>)
  t.same(deny?.['services'], {
    include: [
      { proto: 6, port: 22 },
      { proto: 6, port: 443 },
    ],
    exclude: [],
  })
  await bench.ok('create-ruleset', asked)
  t.equal(queries(bench).length, 1, 'a real call reads no traffic')
})

t.test('a single deny rule, and one that is widened', async (t) => {
  const bench = await start(t)
  const rule = { ruleset_name: 'lax', providers: ['ams'], consumers: ['ams'], unscoped_consumers: true }
  const any = { ...rule, consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'], ingress_services: [ssh] }
  const cut = { ...none, cut: 3 }
  for (const [tool, args] of [
    ['create-deny-rule', any],
    ['create-rule', { ...any, rule_type: 'override_deny' }],
    ['update-deny-rule', { href: `${DRAFT}/rule_sets/2/deny_rules/5`, ingress_services: [ssh] }],
  ] as const) {
    const { observed } = await bench.ok(tool, { ...args, dry_run: true })
    t.same(observed.connections, cut, tool)
  }
  const override = { ...any, rule_type: 'override_deny', ingress_services: [https] }
  const { observed } = await bench.ok('create-rule', { ...override, dry_run: true })
  t.same(observed.connections, { ...none, cut: 5 }, 'it cuts what rules allow')
  const telnet = [{ port: 23, proto: 'tcp' }]
  const nobody = await bench.ok('create-deny-rule', { ...rule, ingress_services: telnet, dry_run: true })
  t.equal(nobody.observed.message, 'No traffic that this can concern was seen in the last 30 days.')
  t.same(withoutModes(nobody.warnings), [])
})

t.test('a list that deny rules name grows', async (t) => {
  const { ok } = await start(t)
  const { observed } = await ok('edit-ip-list-ranges', {
    name: 'Partners',
    add_ranges: ['192.0.2.0/24'],
    dry_run: true,
  })
  t.same(observed.connections, { ...none, cut: 3, not_affected: 5 })
})

t.test('traffic is not looked up for a list that only grows and that allow rules alone name', async (t) => {
  const allow = [{ from: 'iplist:Office', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true }]
  const bench = await startBench(t, {
    estate: handMade({
      ...ESTATE,
      ipLists: { Office: ['198.51.100.0/24', '203.0.113.0/24'] },
      ruleSets: [{ name: 'crm', scope: 'app=crm', allow }],
    }),
  })
  const dryRun = async (edit: object) => {
    const args = { name: 'Office', dry_run: true, ...edit }
    const { effect, observed } = await bench.ok('edit-ip-list-ranges', args)
    return [effect, observed === undefined, queries(bench).length > 0]
  }
  t.same(await dryRun({ add_ranges: ['192.0.2.0/24'] }), ['widening', true, false])
  t.same(await dryRun({ remove_ranges: ['198.51.100.0/24'] }), ['narrowing', false, true])
})

t.test('traffic that no rule of several concerns is not counted', async (t) => {
  const { ok } = await start(t)
  const rule = { rule_type: 'deny', unscoped_consumers: true }
  const { observed } = await ok('create-ruleset', {
    name: 'Two',
    scopes: [['app=shop', 'env=prod']],
    rules: [
      { ...rule, providers: ['role=web'], consumers: ['app=crm'], ingress_services: [ssh] },
      { ...rule, providers: ['role=db'], consumers: ['role=job'], ingress_services: [https] },
    ],
    dry_run: true,
  })
  t.equal(observed.rows, 1, 'from the CRM to the web servers, on the port of the other rule')
  t.same(observed.connections, none)
  t.equal(observed.message, 'None of the traffic seen in the last 30 days would be cut.')
})

t.test('what only this rule permits depends on it', async (t) => {
  const { ok, pce } = await start(t)
  const depends = async (tool: string, args: object) => {
    const { observed, warnings } = await ok(tool, { ...args, dry_run: true })
    return [observed?.connections, warnings?.[0] ?? observed?.message]
  }
  const own =
    'Of the traffic seen in the last 30 days, 500 connections of 1 pair would be cut once provisioned. Largest: "job" → "db" 5432/tcp (500).'
  const some = { ...none, cut: 500, not_affected: 4000 }
  t.same(await depends('delete-sec-rule', { href: `${RULE}/2` }), [some, own])
  t.same(await depends('update-sec-rule', { href: `${RULE}/2`, enabled: false }), [some, own])
  t.same(await depends('update-sec-rule', { href: `${RULE}/2`, consumers: ['role=web'] }), [some, own])
  t.same(await depends('delete-sec-rule', { href: `${RULE}/1` }), [
    { ...none, not_affected: 4000 },
    'None of the traffic seen in the last 30 days depends on what this takes away.',
  ])
  const whole = { ...none, cut: 4530 }
  for (const [tool, args] of [
    ['delete-ruleset', { name: 'shop' }],
    ['update-ruleset', { name: 'shop', enabled: false }],
    ['update-ruleset', { name: 'shop', scopes: [['app=crm']] }],
  ] as const)
    t.same((await depends(tool, args))[0], whole, tool)
  t.same(await depends('update-ruleset', { name: 'shop', description: 'x' }), [undefined, undefined], 'no effect')

  // lax stays open by its mode, so nothing is cut there yet.
  const later = { ...none, cut_once_enforced: 5 }
  t.same((await depends('update-iplist', { name: 'Partners', ip_ranges: [{ from_ip: '203.0.113.0/24' }] }))[0], later)
  t.same((await depends('edit-ip-list-ranges', { name: 'Partners', remove_ranges: ['198.51.100.0/24'] }))[0], later)
  await pce.delete(`${RULE}/2`, { includeOrg: false })
  const ports = [{ port: 1433, proto: 'tcp' }]
  const narrowed = await ok('update-service', { name: 'sql', service_ports: ports, dry_run: true })
  t.same(narrowed.observed.connections, { ...none, cut: 4000 })
  t.match(
    narrowed.observed.note,
    /^Rows decided by the draft .* \(its other pending changes included\) and by active policy;/,
  )
})

t.test('what is not provisioned yet is neither lost to active policy nor takes its place', async (t) => {
  const { ok, simulator } = await start(t)
  const fresh = { ruleset_name: 'lax', rule_type: 'allow', providers: ['ams'], unscoped_consumers: true }
  await ok('create-rule', { ...fresh, consumers: ['iplist:Any (0.0.0.0/0 and ::/0)'], ingress_services: [ssh] })
  const lax = simulator.state.find(`${DRAFT}/rule_sets/2`) as { rules: { href: string }[] }
  const never = await ok('delete-sec-rule', { href: lax.rules.at(-1)!.href, dry_run: true })
  t.same(never.observed.connections, { ...none, draft_only: 3 })
  t.equal(
    never.warnings[0],
    `Of the traffic seen in the last 30 days, 3 connections of 1 pair would only be taken out of the draft (active policy does not allow this today). Largest: "${ANYBODY}" → "lax (prod)" 22/tcp (3).`,
  )

  // Somebody else's pending rule would keep the job, unless it is provisioned later or never.
  const rules = [{ providers: ['role=db'], consumers: ['role=job'], ingress_services: [{ port: 5432, proto: 'tcp' }] }]
  await ok('create-ruleset', { name: 'Other', scopes: [['app=shop', 'env=prod']], rules })
  const hidden = await ok('delete-sec-rule', { href: `${RULE}/2`, dry_run: true })
  t.same(hidden.observed.connections, { ...none, cut_if_alone: 500, not_affected: 4000 })
  t.equal(
    hidden.warnings[0],
    'Of the traffic seen in the last 30 days, 500 connections of 1 pair may be cut if this is provisioned without the other pending changes. Largest: "job" → "db" 5432/tcp (500).',
  )
})

t.test('each end may enforce before the other one', async (t) => {
  for (const modes of [
    ['visibility_only', 'visibility_only'],
    ['idle', 'visibility_only'],
    ['selective', 'visibility_only'],
    ['selective', 'selective'],
  ] as const) {
    const [a, b] = modes
    const { ok } = await startBench(t, {
      estate: handMade({
        hosts: { a1: { ip: '10.0.0.1', labels: 'app=A', mode: a }, b1: { ip: '10.0.0.2', labels: 'app=B', mode: b } },
        flows: [{ from: 'a1', to: 'b1', port: 5432, connections: 6 }],
        ipLists: { Inside: ['10.0.0.0/8'] },
        // The rule is written to B alone; in full, A drops the connection with or without it.
        ruleSets: [{ name: 'B', scope: 'app=B', allow: [{ from: 'iplist:Inside', to: 'ams', extra: true }] }],
      }),
    })
    const { observed } = await ok('delete-sec-rule', { href: `${RULE}/1`, dry_run: true })
    t.same(observed.connections, { ...none, cut_once_enforced: 6 }, modes.join(' to '))
  }
})

t.test('a deny that is there already cuts nothing, whatever a source in selective mode does with it', async (t) => {
  const { ok } = await startBench(t, {
    estate: handMade({
      hosts: {
        a1: { ip: '10.0.0.1', labels: 'app=A', mode: 'selective' },
        b1: { ip: '10.0.0.2', labels: 'app=B', mode: 'idle' },
      },
      flows: [{ from: 'a1', to: 'b1', port: 443, connections: 6 }],
      ruleSets: [{ name: 'B', scope: 'app=B', deny: [{ from: 'app=A', to: 'ams', extra: true }] }],
    }),
  })
  const again = { ruleset_name: 'B', providers: ['ams'], consumers: ['app=A'], unscoped_consumers: true }
  const { observed } = await ok('create-deny-rule', { ...again, ingress_services: [https], dry_run: true })
  t.same(observed.connections, { ...none, not_affected: 6 })
})

t.test('selectors that are null are left out of what changes, too', async (t) => {
  const { ok, twist } = await startTwisted(t, { estate: handMade(ESTATE) })
  const calls: [string, object][] = [
    ['update-sec-rule', { href: `${RULE}/2`, enabled: false }],
    ['update-sec-rule', { href: `${RULE}/2`, consumers: ['role=web'] }],
    ['update-deny-rule', { href: `${DRAFT}/rule_sets/2/deny_rules/5`, ingress_services: [ssh] }],
    ['update-ruleset', { name: 'shop', enabled: false }],
  ]
  const all = async () => {
    const seen = []
    for (const [tool, args] of calls) seen.push((await ok(tool, { ...args, dry_run: true })).observed?.connections)
    return seen
  }
  const plain = await all()
  t.same(plain[0], { ...none, cut: 500, not_affected: 4000 })
  const nulls = (key: string, value: unknown) =>
    key === 'resolve_labels_as'
      ? null
      : ['providers', 'consumers'].includes(key)
        ? (value as object[]).map((actor) => ({ label: null, label_group: null, ip_list: null, ...actor }))
        : value
  twist(({ method, path }, real) =>
    method === 'GET' && /\/rule_sets(?:\/\d+(?:\/\w+\/\d+)?)?$/.test(path)
      ? { ...real, body: JSON.stringify(JSON.parse(real.body, nulls)) }
      : undefined,
  )
  t.same(await all(), plain)
})

t.test('what could not be looked at is said, and the dry run is there anyway', async (t) => {
  const bench = await start(t)
  const { faults } = bench.simulator
  const fail = (path: RegExp) => faults.add({ kind: 'status', path, status: 403, times: 9, body: [] })
  const ask = async () => {
    const answer = await bench.ok('delete-sec-rule', { href: `${RULE}/2`, dry_run: true })
    faults.clear()
    t.equal(answer.requests.length, 1)
    return answer
  }
  for (const path of [/\/traffic_flows\/async_queries$/, /\/sec_policy\/draft\/services$/]) {
    fail(path)
    const { observed, warnings } = await ask()
    t.same(observed, { connections: null })
    t.match(warnings[0], /^What this would cut of the observed traffic is not known: /)
  }
  fail(/\/sec_policy\/draft\/label_groups$/)
  t.equal((await ask()).observed.connections.cut, 500, 'no rule needs the groups')
  const error = await bench.cancelled('delete-sec-rule', { href: `${RULE}/2`, dry_run: true }, ({ message = '' }) =>
    /queued|working/.test(message),
  )
  t.equal(error.error, 'cancelled')
})

t.test('what is undecided is counted as that', async (t) => {
  const [web, , job] = Object.values(ESTATE.hosts ?? {})
  const { ok } = await startBench(t, {
    estate: handMade({
      hosts: { web: web!, job: job! },
      flows: [{ from: 'job', to: 'web', port: 443, connections: 9 }],
      services: {
        worker: { windows_services: [{ process_name: 'c:\\w3wp.exe', port: 443, proto: 6 }] },
        sql: { service_ports: [sql] },
      },
      ruleSets: [
        { name: 'shop', scope: 'app=shop env=prod', allow: [{ from: 'ams', to: 'role=web', services: ['worker'] }] },
      ],
    }),
  })
  const { observed, warnings } = await ok('delete-ruleset', { name: 'shop', dry_run: true })
  t.same(observed.connections, { ...none, undecided: 9 })
  t.match(observed.note, / undecided: because of rules for certain processes\./)
  t.equal(
    warnings[0],
    'Of the traffic seen in the last 30 days, 9 connections of 1 pair may be cut. Largest: "job" → "web" 443/tcp (9).',
  )
})
