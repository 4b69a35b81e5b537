/** create-ringfence on small estates whose right answer is typed out by hand. */
import t, { type Test } from 'tap'
import type { Fault } from '../../pce-simulator/http/inject-faults.js'
import { contains, partial } from '../partial.js'
import { lossesOf } from './losses.js'
import { ALL_SERVICES, AMS, ANY_LIST, handMade, type HandMadeEstate } from './hand-made.js'
import { AS_GUIDED, NOW, startBench, type Bench, type BenchOptions, type Json } from './harness.js'

const PAY = { app_name: 'pay', env_name: 'prod' }
const SETS = '/orgs/1/sec_policy/draft/rule_sets'
const ANY_NAME = 'Any (0.0.0.0/0 and ::/0)'

/** Everything awkward at once; all of it in visibility_only, where what no rule allows is potentially blocked. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'pay-2': { ip: '10.0.0.2', labels: 'app=pay env=prod' },
    'pay-test': { ip: '10.0.0.3', labels: 'app=pay env=test' },
    'payments-1': { ip: '10.0.0.4', labels: 'app=payments env=prod' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
    'half-app': { ip: '10.0.2.1', labels: 'app=lonely role=web' },
    'half-env': { ip: '10.0.2.2', labels: 'env=prod' },
    'bare-1': { ip: '10.0.2.3' },
    'printer-1': { ip: '10.0.2.4', managed: false },
    'old-crm': { ip: '10.0.2.5', labels: 'app=crm env=old', managed: false },
  },
  ipLists: { Office: ['192.168.10.0/24'], Campus: ['192.168.0.0/16'] },
  flows: [
    { from: 'pay-1', to: 'pay-2', port: 5432, connections: 100 },
    { from: 'crm-1', to: 'pay-1', port: 443, connections: 50 },
    { from: 'crm-1', to: 'pay-2', port: 8443, connections: 5 },
    { from: 'old-crm', to: 'pay-1', port: 443, connections: 4 },
    { from: 'pay-test', to: 'pay-1', port: 443, connections: 3 },
    { from: 'payments-1', to: 'pay-1', port: 443, connections: 2 },
    { from: 'half-app', to: 'pay-1', port: 22, connections: 7 },
    { from: 'half-env', to: 'pay-1', port: 22, connections: 6 },
    { from: 'bare-1', to: 'pay-1', port: 9100, connections: 9 },
    { from: 'printer-1', to: 'pay-1', port: 515, connections: 1 },
    { from: '192.168.10.7', to: 'pay-1', port: 443, connections: 20 },
    { from: '192.168.10.7', to: 'pay-2', port: 443, connections: 2 },
    { from: '192.168.10.7', to: 'pay-1', port: 22, connections: 10 },
    { from: '8.8.8.8', to: 'pay-1', port: 443, connections: 31 },
    { from: '2a00:1450::8', to: 'pay-1', port: 443, connections: 8 },
    { from: '172.16.5.5', to: 'pay-1', proto: 1, connections: 11 },
    { from: 'pay-1', to: 'crm-1', port: 443, connections: 12 },
    { from: 'pay-1', to: '9.9.9.9', port: 53, proto: 17, connections: 13 },
    // Of no concern.
    { from: 'crm-1', to: 'payments-1', port: 443, connections: 500 },
    { from: 'bare-1', to: 'pay-test', port: 22, connections: 500 },
  ],
}

/** Two hosts in selective mode, a neighbour that a rule lets in, one that only no rule denies, and an address. */
const SELECTIVE: HandMadeEstate = {
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'selective' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod', mode: 'selective' },
    'erp-1': { ip: '10.0.1.2', labels: 'app=erp env=prod', mode: 'selective' },
  },
  flows: [
    { from: 'crm-1', to: 'pay-1', port: 443, connections: 5 },
    { from: 'erp-1', to: 'pay-1', port: 22, connections: 6 },
    { from: '8.8.8.8', to: 'pay-1', port: 443, connections: 7 },
  ],
  ruleSets: [
    { name: 'pay clients', scope: 'app=pay env=prod', allow: [{ from: 'app=crm env=prod', to: 'ams', extra: true }] },
  ],
}

const start = (t: Test, estate: HandMadeEstate, options: BenchOptions = {}) =>
  startBench(t, { estate: handMade(estate), ...options })
const names = (rows: Json[]) => rows.map(({ app, env }) => `${app}|${env}`)
/** What was posted below which collection, in order. */
const posts = (bench: Bench) =>
  bench.writes().map(({ method, path }) => `${method} ${path.slice(path.lastIndexOf('/') + 1)}`)
const draft = async ({ pce }: Bench, name = 'RF-pay-prod'): Promise<Json> => {
  const ruleSet = (await pce.ruleSets.getAll()).find((one) => one.name === name)
  return ruleSet === undefined ? null : { ...ruleSet, deny_rules: await pce.denyRules.getAll('draft', ruleSet.href) }
}

t.test('the plan says who is allowed, who would be cut, and what would be written', async (t) => {
  const bench = await start(t, ESTATE)
  bench.writes()
  const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.same(bench.writes(), [], 'a dry run writes nothing')

  partial(t, plan, {
    message: 'Would create the rule set "RF-pay-prod" with 5 rules in draft, made for full enforcement.',
    dry_run: true,
    app: 'pay',
    env: 'prod',
    app_label_href: '/orgs/1/labels/1',
    env_label_href: '/orgs/1/labels/2',
    lookback_days: 30,
    selective: false,
    merged: false,
    has_deny_all_inbound: false,
    workloads: { total: 2, managed: 2, enforcement_modes: { visibility_only: 2 } },
    flows_analysed: { inbound: 16, outbound: 3 },
    discovery_truncated: [],
    flows_truncated: false,
    policy_coverage: { already_allowed: 0, newly_allowed: 4, total_remote_apps: 4, allowed_by_default_possible: 0 },
  })
  t.notOk('deny_consumer' in plan || 'enforcement_mode' in plan)
  t.same(names(plan.inbound_remote_apps), ['crm|old', 'crm|prod', 'pay|test', 'payments|prod'])
  t.same(plan.inbound_remote_apps[1], {
    app: 'crm',
    env: 'prod',
    connections: 55,
    coverage: 'newly_allowed',
    rule: 'new',
    ports_total: 2,
    observed_ports: [
      { port: 443, proto: 6, connections: 50, policy_decision: 'potentially_blocked', effect: 'allowed' },
      { port: 8443, proto: 6, connections: 5, policy_decision: 'potentially_blocked', effect: 'allowed' },
    ],
  })
  t.same(names(plan.outbound_remote_apps), ['crm|prod'])

  const cut = (kind: string, source: string, connections: number, ...ports: string[]) => ({
    kind,
    source,
    effect: 'cut',
    connections,
    ports,
  })
  t.same(lossesOf(plan), [
    cut('ip_list', '192.168.10.7', 32, '443/tcp', '22/tcp'),
    cut('internet', '8.8.8.8', 31, '443/tcp'),
    cut('unknown_ip', '172.16.5.5', 11, 'icmp'),
    cut('unlabelled_workload', 'bare-1', 9, '9100/tcp'),
    cut('internet', '2a00:1450::8', 8, '443/tcp'),
    cut('half_labelled', 'half-app', 7, '22/tcp'),
    cut('half_labelled', 'half-env', 6, '22/tcp'),
    cut('unlabelled_workload', 'printer-1', 1, '515/tcp'),
  ])
  const other = (ip: string) => plan.unlabelled_inbound.find((one: Json) => one.ip === ip)
  partial(t, other('192.168.10.7'), { ip_lists: ['Campus', 'Office'], ports_total: 2, connections: 32 })
  t.notOk('managed' in other('8.8.8.8'))
  partial(t, other('10.0.2.1'), { hostname: 'half-app', labels: { app: 'lonely', role: 'web' }, managed: true })
  partial(t, other('10.0.2.4'), { hostname: 'printer-1', managed: false })
  t.notOk('section_totals' in plan, 'a list that is shown whole tells its length')

  t.match(plan.warnings[0], /^8 sources \(105 connections in the window\) would be cut once the workloads are in full/)
  for (const kind of ['1 ip_list', '2 internet', '1 unknown_ip', '2 unlabelled_workload', '2 half_labelled'])
    contains(t, plan.warnings[0], kind)
  contains(t, plan.warnings[1], 'None of 2 managed workloads enforces this yet')
  t.match(plan.warnings.join('\n'), /no outbound rules: .* \(25 connections/)

  const label = (id: number) => ({ label: { href: `/orgs/1/labels/${id}` } })
  const allow = { enabled: true, providers: [AMS], ingress_services: [ALL_SERVICES] }
  t.notOk('requests' in plan, 'the standard answer says the rules in words alone')
  bench.writes()
  const { requests, ...full } = await bench.ok('create-ringfence', { ...PAY, dry_run: true, detail_level: 'full' })
  t.notOk('planned_rules' in full, 'and the full one has each rule once, with its request')
  t.equal(requests[0].path, SETS)
  t.notOk('rule' in requests[0])
  t.same(requests[0].body, {
    name: 'RF-pay-prod',
    description: 'Ringfence for pay (prod)',
    scopes: [[label(1), label(2)]],
  })
  t.equal(requests[1].path, `${SETS}/{id of RF-pay-prod}/sec_rules`)
  partial(t, requests[1].body, { ...allow, consumers: [AMS], unscoped_consumers: false })
  // crm (old), crm (prod), pay (test), payments (prod), each by exactly two labels.
  const hrefs = new Map((await bench.pce.labels.getAll()).map(({ href, key, value }) => [`${key}=${value}`, href]))
  for (const [at, wanted] of [
    'app=crm env=old',
    'app=crm env=prod',
    'app=pay env=test',
    'app=payments env=prod',
  ].entries()) {
    const { body } = requests[at + 2]
    partial(t, body, {
      ...allow,
      unscoped_consumers: true,
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    })
    t.same(
      body.consumers,
      wanted.split(' ').map((text) => ({ label: { href: hrefs.get(text) } })),
      wanted,
    )
  }
  t.same(
    plan.planned_rules.map(({ type }: Json) => type),
    ['intra-scope', ...Array(4).fill('extra-scope allow (inbound)')],
  )
  t.same(
    requests.slice(1).map(({ rule }: Json) => rule),
    plan.planned_rules,
    'which says it in the same words',
  )
  t.same(bench.writes(), [])
})

t.test(
  'a real call says what stands, who is cut or let in, and what writing came upon, but not the plan',
  async (t) => {
    const bench = await start(t, ESTATE)
    const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })
    const done = await bench.ok('create-ringfence', { ...PAY, selective: true })
    const stored = await draft(bench)
    const { href } = stored
    const rule = (id: number, app: string, env: string) => ({
      type: 'extra-scope allow (inbound)',
      app,
      env,
      href: `${href}/sec_rules/${id}`,
    })
    const [inside, ...outside] = stored.rules.map((one: Json) => Number(one.href.split('/').at(-1)))
    const { description: _words, ...counts } = plan.policy_coverage
    t.same(done, {
      message:
        'Created the rule set "RF-pay-prod" with 6 rules in draft, made for selective enforcement. It takes effect when provisioned.',
      warnings: [],
      warnings_of_plan: plan.warnings.length,
      left_out: 'The plan and its warnings: dry_run or detail_level full shows them.',
      app: 'pay',
      env: 'prod',
      selective: true,
      deny_consumer: 'any',
      enforcement_mode: 'selective',
      has_deny_all_inbound: false,
      merged: false,
      workloads: plan.workloads,
      flows_analysed: plan.flows_analysed,
      discovery_truncated: [],
      policy_coverage: counts,
      ruleset: {
        href,
        name: 'RF-pay-prod',
        rules: [
          { type: 'intra-scope', href: `${href}/sec_rules/${inside}` },
          rule(outside[0], 'crm', 'old'),
          rule(outside[1], 'crm', 'prod'),
          rule(outside[2], 'pay', 'test'),
          rule(outside[3], 'payments', 'prod'),
          { type: 'deny (block all inbound)', href: stored.deny_rules[0].href },
        ],
      },
      window: plan.window,
      flows_truncated: false,
      analysed: plan.analysed,
      would_be_cut: plan.would_be_cut,
      skipped_existing_rules: [],
      ...(plan.assumes !== undefined && { assumes: plan.assumes }),
      ...(plan.recorded_otherwise !== undefined && { recorded_otherwise: plan.recorded_otherwise }),
    })
    t.ok(plan.warnings.length > 0)
    // Whoever wants it has the plan beside the result.
    const again = await bench.ok('create-ringfence', { ...PAY, selective: true, detail_level: 'full' })
    t.notOk('warnings_of_plan' in again || 'left_out' in again)
    for (const list of ['inbound_remote_apps', 'outbound_remote_apps', 'unlabelled_inbound', 'infrastructure_sources'])
      t.same(again[list].length, plan[list].length, list)
  },
)

t.test('a selective ringfence denies last, and the plan counts what the deny rule reaches', async (t) => {
  const cases: [object, string[], RegExp][] = [
    [
      {},
      [
        'ip_list',
        'internet',
        'unknown_ip',
        'unlabelled_workload',
        'internet',
        'half_labelled',
        'half_labelled',
        'unlabelled_workload',
      ],
      /^8 sources/,
    ],
    // All workloads, managed or not, and no address.
    [
      { deny_consumer: 'ams' },
      ['unlabelled_workload', 'half_labelled', 'half_labelled', 'unlabelled_workload'],
      /^4 sources/,
    ],
    [
      { deny_service: { port: 22, proto: 'tcp' } },
      ['ip_list', 'half_labelled', 'half_labelled'],
      /^3 sources \(23 connections/,
    ],
    [
      { deny_service: [{ port: 500, to_port: 600, proto: 'tcp' }] },
      ['unlabelled_workload'],
      /^1 source \(1 connection /,
    ],
  ]
  for (const [options, kinds, warning] of cases) {
    await t.test(JSON.stringify(options), async (t) => {
      const bench = await start(t, ESTATE)
      bench.writes()
      const done = await bench.ok('create-ringfence', { ...PAY, selective: true, detail_level: 'full', ...options })
      t.same(posts(bench), ['POST rule_sets', ...Array(5).fill('POST sec_rules'), 'POST deny_rules'])
      t.same(
        lossesOf(done).map(({ kind }) => kind),
        kinds,
      )
      partial(t, done.warnings[0], warning)
      partial(t, done, { merged: false, enforcement_mode: 'selective', has_deny_all_inbound: false })
      t.equal(done.ruleset.rules.at(-1).type, 'deny (block all inbound)')
      const stored = await draft(bench)
      t.equal(stored.rules.length, 5)
      partial(t, stored.deny_rules, [{ enabled: true, providers: [AMS], unscoped_consumers: true, override: false }])
      t.same(
        done.ruleset.rules.map(({ href }: Json) => href).sort(),
        [...stored.rules, ...stored.deny_rules].map(({ href }: Json) => href).sort(),
      )
    })
  }
})

t.test('the deny rule has the requested consumers and services', async (t) => {
  const bench = await start(t, ESTATE)
  const cases: [object, Json[], string, Json[], string][] = [
    [{}, [ANY_LIST], ANY_NAME, [ALL_SERVICES], 'All Services'],
    [{ deny_consumer: 'ams' }, [AMS], 'All workloads', [ALL_SERVICES], 'All Services'],
    [{ deny_consumer: 'ams_and_any' }, [AMS, ANY_LIST], `All workloads, ${ANY_NAME}`, [ALL_SERVICES], 'All Services'],
    [{ deny_service: 'All Services' }, [ANY_LIST], ANY_NAME, [ALL_SERVICES], 'All Services'],
    [
      { deny_service: { href: '/orgs/1/sec_policy/active/services/1' } },
      [ANY_LIST],
      ANY_NAME,
      [ALL_SERVICES],
      'All Services',
    ],
    [
      {
        deny_service: [
          { port: 22, proto: 'tcp' },
          { port: 5000, to_port: 5010, proto: 17 },
        ],
      },
      [ANY_LIST],
      ANY_NAME,
      [
        { port: 22, proto: 6 },
        { port: 5000, to_port: 5010, proto: 17 },
      ],
      '22/tcp, 5000-5010/udp',
    ],
  ]
  for (const [options, consumers, who, services, what] of cases) {
    const asked = { ...PAY, selective: true, dry_run: true, ...options }
    const plan = await bench.ok('create-ringfence', asked)
    const { path, body } = (await bench.ok('create-ringfence', { ...asked, detail_level: 'full' })).requests.at(-1)
    t.equal(path, `${SETS}/{id of RF-pay-prod}/deny_rules`)
    t.same(body.consumers, consumers)
    t.same(body.ingress_services, services)
    partial(t, body, { override: false, unscoped_consumers: true, enabled: true })
    t.notOk('resolve_labels_as' in body)
    partial(t, plan.planned_rules.at(-1), { consumers: who, providers: 'All workloads', services: what })
    t.equal(plan.deny_consumer, (options as Json).deny_consumer ?? 'any')
    t.equal(plan.planned_rules.at(-1).deny_consumer_mode, plan.deny_consumer)
    t.equal(plan.planned_rules.at(-1).ingress_services_resolved.length, services.length)
  }
})

t.test('refuses invalid deny services before anything is written', async (t) => {
  const bench = await start(t, ESTATE)
  await bench.pce.services.create({ name: 'HTTP', service_ports: [{ port: 80, proto: 6 }] })
  await bench.pce.services.create({ name: 'W', windows_services: [{ process_name: 'c:\\x.exe', port: 80, proto: 6 }] })
  bench.writes()
  const cases: [unknown, RegExp][] = [
    ['HTT', /named exactly/],
    [{ service: 'http' }, /named exactly/],
    [{ port: 22 }, /proto/],
    [{ port: 22, proto: 'tcp', service: 'HTTP' }, /exactly one/],
    [{ port: 0, proto: 'tcp' }, /All Services/],
    [{ port: 70_000, proto: 'tcp' }, /65535/],
    [{ port: 90, to_port: 80, proto: 'tcp' }, /below/],
    [[], /at least one/],
    ['W', /processes/],
  ]
  for (const [service, message] of cases) {
    for (const dryRun of [true, false]) {
      const error = await bench.fails(
        'create-ringfence',
        { ...PAY, selective: true, deny_service: service, dry_run: dryRun },
        'invalid_deny_service',
      )
      partial(t, error.message, message, JSON.stringify(service))
    }
  }
  t.same(bench.writes(), [])
  const ignored = await bench.ok('create-ringfence', { ...PAY, deny_service: 'HTT', dry_run: true })
  t.equal(ignored.deny_service_ignored, true)
  t.equal(ignored.planned_rules.length, 5)
})

t.test('without an Any list the deny rule falls back to ams and says so', async (t) => {
  for (const asked of ['any', 'ams_and_any']) {
    const bench = await start(t, ESTATE)
    bench.simulator.faults.add({
      kind: 'status',
      path: '/orgs/1/sec_policy/draft/ip_lists',
      times: 10,
      status: 200,
      body: [],
    })
    const args = { ...PAY, selective: true, deny_consumer: asked, dry_run: true, detail_level: 'full' }
    const plan = await bench.ok('create-ringfence', args)
    t.equal(plan.deny_consumer, 'ams')
    t.match(plan.warnings.join('\n'), /no Any IP list, so the deny rule falls back to ams.*4 sources seen/)
    t.same(plan.requests.at(-1).body.consumers, [AMS])
    t.equal(lossesOf(plan).length, 4)
  }
  const bench = await start(t, ESTATE)
  const old = {
    href: '/orgs/1/sec_policy/draft/ip_lists/77',
    name: 'Any (0.0.0.0/0)',
    ip_ranges: [{ from_ip: '0.0.0.0/0' }],
  }
  const near = { ...old, href: '/orgs/1/sec_policy/draft/ip_lists/78', name: 'Any (0.0.0.0/0) but ours' }
  bench.simulator.faults.add({ kind: 'status', path: /ip_lists$/, times: 1, status: 200, body: [near, old] })
  bench.simulator.faults.add({ kind: 'status', path: /ip_lists\/77$/, times: 1, status: 200, body: old })
  const args = { ...PAY, selective: true, dry_run: true, detail_level: 'full' }
  const plan = await bench.ok('create-ringfence', args)
  t.same(plan.requests.at(-1).body.consumers, [{ ip_list: { href: old.href } }])
  t.match(plan.warnings.join('\n'), /has no IPv6 range/)
  t.notOk(
    lossesOf(plan).some(({ source }) => source === '2a00:1450::8'),
    'which is not cut',
  )
  t.ok(lossesOf(plan).some(({ source }) => source === '8.8.8.8'))
})

t.test('in a selective estate what no rule allows is not allowed already, whatever the PCE recorded', async (t) => {
  const bench = await start(t, SELECTIVE, AS_GUIDED)
  const plan = await bench.ok('create-ringfence', { ...PAY, selective: true, skip_allowed: true, dry_run: true })
  t.same(
    plan.inbound_remote_apps.map((one: Json) => [one.app, one.coverage, one.rule, one.allowed_by_default_possible]),
    [
      ['crm', 'already_allowed', 'none', undefined],
      ['erp', 'newly_allowed', 'new', true],
    ],
  )
  t.same(names(plan.skipped_already_allowed), ['crm|prod'])
  t.same(plan.policy_coverage.allowed_by_default_possible, 1)
  t.same(plan.recorded_otherwise, { allowed_without_rule: 13, stopped_despite_rule: 0 })
  t.same(
    lossesOf(plan).map(({ source, effect }) => [source, effect]),
    [['8.8.8.8', 'cut']],
    'the skipped application has a rule, and the one without gets its own',
  )
  t.equal(plan.inbound_remote_apps[0].observed_ports[0].effect, 'allowed_by_other_rules')
  t.match(plan.warnings.join('\n'), /1 of 1 managed workload are already in selective mode/)

  // Without draft decisions the rules themselves tell the two apart.
  bench.simulator.faults.add({ kind: 'status', path: /update_rules$/, times: 1, status: 403 })
  const blind = await bench.ok('create-ringfence', { ...PAY, selective: true, skip_allowed: true, dry_run: true })
  t.same(
    lossesOf(blind).map(({ source, effect }) => [source, effect]),
    [['8.8.8.8', 'cut']],
  )
  t.match(blind.warnings.join('\n'), /gave no draft decisions/)

  const all = await bench.ok('create-ringfence', { ...PAY, selective: true, dry_run: true })
  t.same(
    lossesOf(all).map(({ source }) => source),
    ['8.8.8.8'],
    'without skip_allowed both get their rule',
  )
})

t.test('repeating the call writes nothing', async (t) => {
  for (const options of [
    {},
    { selective: true },
    { selective: true, deny_service: { port: 22, proto: 'tcp' }, deny_consumer: 'ams_and_any' },
  ]) {
    const bench = await start(t, ESTATE)
    const first = await bench.ok('create-ringfence', { ...PAY, ...options })
    bench.writes()
    for (const dryRun of [false, true]) {
      const again = await bench.ok('create-ringfence', { ...PAY, ...options, dry_run: dryRun })
      t.same(bench.writes(), [])
      partial(t, again, {
        merged: true,
        message: /already has all its rules; nothing to write/,
        ruleset: { href: first.ruleset.href },
      })
      t.same(dryRun ? again.planned_rules : again.ruleset.rules, [])
      t.equal(again.skipped_existing_rules.length, first.ruleset.rules.length)
      t.same(again.would_be_cut, first.would_be_cut, 'who is cut has not changed')
      t.equal(again.has_deny_all_inbound, 'selective' in options && !('deny_service' in options))
    }
  }
})

t.test('keeps existing rules, adds missing ones, and reports those that do not count', async (t) => {
  const ssh = [{ port: 22, proto: 6 }]
  const bench = await start(t, {
    ...ESTATE,
    ruleSets: [
      {
        name: 'RF-pay-prod',
        scope: 'env=prod app=pay',
        allow: [
          { from: 'ams', to: 'ams', services: ssh },
          { from: 'app=crm env=prod', to: 'ams', extra: true },
          { from: 'app=crm env=old', to: 'ams', extra: true, enabled: false },
          { from: 'app=payments env=prod role=web', to: 'ams', extra: true },
          { from: 'app=pay env=test', to: 'ams' },
        ],
        deny: [
          { from: 'any', to: 'ams', extra: true, services: ssh },
          { from: 'any', to: 'ams', extra: true, enabled: false },
        ],
      },
      { name: 'RF-pay-prod-2', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams' }] },
    ],
  })
  bench.writes()
  const done = await bench.ok('create-ringfence', { ...PAY, selective: true, detail_level: 'full' })
  t.same(posts(bench), [...Array(4).fill('POST sec_rules'), 'POST deny_rules'])
  partial(t, done, {
    merged: true,
    message:
      'Added 5 rules to the rule set "RF-pay-prod" in draft, made for selective enforcement. It takes effect when provisioned.',
  })
  t.same(
    done.skipped_existing_rules.map(({ type, app }: Json) => [type, app]),
    [['extra-scope allow (inbound)', 'crm']],
  )
  t.same(names(done.ruleset.rules.filter(({ app }: Json) => app)), ['crm|old', 'pay|test', 'payments|prod'])
  const said = done.warnings.join('\n')
  t.match(said, /covers some services only: .*sec_rules\/1\./)
  t.match(said, /it is disabled: .*sec_rules\/3\./)
  t.match(said, /further labels narrow its consumers: .*sec_rules\/4\./)
  bench.writes()
  await bench.ok('create-ringfence', { ...PAY, selective: true })
  t.same(bench.writes(), [], 'and then it is complete')
  t.equal((await draft(bench, 'RF-pay-prod-2')).rules.length, 1, 'a name that only begins alike is another rule set')
})

t.test('an existing wider rule is enough, and a wider deny rule counts', async (t) => {
  const bench = await start(t, {
    ...ESTATE,
    ruleSets: [
      {
        name: 'RF-pay-prod',
        scope: 'app=pay env=prod',
        allow: [
          { from: 'ams', to: 'ams' },
          { from: 'app=crm app=payments env=prod env=old', to: 'ams', extra: true },
        ],
        deny: [{ from: 'any', to: 'ams', extra: true }],
      },
    ],
  })
  const plan = await bench.ok('create-ringfence', {
    ...PAY,
    selective: true,
    deny_service: { port: 22, proto: 'tcp' },
    dry_run: true,
    detail_level: 'full',
  })
  t.same(
    plan.requests.map(({ body }: Json) => body.description),
    ['Inbound from pay (test)'],
  )
  t.equal(plan.has_deny_all_inbound, true)
  t.match(plan.warnings.join('\n'), /already covers all services, which is more than deny_service asks for/)
  t.equal(lossesOf(plan).length, 8, 'so more than ssh is cut')
})

t.test('reports override denies and unusual deny rules in the rule set', async (t) => {
  const bench = await start(t, {
    ...ESTATE,
    ruleSets: [
      {
        name: 'RF-pay-prod',
        scope: 'app=pay env=prod',
        deny: [{ from: 'app=crm', to: 'ams', extra: true }],
        override: [{ from: 'any', to: 'ams', extra: true, services: [{ port: 443, proto: 6 }] }],
      },
    ],
  })
  const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.match(plan.warnings.join('\n'), /override deny rules, which beat all its allow rules: \S+deny_rules\/2\.$/m)
  t.match(plan.warnings.join('\n'), /other deny rules, which are taken into account: \S+deny_rules\/1\.$/m)
  partial(
    t,
    plan.would_be_cut.find(({ source }: Json) => source === 'crm (prod)'),
    { effect: 'blocked_by_override_deny', ports: ['443/tcp'], connections: 50 },
  )
})

t.test('refuses a name that belongs to something else, and writes nothing', async (t) => {
  const cases: [object, string][] = [
    [{ scope: 'app=pay' }, 'other_scope'],
    [{ scope: 'app=pay env=test' }, 'other_scope'],
    [{ scope: 'app=pay env=prod role=web' }, 'other_scope'],
    [{ scope: '' }, 'other_scope'],
  ]
  for (const [ruleSet, reason] of cases) {
    const bench = await start(t, { ...ESTATE, ruleSets: [{ name: 'RF-pay-prod', scope: '', ...ruleSet }] })
    bench.writes()
    for (const dryRun of [true, false]) {
      const error = await bench.fails('create-ringfence', { ...PAY, dry_run: dryRun }, 'already_exists')
      partial(t, error, { existing_ruleset: { href: `${SETS}/1`, name: 'RF-pay-prod' }, reason })
    }
    t.same(bench.writes(), [])
    t.ok(await bench.ok('create-ringfence', { ...PAY, ruleset_name: 'RF-pay-prod-2' }), 'another name is free')
  }
  const bench = await start(t, { ...ESTATE, ruleSets: [{ name: 'RF-pay-prod', scope: 'app=pay env=prod' }] })
  await bench.ok('update-ruleset', { name: 'RF-pay-prod', enabled: false })
  partial(t, await bench.fails('create-ringfence', PAY, 'already_exists'), { reason: 'disabled' })
  await bench.ok('delete-ruleset', { name: 'RF-pay-prod' })
  partial(t, await bench.fails('create-ringfence', PAY, 'already_exists'), { reason: 'pending_deletion' })
})

t.test('an application is exactly its two labels', async (t) => {
  const bench = await start(t, { ...ESTATE, labels: ['app=ghost'] })
  bench.writes()
  for (const [args, argument] of [
    [{ app_name: 'pa', env_name: 'prod' }, 'app_name'],
    [{ app_name: 'Pay', env_name: 'prod' }, 'app_name'],
    [{ app_name: 'pay', env_name: 'pro' }, 'env_name'],
    [{ app_name: 'env=prod', env_name: 'prod' }, 'app_name'],
    [{ app_name: '/orgs/1/labels/2', env_name: 'prod' }, 'app_name'],
  ] as const)
    partial(t, await bench.fails('create-ringfence', args, 'not_found'), { argument })
  const byHref = await bench.ok('create-ringfence', {
    app_name: '/orgs/1/labels/1',
    env_name: 'env=prod',
    dry_run: true,
  })
  partial(t, byHref, { app: 'pay', env: 'prod' })

  await bench.fails('create-ringfence', { app_name: 'ghost', env_name: 'prod' }, 'no_workloads')
  t.same(bench.writes(), [])
  const plan = await bench.ok('create-ringfence', { app_name: 'ghost', env_name: 'prod', dry_run: true })
  t.match(plan.warnings[0], /^no_workloads: .*"app=ghost" and "env=prod"/)
  partial(t, plan, {
    workloads: { total: 0 },
    inbound_remote_apps: [],
    would_be_cut: [],
    planned_rules: [{ type: 'intra-scope' }],
  })
})

t.test("what is dropped today stays cut, unless someone else's pending rule would open it", async (t) => {
  const bench = await start(t, {
    hosts: {
      'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
      'bare-1': { ip: '10.0.2.3', labels: 'role=web' },
    },
    flows: [
      { from: 'bare-1', to: 'pay-1', port: 22, connections: 2 },
      { from: 'bare-1', to: 'pay-1', port: 80 },
    ],
  })
  const ssh = { providers: ['app=pay'], consumers: ['role=web'], ingress_services: [{ port: 22, proto: 'tcp' }] }
  await bench.ok('create-ruleset', { name: 'pending', scopes: [], rules: [ssh] })
  const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.same(plan.unlabelled_inbound[0].observed_ports, [
    {
      port: 22,
      proto: 6,
      connections: 2,
      policy_decision: 'blocked',
      effect: 'possibly_cut',
      depends_on: 'changes that are not provisioned',
    },
    { port: 80, proto: 6, connections: 1, policy_decision: 'blocked', effect: 'cut' },
  ])
  const bare = { kind: 'unlabelled_workload', source: 'bare-1', sources: 1 }
  t.same(plan.would_be_cut, [
    { effect: 'cut', ...bare, connections: 1, ports: ['80/tcp'] },
    {
      effect: 'possibly_cut',
      ...bare,
      connections: 2,
      ports: ['22/tcp'],
      depends_on: 'changes that are not provisioned',
    },
  ])
  contains(t, plan.warnings[1], '1 of 1 managed workload are already in full enforcement')
})

t.test('names infrastructure services among the sources', async (t) => {
  const apps = ['a', 'b', 'c', 'd', 'e']
  const bench = await start(t, {
    hosts: {
      ...Object.fromEntries(apps.map((app, at) => [app, { ip: `10.1.0.${at + 1}`, labels: `app=${app} env=prod` }])),
      mon: { ip: '10.1.1.1', labels: 'app=mon env=prod', mode: 'visibility_only' },
    },
    flows: [
      ...apps.map((app) => ({ from: 'mon', to: app, port: 9100, connections: 100 })),
      { from: 'b', to: 'a', port: 443 },
    ],
  })
  const plan = await bench.ok('create-ringfence', { app_name: 'a', env_name: 'prod', dry_run: true })
  partial(t, plan.infrastructure_sources, [
    { app: 'mon', env: 'prod', tier: 'Core Infrastructure', rule: 'new', loses_traffic: false },
  ])
  t.equal(plan.infrastructure_sources.length, 1)
  t.match(
    plan.warnings.join('\n'),
    /1 infrastructure service among the sources \(infrastructure_sources\) would stay allowed; check their rules first/,
  )
  // The estate cannot be read: that is said, and the plan stands.
  bench.simulator.faults.add({
    kind: 'job-failed',
    path: '/orgs/1/traffic_flows/async_queries',
    method: 'POST',
    skip: 2,
    times: 1,
  })
  const blind = await bench.ok('create-ringfence', { app_name: 'a', env_name: 'prod', dry_run: true })
  t.same(blind.infrastructure_sources, [])
  t.match(blind.warnings.join('\n'), /The estate could not be ranked/)
  t.same(blind.planned_rules, plan.planned_rules)
})

const STRIKES: (Partial<Fault> & Pick<Fault, 'kind'>)[] = [
  { kind: 'status', status: 406, body: [{ token: 'odd_token', message: 'no' }] },
  { kind: 'status', status: 503 },
  { kind: 'reset' },
  { kind: 'commit-then-drop' },
  { kind: 'truncate' },
]

t.test('a failure partway reports exactly what exists, cuts no traffic, and the next call completes it', async (t) => {
  // The rule set, the rule inside, three for crm (prod), crm (old), …: 7 writes, of which the last denies.
  for (const strike of STRIKES)
    for (const place of [0, 3, 6])
      await t.test(`write ${place + 1}: ${strike.kind} ${strike.status ?? ''}`, async (t) => {
        const bench = await start(t, ESTATE)
        bench.writes()
        bench.simulator.faults.add({ ...strike, path: SETS, method: 'POST', skip: place, times: 10 })
        const code = strike.status === 406 ? 'pce_error' : 'outcome_unknown'
        const error = await bench.fails('create-ringfence', { ...PAY, selective: true }, code)
        bench.simulator.faults.clear()
        // A rule set whose answer cannot be read is found by its name, a rule has none: the next write fails.
        const failed = place === 0 && strike.kind === 'truncate' ? 1 : place
        t.equal(bench.writes().length, failed + 1, 'nothing is written after the failure, and nothing twice')
        const stored = await draft(bench)
        const stands =
          stored === null ? [] : [stored, ...stored.rules, ...stored.deny_rules].map(({ href }: Json) => href)
        const named = (list: Json[] = []) => list.map(({ href }) => href)
        const happened = ['commit-then-drop', 'truncate'].includes(strike.kind) ? 1 : 0
        t.equal(stands.length, failed + happened)
        t.equal(error.partial, failed > 0 ? true : undefined)
        t.equal(named(error.written).length, failed)
        t.ok(named(error.written).every((href) => stands.includes(href)))
        if ('stands' in error) {
          t.same(named(error.stands).sort(), stands.sort())
          t.equal(error.not_written, 7 - stands.length)
        } else
          partial(
            t,
            { place, code },
            { place: 0, code: 'pce_error' },
            'a plain refusal of the first write needs no look',
          )
        if (place < 6) t.same(stored?.deny_rules ?? [], [], 'nothing denies before everything is allowed')
        t.notOk(error.rolled_back)

        const again = await bench.ok('create-ringfence', { ...PAY, selective: true })
        t.equal(bench.writes().length, 7 - stands.length, 'the next call writes what is missing')
        t.equal(again.merged, stands.length > 0)
        const complete = await draft(bench)
        t.same([complete.rules.length, complete.deny_rules.length], [5, 1])
      })
})

t.test('a stopping server starts no further write and reports what exists', async (t) => {
  let stop = (): void => undefined
  const now = () => {
    stop()
    return NOW
  }
  const bench = await start(t, ESTATE, { now })
  const isWrite = ({ method, path }: { method: string; path: string }) =>
    method === 'POST' && path.includes('/rule_sets')
  stop = () => {
    if (bench.simulator.requests.filter(isWrite).length === 3) bench.stop()
  }
  const error = await bench.fails('create-ringfence', { ...PAY, selective: true }, 'cancelled')
  stop = () => undefined
  t.equal(bench.simulator.requests.filter(isWrite).length, 3)
  partial(t, error, { partial: true, written: { length: 3 }, not_written: 4 })
  const stored = await draft(bench)
  t.same(error.stands, error.written)
  t.same([stored.rules.length, stored.deny_rules.length], [2, 0])
})

t.test('never treats unreadable as absent', async (t) => {
  const bench = await start(t, { ...ESTATE, ruleSets: [{ name: 'RF-pay-prod', scope: 'app=pay env=prod' }] })
  bench.writes()
  for (const path of [/\/rule_sets$/, /\/services$/, /\/ip_lists$/, /\/workloads$/, /\/labels$/]) {
    bench.simulator.faults.add({ kind: 'status', path, method: 'GET', times: 10, status: 403 })
    await bench.fails('create-ringfence', { ...PAY, selective: true }, 'pce_error')
    bench.simulator.faults.clear()
    bench.advance(61_000)
  }
  bench.simulator.faults.add({
    kind: 'job-failed',
    path: '/orgs/1/traffic_flows/async_queries',
    method: 'POST',
    times: 1,
  })
  await bench.fails('create-ringfence', PAY, 'traffic_query_failed')
  t.same(bench.writes(), [])
})

t.test('failing to read back after the write is a warning', async (t) => {
  const bench = await start(t, ESTATE)
  bench.simulator.faults.add({ kind: 'status', path: /\/rule_sets\/\d+$/, method: 'GET', times: 10, status: 403 })
  const done = await bench.ok('create-ringfence', PAY)
  t.match(done.warnings.at(-1), /could not be read back/)
  t.equal(done.ruleset.rules.length, 5)
})

t.test('says when discovery reached its limit', async (t) => {
  const bench = await start(t, ESTATE)
  const { pce } = bench
  const stream = pce.streamTrafficFlows.bind(pce)
  // 200,000 rows are too many for a test: the client is told that there were as many.
  pce.streamTrafficFlows = async (name, query, options) => {
    const outcome = await stream(name, query, options)
    return name === 'mcp-ringfence-inbound' ? { ...outcome, flows: 200_000 } : outcome
  }
  const plan = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  partial(t, plan, {
    discovery_truncated: ['inbound'],
    flows_truncated: true,
    discovery_warning: /no rule and are not listed/,
  })
})

t.test('cuts and counts lists that do not fit', async (t) => {
  const hosts = Object.fromEntries(
    Array.from({ length: 150 }, (_, at) => [
      `h-${at}`,
      { ip: `10.3.0.${at + 1}`, labels: `app=app-${String(at).padStart(3, '0')} env=prod` },
    ]),
  )
  const estate = {
    hosts: { ...ESTATE.hosts, ...hosts },
    flows: Object.keys(hosts).map((from) => ({ from, to: 'pay-1' })),
  }
  const bench = await start(t, estate)
  const small = await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  t.ok(JSON.stringify(small).length <= 80_000)
  partial(t, small.section_totals, { planned_rules: 151, inbound_remote_apps: 150 })
  t.ok(small.truncated_sections.includes('planned_rules'))
  const full = await bench.ok('create-ringfence', { ...PAY, dry_run: true, detail_level: 'full' })
  t.equal(full.section_totals.requests, 152)
  t.ok(full.truncated_sections.includes('requests'))
  t.match(small.truncation_note, /section_totals counts all/)
  const done = await bench.ok('create-ringfence', PAY)
  t.equal(done.section_totals.rules, 151)
  t.ok(done.truncated_sections.includes('rules'))
  t.equal((await draft(bench)).rules.length, 151)
})

t.test('progress rises over all queries of the call', async (t) => {
  const bench = await start(t, ESTATE)
  await bench.ok('create-ringfence', { ...PAY, dry_run: true })
  const steps = bench.progress.map(({ progress }) => progress)
  t.ok(steps.length > 6)
  t.same(
    steps,
    [...steps].sort((a, b) => a - b).filter((step, at, all) => step !== all[at - 1]),
  )
})
