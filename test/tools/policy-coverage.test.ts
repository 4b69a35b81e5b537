/** get-policy-coverage-report (T21) on small estates whose answers are worked out by hand, and on a generated one. */
import t from 'tap'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { percentOf } from '../../domain/text/describe-numbers.js'
import { coverage } from '../../domain/readiness/tally-decisions.js'
import { partial } from '../partial.js'
import { AMS, handMade, type HandMadeEstate, type HandMadeFlow } from './hand-made.js'
import { AS_GUIDED, startBench, type Bench, type BenchOptions, type Json } from './harness.js'
import { onceEach } from './once-each.js'

const TOOL = 'get-policy-coverage-report'
const SHOP = { app_name: 'shop', env_name: 'prod' }
const OWN = 'app=shop env=prod'

const start = (t: Parameters<typeof startBench>[0], estate: HandMadeEstate, options: BenchOptions = {}) =>
  startBench(t, { estate: handMade(estate), ...options })

/** In by pay (allowed on 443), crm, a half-labelled host and the outside; inside on two ports; out to pay and the outside. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'shop-1': { ip: '10.0.0.1', labels: OWN },
    'shop-2': { ip: '10.0.0.2', labels: OWN },
    'shopper-1': { ip: '10.0.2.1', labels: 'app=shopper env=prod' },
    'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod' },
    'crm-1': { ip: '10.0.4.1', labels: 'app=crm env=prod' },
    'only-app': { ip: '10.0.5.1', labels: 'app=shop' },
    printer: { ip: '10.0.6.1', managed: false },
  },
  flows: [
    { from: 'pay-1', to: 'shop-1', port: 443, connections: 100 },
    { from: 'pay-1', to: 'shop-1', port: 22, connections: 1, process: 'sshd', direction: 'inbound' },
    { from: 'crm-1', to: 'shop-1', port: 443, connections: 20, process: 'java', direction: 'inbound' },
    { from: 'crm-1', to: 'shop-2', port: 443, connections: 30, process: 'nginx', direction: 'inbound' },
    { from: 'shopper-1', to: 'shop-1', port: 443, proto: 17, connections: 4 },
    { from: 'only-app', to: 'shop-1', port: 443, connections: 7 },
    { from: '198.51.100.7', to: 'shop-1', port: 443, connections: 8 },
    { from: 'shop-1', to: 'shop-2', port: 5432, connections: 40, process: 'postgres', direction: 'inbound' },
    { from: 'shop-1', to: 'shop-1', port: 9000, connections: 3 },
    { from: 'shop-1', to: 'pay-1', port: 8443, connections: 60 },
    { from: 'shop-1', to: '203.0.113.5', fqdn: 'api.example.com', port: 443, connections: 9 },
    { from: 'shop-2', to: 'printer', port: 9100, connections: 2 },
  ],
  ruleSets: [
    {
      name: 'Shop',
      scope: OWN,
      allow: [
        { from: 'app=pay env=prod', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true },
        { from: 'ams', to: 'ams', services: [{ port: 5432, proto: 6 }] },
      ],
    },
  ],
}

t.test('counts both directions and internal traffic, each row once in the total', async (t) => {
  const bench = await start(t, ESTATE)
  const answer = await bench.ok(TOOL, SHOP)
  t.same(bench.writes(), [], 'nothing is written')
  partial(t, answer, {
    app: 'shop',
    env: 'prod',
    lookback_days: 30,
    // 12 rows: pay on 443 and the database inside are allowed.
    total_flows: 12,
    total_allowed: 2,
    overall_coverage_percentage: 16.7,
    total_connections: 284,
    overall_connection_coverage_percentage: 49.3,
    allowed_by_default_possible: false,
    flows_truncated: false,
    window: { start: '2026-05-16T00:00:00Z', end: '2026-06-15T23:59:59Z' },
    analysed: { rows: 12, pce_flows: 12 },
  })
  const figures = (path: Json) =>
    Object.fromEntries(Object.entries(path).filter(([name]) => !/^uncovered|^totals/.test(name)))
  t.same(figures(answer.inbound), {
    total_flows: 9,
    total_connections: 213,
    by_decision: { allowed: 2, potentially_blocked: 7, blocked: 0, unknown: 0 },
    coverage_percentage: 22.2,
    connection_coverage_percentage: 65.7,
    draft_coverage_percentage: 22.2,
  })
  t.same(figures(answer.outbound), {
    total_flows: 5,
    total_connections: 114,
    by_decision: { allowed: 1, potentially_blocked: 4, blocked: 0, unknown: 0 },
    coverage_percentage: 20,
    connection_coverage_percentage: 35.1,
    draft_coverage_percentage: 20,
  })
  t.same(answer.intra, {
    total_flows: 2,
    total_connections: 43,
    by_decision: { allowed: 1, potentially_blocked: 1, blocked: 0, unknown: 0 },
    coverage_percentage: 50,
    connection_coverage_percentage: 93,
    draft_coverage_percentage: 50,
  })
})

t.test('lists what is not covered: services with processes, other applications, and unlabelled ends', async (t) => {
  const bench = await start(t, ESTATE)
  const { inbound, outbound } = await bench.ok(TOOL, SHOP)
  const none = { draft_allowed_connections: 0 }
  t.same(inbound.uncovered_services, [
    { port: 443, proto: 6, processes: ['nginx', 'java'], flows: 4, connections: 65, ...none },
    { port: 443, proto: 17, processes: [], flows: 1, connections: 4, ...none },
    { port: 9000, proto: 6, processes: [], flows: 1, connections: 3, ...none },
    { port: 22, proto: 6, processes: ['sshd'], flows: 1, connections: 1, ...none },
  ])
  t.same(inbound.uncovered_apps, [
    { app: 'crm', env: 'prod', flows: 2, connections: 50, ...none },
    { app: 'shopper', env: 'prod', flows: 1, connections: 4, ...none },
    { app: 'pay', env: 'prod', flows: 1, connections: 1, ...none },
  ])
  t.same(inbound.uncovered_unlabelled, [
    {
      endpoint: '198.51.100.7 (Any (0.0.0.0/0 and ::/0))',
      ip: '198.51.100.7',
      kind: 'unlabelled',
      flows: 1,
      connections: 8,
      ...none,
    },
    { endpoint: 'only-app', ip: '10.0.5.1', kind: 'half_labelled', flows: 1, connections: 7, ...none },
  ])
  t.same(inbound.totals, { uncovered_services: 4, uncovered_apps: 3, uncovered_unlabelled: 2 })
  t.same(
    outbound.uncovered_services.map(({ port, connections }: Json) => [port, connections]),
    [
      [8443, 60],
      [443, 9],
      [9000, 3],
      [9100, 2],
    ],
  )
  t.same(outbound.uncovered_apps, [{ app: 'pay', env: 'prod', flows: 1, connections: 60, ...none }])
  t.same(
    outbound.uncovered_unlabelled.map(({ endpoint, kind, connections }: Json) => [endpoint, kind, connections]),
    [
      ['api.example.com', 'unlabelled', 9],
      ['printer', 'unlabelled', 2],
    ],
  )
})

const RULE = {
  enabled: true,
  providers: [AMS],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  unscoped_consumers: true,
}
/** Adds a rule to the draft of the only rule set: crm may reach every port. */
async function allowCrm(bench: Bench): Promise<string> {
  const [set] = await bench.pce.ruleSets.getAll('draft')
  const labels = await bench.pce.labels.getAll()
  const consumers = ['app=crm', 'env=prod'].map((text) => {
    const [key, value] = text.split('=')
    return { label: { href: labels.find((one) => one.key === key && one.value === value)!.href } }
  })
  const allServices = { href: '/orgs/1/sec_policy/draft/services/1' }
  return (await bench.pce.rules.create({ ...RULE, consumers, ingress_services: [allServices] }, set!.href)).href
}

t.test('says what the draft would allow, and by which rules', async (t) => {
  const bench = await start(t, ESTATE)
  const before = await bench.ok(TOOL, SHOP)
  partial(t, before.draft, {
    assessed: true,
    overall_coverage_percentage: 16.7,
    would_allow_flows: 0,
    rules: [],
  })
  t.match(before.recommendation, /The draft policy would allow none of the rest\./)

  const rule = await allowCrm(bench)
  const answer = await bench.ok(TOOL, SHOP)
  t.equal(answer.overall_coverage_percentage, 16.7, 'what is in force has not changed')
  t.same(answer.draft, {
    assessed: true,
    overall_coverage_percentage: 33.3,
    would_allow_flows: 2,
    rules: [{ rule, flows: 2, connections: 50 }],
  })
  t.equal(answer.inbound.draft_coverage_percentage, 44.4)
  t.equal(answer.outbound.draft_coverage_percentage, 20)
  t.equal(answer.intra.draft_coverage_percentage, 50)
  t.same(
    answer.inbound.uncovered_apps.map((one: Json) => [one.app, one.connections, one.draft_allowed_connections]),
    [
      ['crm', 50, 50],
      ['shopper', 4, 0],
      ['pay', 1, 0],
    ],
  )
  partial(t, answer.inbound.uncovered_services[0], { port: 443, connections: 65, draft_allowed_connections: 50 })
  t.match(answer.recommendation, /The draft policy would allow 2 of the other 10 rows/)
  const second = await allowCrm(bench)
  const both = [rule, second].sort().map((one) => ({ rule: one, flows: 2, connections: 50 }))
  partial(t, (await bench.ok(TOOL, SHOP)).draft, { would_allow_flows: 2, rules: both }, 'a row that two rules match')

  const [set] = await bench.pce.ruleSets.getAll('draft')
  await bench.pce.provisionPolicyChanges('crm', [set!.href])
  const after = await bench.ok(TOOL, SHOP)
  partial(t, after, { total_allowed: 4, overall_coverage_percentage: 33.3, draft: { would_allow_flows: 0, rules: [] } })
  t.same(
    after.inbound.uncovered_apps.map(({ app }: Json) => app),
    ['shopper', 'pay'],
  )
})

t.test('a draft that removes an allow rule covers less', async (t) => {
  const bench = await start(t, ESTATE)
  const [set] = await bench.pce.ruleSets.getAll('draft')
  await bench.pce.rules.delete(set!.rules![0]!.href)
  partial(t, await bench.ok(TOOL, SHOP), {
    overall_coverage_percentage: 16.7,
    draft: { overall_coverage_percentage: 8.3, would_allow_flows: 0 },
  })
})

t.test('without draft decisions of the PCE only the rules of the draft are missing', async (t) => {
  for (const [fault, reason] of [
    [{ kind: 'status', status: 404, body: [] }, /404/],
    [{ kind: 'status', status: 403, body: [{ token: 'method_not_allowed', message: 'no' }] }, /403/],
    [{ kind: 'job-failed' }, /could not look up the draft rules/],
    [{ kind: 'job-stuck' }, /within 60 s/],
  ] as const) {
    const bench = await start(t, ESTATE)
    await allowCrm(bench)
    bench.simulator.faults.add({ ...fault, path: /update_rules$/, method: 'PUT', times: 1 })
    const answer = await bench.ok(TOOL, SHOP)
    partial(t, answer.draft, { assessed: true, reason, overall_coverage_percentage: 33.3, would_allow_flows: 2 })
    t.same(answer.draft.rules, [])
    partial(t, answer, { total_flows: 12, total_allowed: 2, inbound: { draft_coverage_percentage: 44.4 } })
    t.equal(answer.inbound.uncovered_apps[0].draft_allowed_connections, 50)
    t.match(answer.recommendation, /The draft policy would allow 2 of the other 10 rows/)
  }
})

t.test('a draft that cannot be read is not assessed, and one in which nothing is pending is not read', async (t) => {
  const bench = await start(t, ESTATE)
  bench.simulator.clearRequests()
  partial(t, (await bench.ok(TOOL, SHOP)).draft, { assessed: true, reason: undefined, would_allow_flows: 0 })
  t.same(
    bench.simulator.requests.flatMap(({ path }) => (path.includes('/sec_policy/draft/') ? [path] : [])),
    [],
  )
  await allowCrm(bench)
  bench.simulator.faults.add({ kind: 'status', path: /draft\/services$/, status: 403, times: 9, body: [] })
  const { draft, recommendation } = await bench.ok(TOOL, SHOP)
  partial(t, draft, { assessed: false, reason: 'the draft policy could not be read', would_allow_flows: null })
  t.notMatch(recommendation, /draft/)
})

t.test('what the draft leaves open counts in what the figures assume', async (t) => {
  const hosts = { ...ESTATE.hosts, 'pay-1': { ...ESTATE.hosts!['pay-1']!, mode: 'selective' as const } }
  const bench = await start(t, { ...ESTATE, hosts })
  t.equal((await bench.ok(TOOL, SHOP)).assumes, undefined)
  const rule = { providers: ['ams'], consumers: ['app=pay', 'env=prod'], ingress_services: ['All Services'] }
  await bench.ok('create-deny-rule', { ruleset_name: 'Shop', ...rule, override: true, unscoped_consumers: true })
  const { assumes, draft } = await bench.ok(TOOL, SHOP)
  t.same(assumes, ['P51'])
  t.not(draft.overall_coverage_percentage, 16.7, 'a source in selective mode perhaps drops what the draft denies')
})

t.test('reports lookup progress and deletes the query of a cancelled call', async (t) => {
  const bench = await startBench(t, { estate: handMade(ESTATE), pollsUntilDone: 4 })
  await bench.ok(TOOL, SHOP)
  const steps = bench.progress.map(({ progress }) => progress)
  t.same(
    steps,
    steps.map((_, at) => at),
    'rising by one over both queries',
  )
  const lookups = bench.simulator.requests.filter(({ path }) => path.endsWith('/update_rules'))
  t.equal(lookups.length, 2)
  bench.simulator.clearRequests()
  await bench.cancelled(TOOL, SHOP, () => bench.simulator.requests.some(({ path }) => path.endsWith('/update_rules')))
  t.ok(bench.simulator.requests.some(({ method, path }) => method === 'DELETE' && path.includes('/async_queries/')))
})

t.test('no traffic is null, not 0 %', async (t) => {
  const bench = await start(t, {
    hosts: {
      'shop-1': { ip: '10.0.0.1', labels: OWN },
      'quiet-1': { ip: '10.0.0.2', labels: 'app=quiet env=prod' },
      'idle-1': { ip: '10.0.0.3', labels: 'app=idle env=prod', mode: 'idle' },
    },
    flows: [
      { from: '203.0.113.1', to: 'shop-1', port: 443, connections: 5 },
      { from: '203.0.113.1', to: 'idle-1', port: 443, connections: 5 },
    ],
  })
  const inOnly = await bench.ok(TOOL, SHOP)
  partial(t, inOnly, {
    overall_coverage_percentage: 0,
    inbound: { coverage_percentage: 0, connection_coverage_percentage: 0, draft_coverage_percentage: 0 },
  })
  const empty = {
    total_flows: 0,
    total_connections: 0,
    by_decision: { allowed: 0, potentially_blocked: 0, blocked: 0, unknown: 0 },
    coverage_percentage: null,
    connection_coverage_percentage: null,
    draft_coverage_percentage: null,
  }
  partial(t, inOnly.outbound, empty)
  t.same(inOnly.intra, empty)
  const none = await bench.ok(TOOL, { app_name: 'quiet', env_name: 'prod' })
  partial(t, none, {
    overall_coverage_percentage: null,
    overall_connection_coverage_percentage: null,
    total_flows: 0,
    inbound: empty,
    outbound: empty,
    draft: { assessed: true, overall_coverage_percentage: null, would_allow_flows: 0 },
    recommendation: /No traffic was seen/,
  })
  const idle = await bench.ok(TOOL, { app_name: 'idle', env_name: 'prod' })
  partial(t, idle, {
    overall_coverage_percentage: null,
    total_flows: 0,
    inbound: { by_decision: { unknown: 1 }, coverage_percentage: null },
    recommendation: /Policy decided on none of 1 row/,
  })
  t.same(idle.inbound.uncovered_unlabelled, [])
})

t.test('counts blocked rows as uncovered and mentions selective mode', async (t) => {
  const bench = await start(
    t,
    {
      hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN, mode: 'selective' } },
      flows: [
        { from: '203.0.113.1', to: 'shop-1', port: 443, connections: 5 },
        { from: '203.0.113.1', to: 'shop-1', port: 23, connections: 2 },
      ],
      ruleSets: [
        {
          name: 'No telnet',
          scope: OWN,
          allow: [],
          deny: [{ from: 'any', to: 'ams', services: [{ port: 23, proto: 6 }], extra: true }],
        },
      ],
    },
    AS_GUIDED,
  )
  const answer = await bench.ok(TOOL, SHOP)
  partial(t, answer, {
    overall_coverage_percentage: 0,
    allowed_by_default_possible: true,
    inbound: {
      by_decision: { allowed: 0, blocked: 1, potentially_blocked: 1 },
      draft_coverage_percentage: 0,
      uncovered_services: [
        { port: 443, connections: 5, draft_allowed_connections: 0 },
        { port: 23, connections: 2, draft_allowed_connections: 0 },
      ],
    },
    recommendation: /1 row may pass only by default \(selective mode/,
  })

  // The PCE calls it allowed_across_boundary: the deny rule still matches, and the allow rule beats it.
  const [set] = await bench.pce.ruleSets.getAll('draft')
  const consumers = [{ ip_list: { href: '/orgs/1/sec_policy/draft/ip_lists/1' } }]
  const telnet = { ...RULE, consumers, ingress_services: [{ port: 23, proto: 6 }] }
  const rule = await bench.pce.rules.create(telnet, set!.href)
  partial(t, (await bench.ok(TOOL, SHOP)).draft, {
    overall_coverage_percentage: 50,
    would_allow_flows: 1,
    rules: [{ rule: rule.href, flows: 1, connections: 2 }],
  })
})

t.test('the recommendation follows the bands 95, 80 and 50', async (t) => {
  const at = async (allowed: number, of: number) => {
    const flows = Array.from({ length: of }, (_, port): HandMadeFlow => ({
      from: 'pay-1',
      to: 'shop-1',
      port: port + 1,
    }))
    const services = Array.from({ length: allowed }, (_, port) => ({ port: port + 1, proto: 6 }))
    const bench = await start(t, {
      hosts: {
        'shop-1': { ip: '10.0.0.1', labels: OWN },
        'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod' },
      },
      flows,
      ruleSets: [
        {
          name: 'Shop',
          scope: OWN,
          allow: services.length > 0 ? [{ from: 'app=pay env=prod', to: 'ams', services, extra: true }] : [],
        },
      ],
    })
    return (await bench.ok(TOOL, SHOP)).recommendation as string
  }
  t.equal(await at(4, 4), 'All observed traffic is allowed.')
  t.match(await at(19, 20), /^95 % of rows are allowed: resolve the few rows left/)
  t.match(await at(18, 20), /^90 % of rows are allowed: add rules for what is still needed/)
  t.match(await at(16, 20), /^80 % of rows are allowed: add rules for what is still needed/)
  t.match(await at(15, 20), /^75 % of rows are allowed: enforcing now would break a lot/)
  t.match(await at(2, 4), /^50 % of rows are allowed: enforcing now/)
  t.match(await at(1, 4), /^25 % of rows are allowed: policy is mostly missing/)
  t.match(await at(3, 4), /Most of it is inbound 4\/tcp \(1 connection\)\./)
})

t.test('rows that are undecided are not called not allowed', async (t) => {
  const bench = await start(t, {
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN } },
    flows: [443, 22].map((port) => ({ from: '203.0.113.1', to: 'shop-1', port, connections: port })),
    ruleSets: [{ name: 'Web', scope: OWN, allow: [{ from: 'any', to: 'ams', extra: true }] }],
  })
  // Of the program at the destination a row says nothing.
  const nginx = { name: 'nginx', windows_services: [{ port: 443, proto: 6, process_name: 'nginx.exe' }] }
  const { href } = await bench.pce.services.create(nginx)
  const [set] = await bench.pce.ruleSets.getAll('draft')
  await bench.pce.rules.update(set!.rules![0]!.href, { ingress_services: [{ href }] })
  await bench.pce.provisionPolicyChanges('programs', [set!.href, href])
  const { recommendation } = await bench.ok(TOOL, SHOP)
  t.match(
    recommendation,
    /^0 % of rows are allowed: .*\. Most of what is not known to be allowed is inbound 443\/tcp \(443 connections\)\. /,
  )
  t.match(
    recommendation,
    /1 source .* sent traffic that is not known to be allowed\. The draft .* none of the rest\. 1 row undecided/,
  )
  // A rule for the other row settles nothing about this one.
  const rule = { ...RULE, consumers: set!.rules![0]!.consumers, ingress_services: [{ port: 22, proto: 6 }] }
  await bench.pce.rules.create(rule, set!.href)
  await bench.pce.provisionPolicyChanges('ssh', [set!.href])
  t.match(
    (await bench.ok(TOOL, SHOP)).recommendation,
    /^50 % of rows are known to be allowed\. Most of what is not known to be allowed is inbound 443/,
  )
})

t.test('100 % means all and 0 % means none', (t) => {
  const share = (allowed: number, of: number) =>
    coverage({ allowed, potentially_blocked: of - allowed, blocked: 0, unknown: 7, undecided: 0 })
  t.equal(share(2_999, 3_000), 99.9)
  t.equal(share(3_000, 3_000), 100)
  t.equal(share(1, 3_000), 0.1)
  t.equal(share(0, 3_000), 0)
  t.equal(share(1, 3), 33.3)
  t.equal(share(0, 0), null)
  t.same([percentOf(9_999, 10_000), percentOf(1, 10_000), percentOf(5, 5)], [99.9, 0.1, 100])
  t.end()
})

t.test('long lists: ten rows, two thousand in full detail, cut to the budget; totals stay', async (t) => {
  const estate: HandMadeEstate = {
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN } },
    flows: Array.from({ length: 150 }, (_, at) => ({ from: `203.0.113.${at}`, to: 'shop-1', port: 1000 + at })),
  }
  const bench = await start(t, estate)
  const standard = await bench.ok(TOOL, SHOP)
  t.equal(standard.inbound.uncovered_services.length, 10)
  t.equal(standard.inbound.uncovered_unlabelled.length, 10)
  t.same(standard.inbound.totals, { uncovered_services: 150, uncovered_apps: 0, uncovered_unlabelled: 150 })
  t.same(standard.truncated_sections, ['inbound.uncovered_services', 'inbound.uncovered_unlabelled'])
  const roomy = await start(t, estate, { budget: 48_000 })
  const full = await roomy.ok(TOOL, { ...SHOP, detail_level: 'full' })
  t.equal(full.inbound.uncovered_services.length, 150)
  t.notOk(full.truncated_sections)
  const small = await (await start(t, estate, { budget: 6_000 })).ok(TOOL, SHOP)
  t.ok(Buffer.byteLength(JSON.stringify(small)) <= 6_000)
  t.ok(small.inbound.uncovered_services.length <= 10)
  t.same(small.inbound.totals, standard.inbound.totals)
  partial(t, small, { total_flows: 150, truncation_note: /totals and percentages count all/ })
})

t.test('refusals', async (t) => {
  const bench = await start(t, { hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN } }, labels: ['app=shopping'] })
  bench.simulator.clearRequests()
  partial(t, await bench.fails(TOOL, { ...SHOP, app_name: 'sho' }, 'not_found'), { near_names: ['shop', 'shopping'] })
  await bench.fails(TOOL, { ...SHOP, env_name: 'PROD' }, 'not_found')
  t.notOk(bench.simulator.requests.some(({ path }) => path.includes('traffic_flows')))
  for (const bad of [
    { app_name: 'shop' },
    { ...SHOP, env_name: '' },
    { ...SHOP, lookback_days: 0 },
    { ...SHOP, lookback_days: 366 },
    { ...SHOP, detail_level: 'all' },
    { ...SHOP, weeks: 3 },
  ])
    await bench.fails(TOOL, bad, 'invalid_argument')
  bench.simulator.faults.add({ kind: 'job-failed', path: /async_queries$/, method: 'POST', times: 1 })
  await bench.fails(TOOL, SHOP, 'traffic_query_failed')
})

t.test('figures of a generated estate match an independent count', async (t) => {
  const bench = await startBench(t, { flows: 2000 })
  const labels = await bench.pce.labels.getAll()
  const label = (key: string, value: string) => ({
    label: { href: labels.find((one) => one.key === key && one.value === value)!.href },
  })
  const side = { include: [[label('app', 'payments'), label('env', 'prod')]], exclude: [] }
  const ask = async (direction: 'sources' | 'destinations') =>
    bench.pce.getTrafficFlowsAsync('truth', {
      start_date: '2026-06-01T00:00:00Z',
      end_date: '2026-06-15T23:59:59Z',
      sources: { include: [[]], exclude: [] },
      destinations: { include: [[]], exclude: [] },
      services: { include: [], exclude: [] },
      policy_decisions: ['allowed', 'potentially_blocked', 'blocked'],
      [direction]: side,
    })
  const [inbound, outbound] = [onceEach(await ask('destinations')), onceEach(await ask('sources'))]
  const rows = [...new Map([...inbound, ...outbound].map((flow) => [JSON.stringify(flow), flow])).values()]
  const intra = inbound.filter((flow) => outbound.some((other) => JSON.stringify(other) === JSON.stringify(flow)))
  t.ok(intra.length > 3, 'some run inside the application')
  const answer = await bench.ok(TOOL, { app_name: 'payments', env_name: 'prod', lookback_days: 14 })
  // Of the ICMP type, and of the program at the destination, a row says nothing, and rules are for some of them.
  const isOpen = ({ policy_decision: decision, service: { port, proto } }: TrafficFlow) =>
    decision === 'allowed' && (proto === 1 || port === 80)
  const count = (flows: TrafficFlow[], decision: string) =>
    flows.filter((flow) => flow.policy_decision === decision && !isOpen(flow)).length
  t.equal(answer.inbound.by_decision.undecided, inbound.filter(isOpen).length)
  t.equal(answer.outbound.by_decision.undecided, outbound.filter(isOpen).length)
  t.match(answer.recommendation, /2 rows undecided because of ICMP types, rules for certain processes: not counted/)
  t.same([answer.draft.would_allow_flows, answer.draft.rules], [0, []], 'nothing is pending')
  const opened = [answer.inbound, answer.outbound].flatMap(({ uncovered_services: services }: Json) =>
    services.filter(({ draft_allowed_connections: many }: Json) => many !== 0),
  )
  t.same(opened, [])
  const share = (flows: TrafficFlow[]) => Math.round((1000 * count(flows, 'allowed')) / flows.length) / 10
  for (const [name, flows] of Object.entries({ inbound, outbound, intra })) {
    partial(t, answer[name], {
      total_flows: flows.length,
      by_decision: {
        allowed: count(flows, 'allowed'),
        potentially_blocked: count(flows, 'potentially_blocked'),
        blocked: count(flows, 'blocked'),
      },
      coverage_percentage: share(flows),
    })
  }
  partial(t, answer, {
    total_flows: rows.length,
    total_allowed: count(rows, 'allowed'),
    overall_coverage_percentage: share(rows),
  })
  for (const [name, flows, far] of [
    ['inbound', inbound, 'src'],
    ['outbound', outbound, 'dst'],
  ] as const) {
    const stopped = flows.filter((flow) => flow.policy_decision !== 'allowed' || isOpen(flow))
    const services = new Map<string, number>()
    const apps = new Map<string, number>()
    for (const flow of stopped) {
      const connections = flow.num_connections ?? 0
      const service = `${flow.service.port}/${flow.service.proto}`
      services.set(service, (services.get(service) ?? 0) + connections)
      const of = (key: string) => flow[far].workload?.labels?.find((one) => one.key === key)?.value
      const app = `${of('app')}|${of('env')}`
      if (!app.includes('undefined') && app !== 'payments|prod') apps.set(app, (apps.get(app) ?? 0) + connections)
    }
    const sorted = (entries: Iterable<[string, number]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
    t.same(
      sorted(
        answer[name].uncovered_services.map((one: Json): [string, number] => [
          `${one.port}/${one.proto}`,
          one.connections,
        ]),
      ),
      sorted(services),
    )
    t.same(
      sorted(
        answer[name].uncovered_apps.map((one: Json): [string, number] => [`${one.app}|${one.env}`, one.connections]),
      ),
      sorted(apps),
    )
  }
})
