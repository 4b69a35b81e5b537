/** restore-policy-object: one rule set, IP list or service back to what a version had, as a draft. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'

const TOOL = 'restore-policy-object'

/** A rule set with two rules, an IP list and a service, provisioned; returns their hrefs and the number of the version. */
async function setUp(bench: Bench) {
  const { ok, pce, simulator } = bench
  const list = (await pce.ipLists.create({ name: 'Plants', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })).href
  const service = (await pce.services.create({ name: 'Scada', service_ports: [{ port: 502, proto: 6 }] })).href
  const rules = [
    {
      consumers: ['iplist:Plants'],
      providers: ['role=web'],
      services: [{ port: 443, proto: 'tcp' }],
      unscoped_consumers: true,
    },
    { consumers: ['role=web'], providers: ['role=db'], services: ['Scada'] },
    { rule_type: 'deny', consumers: ['role=jump'], providers: ['role=db'], services: [{ port: 22, proto: 'tcp' }] },
  ]
  await ok('create-ruleset', { name: 'Floor', scopes: [['app=payments', 'env=prod']], rules })
  const set = simulator.state.pendingHrefs().find((href) => href.includes('/rule_sets/'))!
  const { version } = await pce.provisionPolicyChanges('good', simulator.state.pendingHrefs())
  const { rules: [first, second] = [], deny_rules: [deny] = [] } = (await pce.ruleSets.getByReference(set)) as Json
  return { list, service, set, version: version as number, rules: [first.href, second.href, deny.href] as string[] }
}

const provision = ({ pce, simulator }: Bench) => pce.provisionPolicyChanges('later', simulator.state.pendingHrefs())

t.test('puts a rule set back, writing only what differs and leaving other changes', async (t) => {
  const bench = await startBench(t)
  const { ok, pce, simulator } = bench
  const { set, version, rules, list } = await setUp(bench)
  const [kept, gone, deny] = rules as [string, string, string]
  await pce.delete(gone, { includeOrg: false })
  await provision(bench)
  await ok('update-sec-rule', { href: kept, services: [{ port: 8443, proto: 'tcp' }] })
  await ok('create-rule', {
    ruleset_href: set,
    consumers: ['ams'],
    providers: ['ams'],
    services: [{ port: 23, proto: 'tcp' }],
  })
  await pce.put(deny, { includeOrg: false, json: { enabled: false } })
  await pce.ruleSets.update(set, { name: 'Ground floor' })
  await pce.ipLists.update(list, { description: 'of others' })

  const before = simulator.state.pendingHrefs().length
  bench.writes()
  const dry = await ok(TOOL, { version, name: 'Floor', kind: 'rule_set', dry_run: true })
  t.same(bench.writes(), [])
  t.same(
    dry.requests.map(({ method, path }: Json) => `${method} ${path.replace(set, '')}`),
    [
      'PUT ',
      `PUT ${deny.replace(set, '')}`,
      `PUT ${kept.replace(set, '')}`,
      'POST /sec_rules',
      `DELETE ${lastRule(simulator, set).replace(set, '')}`,
    ],
  )
  t.same(dry.requests[0].body, { name: 'Floor' })
  t.same(dry.requests[2].body, { ingress_services: [{ port: 443, proto: 6 }] })
  partial(t, dry, {
    dry_run: true,
    message: /5 writes\.$/,
    warnings: ['Deleted since: 1 rule, created again with new hrefs.'],
    change: { change: 'updated' },
  })

  const done = await ok(TOOL, { version, href: set })
  partial(t, done, { verified: true, href: set })
  t.equal(done.new_hrefs.length, 1)
  t.equal(done.new_hrefs[0].was, gone)
  t.equal(simulator.state.pendingHrefs().length, before, 'the IP list is pending as before')
  t.equal(((await pce.ipLists.getByReference(list)) as Json).description, 'of others')
  partial(t, await ok(TOOL, { version, href: set }), { status: 'no_changes' })
})

const lastRule = (simulator: Bench['simulator'], set: string) =>
  ((simulator.state.find(set) as Json).rules as Json[]).at(-1).href as string

t.test('puts an IP list and a service back, and creates one again that was deleted', async (t) => {
  const bench = await startBench(t)
  const { ok, pce } = bench
  const { list, service, set, version } = await setUp(bench)
  await pce.ipLists.update(list, { ip_ranges: [{ from_ip: '198.51.0.0/16' }], description: 'wide' })
  const back = await ok(TOOL, { version, name: 'Plants', kind: 'ip_lists' })
  partial(t, back, { verified: true, change: { effect: 'narrowing' } })
  partial(t, await pce.ipLists.getByReference(list), { ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
  partial(t, await ok(TOOL, { version, href: list }), { status: 'no_changes' })

  await pce.delete(set, { includeOrg: false })
  partial(t, await bench.fails(TOOL, { version, href: set }, 'pending_changes'), { href: set })
  await provision(bench)
  await pce.services.delete(service)
  await provision(bench)
  const again = await ok(TOOL, { version, name: 'Scada', kind: 'services' })
  partial(t, again, {
    verified: true,
    change: { change: 'created' },
    warnings: [/deleted since: it is created again with a new href/],
  })
  t.not(again.href, service)
  const refused = await bench.fails(TOOL, { version, name: 'Floor', kind: 'rule_sets' }, 'not_found')
  partial(t, refused, {
    reason: 'deleted_reference',
    references: [{ href: service, name: 'Scada', why: 'which was deleted since' }],
  })
  partial(t, await bench.fails(TOOL, { version, name: 'Floo', kind: 'rule_sets' }, 'not_found'), { name: 'Floo' })
  await bench.fails(TOOL, { version: 99, href: list }, 'not_found')
  await bench.fails(TOOL, { version, href: '/orgs/1/labels/1' }, 'invalid_href')
})

t.test(
  'a dry run on a long list shows what differs and counts the rest, and detail_level full shows all',
  async (t) => {
    const bench = await startBench(t)
    const { ok, pce, simulator } = bench
    const range = (at: number) => ({ from_ip: `10.${at >> 8}.${at & 255}.0/24` })
    const whole = Array.from({ length: 300 }, (_, at) => range(at))
    const { href } = await pce.ipLists.create({ name: 'Long', ip_ranges: whole })
    const { version } = await pce.provisionPolicyChanges('good', simulator.state.pendingHrefs())
    await pce.ipLists.update(href, { ip_ranges: [...whole.slice(2), range(999)] })
    bench.writes()
    const dry = await ok(TOOL, { version, href, dry_run: true })
    t.same(dry.change.fields, [{ field: 'ip_ranges', before: [range(999)], after: [range(0), range(1)], same: 298 }])
    t.same(
      dry.requests.map(({ method, body }: Json) => [method, body]),
      [['PUT', { ip_ranges: '300 items: detail_level full shows them' }]],
    )
    const full = await ok(TOOL, { version, href, dry_run: true, detail_level: 'full' })
    t.equal(full.requests[0].body.ip_ranges.length, 300)
    t.same(bench.writes(), [])
    await ok(TOOL, { version, href })
    t.same(
      bench.writes().map(({ body }) => body),
      full.requests.map(({ body }: Json) => body),
      'which is what a real call sends',
    )
  },
)

t.test('a write that fails half-way says what is written and what is not', async (t) => {
  const bench = await startBench(t)
  const { pce, simulator } = bench
  const { set, version, rules } = await setUp(bench)
  await pce.ruleSets.update(set, { name: 'Ground floor' })
  await pce.put(rules[0]!, { includeOrg: false, json: { enabled: false } })
  simulator.faults.add({
    method: 'PUT',
    path: /sec_rules/,
    kind: 'status',
    status: 406,
    times: 1,
    body: [{ token: 'no', message: 'no' }],
  })
  const refused = await bench.fails(TOOL, { version, href: set }, 'pce_error')
  partial(t, refused, {
    partial: true,
    written: [{ method: 'PUT', href: set }],
    not_written: [{ method: 'PUT', path: rules[0] }],
  })
  partial(t, await bench.ok(TOOL, { version, href: set }), { verified: true })
})

t.test('names what it does not write, and then never says that all is as it was', async (t) => {
  const bench = await startBench(t)
  const { ok, pce } = bench
  const table = (parameters: string) => ({
    enabled: true,
    statements: [{ table_name: 'filter', chain_name: 'INPUT', parameters }],
    actors: [{ actors: 'ams' }],
    ip_version: '4',
  })
  const { set } = await setUp(bench)
  await pce.ruleSets.update(set, { ip_tables_rules: [table('-j DROP')], enabled: false })
  const { version } = await provision(bench)
  await pce.ruleSets.update(set, { ip_tables_rules: [table('-j ACCEPT')] })
  const same = await ok(TOOL, { version, href: set })
  const stay = 'Not put back by this tool: iptables rules, which differ from the version and stay as they are.'
  partial(t, same, {
    status: 'no_changes',
    message: /the rule set "Floor" differs, in what this tool does not write, from what version \d+ had; nothing/,
    warnings: [stay],
  })
  await pce.ruleSets.update(set, { name: 'Ground floor' })
  partial(t, await ok(TOOL, { version, href: set }), { verified: false, warnings: [stay] })

  await pce.delete(set, { includeOrg: false })
  await provision(bench)
  const again = await ok(TOOL, { version, href: set })
  t.equal(again.verified, false)
  t.equal(again.warnings.at(-1), 'Not put back by this tool: iptables rules, which are missing from the new rule set.')
  t.equal(((await pce.ruleSets.getByReference(again.href)) as Json).enabled, false)
})

t.test('empties a field with what a PCE takes for it, and names fields of rules that it does not know', async (t) => {
  const bench = await startBench(t)
  const { set, version, rules } = await setUp(bench)
  const given = { external_data_set: 'cmdb', external_data_reference: '7', description: 'x', log_flow: true }
  await bench.pce.put(rules[0]!, { includeOrg: false, json: given })
  const { requests } = await bench.ok(TOOL, { version, href: set, dry_run: true })
  const body = { external_data_set: null, external_data_reference: null, description: '', log_flow: false }
  t.same(requests, [{ method: 'PUT', path: rules[0], body }])
  await bench.ok(TOOL, { version, href: set })
  const stored = (await bench.pce.get(set, { includeOrg: false })).json<Json>()
  stored.rules[0].next_field = ['later release']
  bench.simulator.faults.add({
    method: 'GET',
    path: /draft.rule_sets.\d+$/,
    kind: 'status',
    status: 200,
    times: 1,
    body: stored,
  })
  partial(t, await bench.ok(TOOL, { version, href: set }), {
    status: 'no_changes',
    warnings: [
      `Not put back by this tool: next_field of the rule ${rules[0]}, which differ from the version and stay as they are.`,
    ],
  })
})

t.test('the same call completes what is half created again, by every name of it', async (t) => {
  const bench = await startBench(t)
  const { ok, pce, simulator } = bench
  const { set, version } = await setUp(bench)
  await pce.delete(set, { includeOrg: false })
  await provision(bench)
  const named = { version, name: 'Floor', kind: 'rule_sets' }
  const refusal = { method: 'POST', path: /sec_rules$/, kind: 'status', status: 406, times: 1 } as const
  simulator.faults.add({ ...refusal, body: [{ token: 'no', message: 'no' }] })
  const half = await bench.fails(TOOL, named, 'pce_error')
  const [again, deny] = half.written.map(({ href }: Json) => href)
  partial(t, half, { written: [{ method: 'POST' }, { method: 'POST', href: deny }] })
  t.ok(deny.startsWith(`${again}/deny_rules/`), 'deny rules are first')

  const posts = [1, 2].map(() => ({ method: 'POST', path: `${again}/sec_rules` }))
  for (const asked of [named, { version, href: set }, { version, href: again }]) {
    const dry = await ok(TOOL, { ...asked, dry_run: true })
    partial(t, dry, { href: again, requests: posts })
    t.equal(
      dry.warnings[0],
      `The rule set "Floor" was deleted since: what has its name now (${again}) is taken for it.`,
    )
  }
  partial(t, await ok(TOOL, named), { verified: true, href: again })
  partial(t, await ok(TOOL, { version, href: set }), { status: 'no_changes', href: again })
})

t.test('writes in the turns of others, and refuses what was changed before its own', async (t) => {
  const turns: string[] = []
  let edit = async () => {}
  const enter = async (object: string) => {
    turns.push(object.slice(object.indexOf(' ') + 1))
    await edit()
    edit = async () => {}
    return { others: [], leave: () => {} }
  }
  const bench = await startBench(t, { writeOrder: { begin: () => 0, enter } })
  const { pce } = bench
  const { set, version, rules } = await setUp(bench)
  const put = (port: number) => () =>
    pce.put(rules[0]!, { includeOrg: false, json: { ingress_services: [{ port, proto: 6 }] } }).then(() => {})
  await put(8443)()
  await pce.ruleSets.update(set, { name: 'Ground floor' })
  turns.length = 0
  bench.writes()
  edit = put(9443)
  const refused = await bench.fails(TOOL, { version, href: set }, 'already_exists')
  partial(t, refused, { reason: 'changed_meanwhile', href: rules[0], fields: ['ingress_services'] })
  t.same(turns, [rules[0], 'rule_sets Floor', 'rule_sets Ground floor'])
  t.equal(bench.writes().length, 1, 'the edit alone')
  partial(t, await bench.ok(TOOL, { version, href: set }), { verified: true })
})

t.test('refuses more references than it can look up', async (t) => {
  const bench = await startBench(t)
  const { set, version } = await setUp(bench)
  const past = set.replace('draft', String(version))
  const stored = (await bench.pce.get(past, { includeOrg: false })).json<Json>()
  stored.rules[0].ingress_services = Array.from({ length: 201 }, (_, at) => ({
    href: `/orgs/1/sec_policy/${version}/services/${at + 1000}`,
  }))
  const path = new RegExp(`${past.replace('/orgs/1', '')}$`)
  bench.simulator.faults.add({ method: 'GET', path, kind: 'status', status: 200, times: 2, body: stored })
  partial(t, await bench.fails(TOOL, { version, href: set }, 'invalid_argument'), { references: 201, most: 200 })
})

t.test('does not take for a deleted object what the version had under another name', async (t) => {
  const bench = await startBench(t)
  const { pce } = bench
  const { set } = await setUp(bench)
  const hall = await pce.ruleSets.create({ name: 'Hall', scopes: [[]] })
  const { version } = await provision(bench)
  await pce.delete(set, { includeOrg: false })
  await provision(bench)
  await pce.ruleSets.update(hall.href, { name: 'Floor' })
  await bench.fails(TOOL, { version, href: set }, 'already_exists')
})

t.test('a dry run shows the observed traffic that a restoration would cut', async (t) => {
  const estate = handMade({
    hosts: {
      web: { ip: '10.0.0.1', labels: 'app=shop env=prod', mode: 'full' },
      crm: { ip: '10.0.1.1', labels: 'app=crm env=prod' },
    },
    flows: [
      { from: 'crm', to: 'web', port: 443, connections: 30 },
      { from: '198.51.100.8', to: 'web', port: 8443, connections: 5 },
      { from: 'crm', to: 'web', port: 22, connections: 2 },
    ],
    ipLists: { Partners: ['203.0.113.0/24'] },
    services: { admin: { service_ports: [{ port: 2222, proto: 6 }] } },
    ruleSets: [
      {
        name: 'shop',
        scope: 'app=shop env=prod',
        allow: [
          { from: 'iplist:Partners', to: 'ams', services: [{ port: 8443, proto: 6 }], extra: true },
          { from: 'app=crm', to: 'ams', services: ['admin'], extra: true },
        ],
      },
    ],
  })
  const bench = await startBench(t, { estate })
  const { ok, pce, simulator } = bench
  const DRAFT = '/orgs/1/sec_policy/draft'
  await pce.ruleSets.update(`${DRAFT}/rule_sets/1`, { description: 'then' })
  await pce.ipLists.update(`${DRAFT}/ip_lists/2`, { description: 'then' })
  await pce.services.update(`${DRAFT}/services/2`, { description: 'then' })
  const { version } = await pce.provisionPolicyChanges('then', simulator.state.pendingHrefs())
  await ok('create-rule', {
    ruleset_name: 'shop',
    consumers: ['app=crm'],
    providers: ['ams'],
    services: [{ port: 443, proto: 'tcp' }],
    unscoped_consumers: true,
  })
  await pce.ipLists.update(`${DRAFT}/ip_lists/2`, { ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
  await pce.services.update(`${DRAFT}/services/2`, { service_ports: [{ port: 22, proto: 6 }] })
  await provision(bench)
  const cut = async (kind: string, name: string) => {
    const { observed, warnings } = await ok(TOOL, { version, kind, name, dry_run: true })
    return [observed?.connections?.cut, observed?.pairs_total, /^Of the traffic seen/.test(warnings?.[0])]
  }
  t.same(await cut('rule_sets', 'shop'), [30, 1, true])
  t.same(await cut('ip_lists', 'Partners'), [5, 1, true])
  t.same(await cut('services', 'admin'), [2, 1, true])
})
