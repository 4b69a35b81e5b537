/** enforcement-readiness (T20) on small estates whose answers are worked out by hand, and on a generated one. */
import t from 'tap'
import type { Estate } from '../../pce-simulator/model.js'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { contains, partial } from '../partial.js'
import {
  AMS,
  handMade,
  ipTablesRule,
  type HandMadeEstate,
  type HandMadeFlow,
  type HandMadeHost,
  type HandMadeRule,
  type HandMadeRuleSet,
} from './hand-made.js'
import { AS_GUIDED, startBench, type Bench, type BenchOptions, type Json } from './harness.js'
import { onceEach } from './once-each.js'

const TOOL = 'enforcement-readiness'
const SHOP = { app_name: 'shop', env_name: 'prod' }
const OWN = 'app=shop env=prod'
const RINGFENCE = { name: 'RF-shop-prod', scope: OWN, allow: [{ from: 'ams', to: 'ams' }] }

const start = (t: Parameters<typeof startBench>[0], estate: HandMadeEstate, options: BenchOptions = {}) =>
  startBench(t, { estate: handMade(estate), ...options })

const factor = (answer: Json, name: string) => answer.factors.find((one: Json) => one.factor === name)
const points = (answer: Json) => answer.factors.map((one: Json) => one.points)

/** Eight ports inside the application, which its ringfence allows. */
const INSIDE = [1, 2, 3, 4, 5, 6, 7, 8].map((at): HandMadeFlow => ({ from: 'shop-1', to: 'shop-2', port: 8000 + at }))

t.test('the example of the contract: 32 + 20 + 5 + 10 + 0 = 67.0', async (t) => {
  const bench = await start(t, {
    hosts: {
      'shop-1': { ip: '10.0.0.1', labels: OWN },
      'shop-2': { ip: '10.0.0.2', labels: OWN },
      'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
    },
    flows: [
      ...INSIDE,
      { from: 'crm-1', to: 'shop-1', port: 443, connections: 7, process: 'curl' },
      { from: 'crm-1', to: 'shop-2', port: 5432, connections: 5 },
    ],
    ruleSets: [RINGFENCE],
  })
  const answer = await bench.ok(TOOL, SHOP)
  t.same(bench.writes(), [], 'nothing is written')
  partial(t, answer, {
    app: 'shop',
    env: 'prod',
    readiness_score: 67,
    readiness_level: 'partially_ready',
    workloads: {
      total: 2,
      enforcement_modes: { visibility_only: 2 },
      managed_only: { total: 2, enforcement_modes: { visibility_only: 2 } },
      offline: 0,
      not_enforceable: 0,
    },
    has_ringfence: true,
    ringfence: { enabled: true, rules: 1, provisioned: true, pending_changes: false },
    flows_truncated: false,
    window: { start: '2026-05-16T00:00:00Z', end: '2026-06-15T23:59:59Z' },
  })
  t.same(
    answer.factors.map(({ factor, points, max }: Json) => [factor, points, max]),
    [
      ['policy_coverage', 32, 40],
      ['ringfence', 20, 20],
      ['enforcement_mode', 5, 20],
      ['no_blocked_traffic', 10, 10],
      ['no_uncovered_remote_apps', 0, 10],
    ],
  )
  t.ok(
    answer.factors.every(({ reason }: Json) => reason.length > 5),
    'each says why',
  )
  t.same(answer.traffic_analysis, {
    lookback_days: 30,
    total_flows: 10,
    total_connections: 20,
    policy_decisions: { allowed: 8, potentially_blocked: 2, blocked: 0, unknown: 0 },
    coverage_percentage: 80,
    connection_coverage_percentage: 40,
    allowed_by_default_possible: false,
  })
  t.same(answer.remote_apps, {
    covered: [],
    uncovered: [{ app: 'crm', env: 'prod' }],
    partially_covered: [],
    totals: { covered: 0, uncovered: 1, partially_covered: 0 },
  })
  t.same(answer.uncovered_flows, [
    {
      path: 'inbound',
      remote: 'crm (prod)',
      port: 443,
      proto: 6,
      process: 'curl',
      decision: 'potentially_blocked',
      connections: 7,
    },
    {
      path: 'inbound',
      remote: 'crm (prod)',
      port: 5432,
      proto: 6,
      process: null,
      decision: 'potentially_blocked',
      connections: 5,
    },
  ])
  t.equal(answer.uncovered_flows_total, 2)
  partial(t, answer.analysed, { rows: 10, pce_flows: 10 }, 'the eight inside are in both answers and count once')
  t.notOk('raw_observations' in answer.analysed, 'of how many observations they were made is not known')
  t.same(answer.recommendations, [
    'Nothing from "crm (prod)" is allowed: add allow rules, or confirm that enforcement may block it.',
  ])
  t.notOk(answer.truncated_sections)
})

t.test('classifies sources as covered, partly covered, uncovered or no application', async (t) => {
  const bench = await start(t, {
    hosts: {
      'shop-1': { ip: '10.0.0.1', labels: OWN },
      // Names that contain one another are other applications.
      'shopper-1': { ip: '10.0.2.1', labels: 'app=shopper env=prod' },
      'shop-eu': { ip: '10.0.2.2', labels: 'app=shop env=prod-eu' },
      'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod' },
      'crm-1': { ip: '10.0.4.1', labels: 'app=crm env=prod' },
      'only-app': { ip: '10.0.5.1', labels: 'app=shop' },
      'only-env': { ip: '10.0.5.2', labels: 'env=prod' },
      bare: { ip: '10.0.5.3' },
      printer: { ip: 'fd00::9', managed: false },
      'self-1': { ip: '10.0.0.2', labels: OWN },
    },
    flows: [
      { from: 'pay-1', to: 'shop-1', port: 443, connections: 10 },
      { from: 'pay-1', to: 'shop-1', port: 22, connections: 1 },
      { from: 'crm-1', to: 'shop-1', port: 443, connections: 10 },
      { from: 'shopper-1', to: 'shop-1', port: 443, connections: 3 },
      { from: 'shop-eu', to: 'shop-1', port: 80, connections: 2 },
      { from: 'only-app', to: 'shop-1', port: 443, connections: 40 },
      { from: 'only-env', to: 'shop-1', port: 80, connections: 30 },
      { from: 'bare', to: 'shop-1', port: 80, connections: 5 },
      { from: 'printer', to: 'shop-1', proto: 1, connections: 4 },
      { from: '198.51.100.7', to: 'shop-1', port: 443, connections: 6 },
      { from: 'shop-1', to: 'shop-1', port: 9000, connections: 50 },
      { from: 'shop-1', to: 'pay-1', port: 8443, connections: 60 },
      { from: 'shop-1', to: '203.0.113.5', fqdn: 'api.example.com', port: 443, connections: 9 },
    ],
    ipLists: { Office: ['198.51.100.0/24'], 'Office too': ['198.51.100.0/28'] },
    ruleSets: [
      {
        name: 'RF-shop-prod',
        scope: OWN,
        allow: [
          { from: 'app=pay env=prod', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true },
          { from: 'app=crm env=prod', to: 'ams', extra: true },
          { from: 'iplist:Office', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true },
        ],
      },
    ],
  })
  const answer = await bench.ok(TOOL, SHOP)
  t.same(answer.remote_apps, {
    covered: [{ app: 'crm', env: 'prod' }],
    partially_covered: [{ app: 'pay', env: 'prod' }],
    uncovered: [
      { app: 'shop', env: 'prod-eu' },
      { app: 'shopper', env: 'prod' },
    ],
    totals: { covered: 1, uncovered: 2, partially_covered: 1 },
  })
  partial(t, answer.unlabelled_sources, { total: 5, half_labelled: 2, uncovered: 4 })
  t.same(
    answer.unlabelled_sources.top.map((one: Json) => [
      one.endpoint,
      one.ip,
      one.kind,
      one.flows,
      one.connections,
      one.uncovered_flows,
      one.uncovered_connections,
    ]),
    [
      ['only-app', '10.0.5.1', 'half_labelled', 1, 40, 1, 40],
      ['only-env', '10.0.5.2', 'half_labelled', 1, 30, 1, 30],
      ['bare', '10.0.5.3', 'unlabelled', 1, 5, 1, 5],
      ['printer', 'fd00::9', 'unlabelled', 1, 4, 1, 4],
      ['198.51.100.7 (Office, Office too)', '198.51.100.7', 'unlabelled', 1, 6, 0, 0],
    ],
  )
  // 10 inbound, 1 inside, 2 outbound; allowed are pay on 443, crm, and the office.
  partial(t, answer.traffic_analysis, {
    total_flows: 13,
    policy_decisions: { allowed: 3, potentially_blocked: 10, blocked: 0, unknown: 0 },
    coverage_percentage: 23.1,
    total_connections: 230,
    connection_coverage_percentage: 11.3,
  })
  t.same(
    answer.uncovered_flows.map((one: Json) => [one.path, one.remote, one.port, one.proto, one.connections]),
    [
      ['outbound', 'pay (prod)', 8443, 6, 60],
      ['intra', 'shop (prod)', 9000, 6, 50],
      ['inbound', 'only-app', 443, 6, 40],
      ['inbound', 'only-env', 80, 6, 30],
      ['outbound', 'api.example.com', 443, 6, 9],
      ['inbound', 'bare', 80, 6, 5],
      ['inbound', 'printer', 0, 1, 4],
      ['inbound', 'shopper (prod)', 443, 6, 3],
      ['inbound', 'shop (prod-eu)', 80, 6, 2],
      ['inbound', 'pay (prod)', 22, 6, 1],
    ],
  )
  t.same(answer.recommendations, [
    'Nothing from "shop (prod-eu)", "shopper (prod)" is allowed: add allow rules, or confirm that enforcement may block it.',
    'Only part of the traffic from "pay (prod)" is known to be allowed: see uncovered_flows.',
    '4 sources without both app and env labels, 2 of them with one of the two: 79 connections not known to be allowed. Label them, or allow them by IP list.',
    '2 of 2 outbound rows not allowed: add rules at their destinations, by IP list for those outside; see uncovered_flows.',
    '1 of 1 intra row not allowed: the ringfence can allow them.',
  ])
  // 3 of 13 rows, a ringfence, visibility only, nothing blocked, someone uncovered.
  t.same(points(answer), [9.2, 20, 5, 10, 0])
  t.equal(answer.readiness_score, 44.2)
  t.equal(answer.readiness_level, 'not_ready')
})

t.test('lists unlabelled sources by what would be cut', async (t) => {
  const bench = await start(t, {
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN } },
    flows: [
      { from: '203.0.113.1', to: 'shop-1', port: 80 },
      { from: '203.0.113.1', to: 'shop-1', port: 81 },
      { from: '203.0.113.2', to: 'shop-1', port: 80, connections: 10 },
      { from: '203.0.113.3', to: 'shop-1', port: 443, connections: 90 },
    ],
    ruleSets: [
      {
        name: 'Web',
        scope: OWN,
        allow: [{ from: 'any', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true }],
      },
    ],
  })
  const { unlabelled_sources: sources } = await bench.ok(TOOL, SHOP)
  partial(t, sources, { total: 3, half_labelled: 0, uncovered: 2 })
  t.same(
    sources.top.map(({ ip }: Json) => ip),
    ['203.0.113.2', '203.0.113.1', '203.0.113.3'],
  )
})

t.test('a partly covered application is not uncovered', async (t) => {
  const bench = await start(t, {
    hosts: {
      'shop-1': { ip: '10.0.0.1', labels: OWN },
      'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod' },
    },
    flows: [
      { from: 'pay-1', to: 'shop-1', port: 443 },
      { from: 'pay-1', to: 'shop-1', port: 22 },
    ],
    ruleSets: [
      {
        name: 'Web',
        scope: OWN,
        allow: [{ from: 'app=pay env=prod', to: 'ams', services: [{ port: 443, proto: 6 }], extra: true }],
      },
    ],
  })
  const answer = await bench.ok(TOOL, SHOP)
  t.same(points(answer), [20, 0, 5, 10, 10])
  t.equal(answer.readiness_score, 45)
  t.equal(factor(answer, 'no_uncovered_remote_apps').reason, '0 of 1 source app uncovered, 1 partially covered')
})

t.test('without traffic or anything to enforce there is no score, and it says why', async (t) => {
  const hosts = {
    'shop-1': { ip: '10.0.0.1', labels: OWN },
    'legacy-1': { ip: '10.0.6.1', labels: 'app=legacy env=prod', managed: false },
    'idle-1': { ip: '10.0.7.1', labels: 'app=idle env=prod', mode: 'idle' as const },
  }
  const bench = await start(t, {
    hosts,
    flows: [
      { from: 'legacy-1', to: 'shop-1', port: 443, daysAgo: 20 },
      { from: '203.0.113.1', to: 'idle-1', port: 443 },
      { from: 'legacy-1', to: 'idle-1', port: 443 },
    ],
    labels: ['app=empty'],
    ruleSets: [RINGFENCE],
  })
  const noTraffic = await bench.ok(TOOL, { ...SHOP, lookback_days: 7 })
  partial(t, noTraffic, {
    readiness_score: null,
    readiness_level: 'unknown',
    traffic_analysis: {
      lookback_days: 7,
      total_flows: 0,
      coverage_percentage: null,
      connection_coverage_percentage: null,
    },
    window: { start: '2026-06-08T00:00:00Z' },
    uncovered_flows_total: 0,
    has_ringfence: true,
  })
  t.same(noTraffic.factors, [])
  t.same(noTraffic.recommendations, ['No score: No traffic was seen in the window. Look further back.'])
  t.not((await bench.ok(TOOL, SHOP)).readiness_score, null, 'thirty days back there is some')

  const nobody = await bench.ok(TOOL, { app_name: 'empty', env_name: 'prod' })
  partial(t, nobody, { readiness_score: null, readiness_level: 'unknown', workloads: { total: 0 } })
  contains(t, nobody.recommendations[0], 'No workload has these two labels.')

  const unmanaged = await bench.ok(TOOL, { app_name: 'legacy', env_name: 'prod' })
  partial(t, unmanaged, {
    readiness_score: null,
    readiness_level: 'unknown',
    workloads: { total: 1, managed_only: { total: 0 }, not_enforceable: 1 },
    // The other end judges what it sends.
    traffic_analysis: { total_flows: 1, policy_decisions: { potentially_blocked: 1 }, coverage_percentage: 0 },
  })
  contains(t, unmanaged.recommendations[0], 'None of 1 workload has a VEN, so nothing can be enforced.')

  const idle = await bench.ok(TOOL, { app_name: 'idle', env_name: 'prod' })
  partial(t, idle, {
    readiness_score: null,
    workloads: { not_enforceable: 1, managed_only: { total: 1, enforcement_modes: { idle: 1 } } },
    traffic_analysis: { total_flows: 0, policy_decisions: { unknown: 2 }, coverage_percentage: null },
    uncovered_flows_total: 0,
    remote_apps: { totals: { covered: 0, uncovered: 0, partially_covered: 0 } },
    unlabelled_sources: { total: 0 },
  })
  partial(t, idle.recommendations, [
    'No score: Policy decided on none of 2 rows of traffic. Check that VENs are online and not idle.',
    /^No ringfence/,
    /^1 workload in idle mode/,
  ])
})

t.test('scores the modes of managed workloads and names idle, unmanaged and offline ones', async (t) => {
  const score = async (t: Parameters<typeof startBench>[0], own: Record<string, Partial<HandMadeHost>>) => {
    const hosts = Object.fromEntries(
      Object.entries(own).map(([name, host], at) => [name, { ip: `10.0.0.${at + 1}`, labels: OWN, ...host }]),
    )
    const bench = await start(t, { hosts, flows: [{ from: '203.0.113.1', to: 'a', port: 443 }], ruleSets: [RINGFENCE] })
    return bench.ok(TOOL, SHOP)
  }
  const full = await score(t, { a: { mode: 'full' }, b: { mode: 'full' } })
  partial(t, factor(full, 'enforcement_mode'), { points: 20, reason: '2 full of 2 with a VEN' })
  partial(t, factor(full, 'no_blocked_traffic'), { points: 0, reason: '1 row blocked (1 connection)' })
  partial(t, full.uncovered_flows, [{ decision: 'blocked', remote: /203\.0\.113\.1/ }])
  t.match(full.recommendations.join('\n'), /1 row blocked already/)
  t.equal(full.readiness_score, 50, '0 + 20 + 20 + 0 + 10')
  t.equal(full.readiness_level, 'partially_ready', 'at 50 already')

  const unmanaged = await score(t, { a: { mode: 'full' }, b: { managed: false } })
  t.equal(factor(unmanaged, 'enforcement_mode').points, 20, 'an unmanaged workload has no mode that means anything')
  partial(t, unmanaged.workloads, { total: 2, managed_only: { total: 1, enforcement_modes: { full: 1 } } })
  t.equal(unmanaged.workloads.not_enforceable, 1)
  t.match(unmanaged.recommendations.join('\n'), /1 workload without a VEN/)

  t.equal(factor(await score(t, { a: { mode: 'full' }, b: { mode: 'selective' } }), 'enforcement_mode').points, 10)
  t.equal(factor(await score(t, { a: { mode: 'selective' }, b: {} }), 'enforcement_mode').points, 10)
  t.equal(factor(await score(t, { a: { mode: 'full' }, b: {} }), 'enforcement_mode').points, 5)
  const idle = await score(t, { a: { mode: 'full' }, b: { mode: 'idle' } })
  partial(t, factor(idle, 'enforcement_mode'), { points: 0, reason: '1 full, 1 idle of 2 with a VEN' })
  t.equal(idle.workloads.not_enforceable, 1)
  t.match(idle.recommendations.join('\n'), /1 workload in idle mode/)
  const nobodyCan = await score(t, { a: { mode: 'idle' }, b: { managed: false }, c: { managed: false, mode: 'full' } })
  t.equal(nobodyCan.readiness_score, null, 'idle: policy decides on nothing')
  const mixed = await score(t, { a: {}, b: { mode: 'idle' }, c: { managed: false, mode: 'selective' } })
  partial(t, factor(mixed, 'enforcement_mode'), { points: 5, reason: '1 idle, 1 visibility_only of 2 with a VEN' })

  const offline = await score(t, { a: {}, b: { online: false }, c: { online: false, managed: false } })
  t.equal(offline.workloads.offline, 1, 'nobody knows of an unmanaged one')
  t.match(offline.recommendations.join('\n'), /1 workload offline/)
})

t.test('what passes in selective mode because no deny rule matched is not covered', async (t) => {
  const bench = await start(
    t,
    {
      hosts: {
        'shop-1': { ip: '10.0.0.1', labels: OWN, mode: 'selective' },
        'shop-2': { ip: '10.0.0.2', labels: OWN },
        'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod' },
        'web-1': { ip: '10.0.4.1', labels: 'app=web env=prod', mode: 'selective' },
        'db-1': { ip: '10.0.5.1', labels: 'app=db env=prod' },
      },
      flows: [
        { from: '203.0.113.1', to: 'shop-1', port: 443 },
        { from: '203.0.113.1', to: 'shop-1', port: 23 },
        { from: 'pay-1', to: 'shop-2', port: 443 },
        { from: 'web-1', to: 'db-1', port: 5432 },
      ],
      ruleSets: [
        {
          name: 'RF-shop-prod',
          scope: OWN,
          allow: [{ from: 'app=pay env=prod', to: 'ams', extra: true }],
          deny: [{ from: 'any', to: 'ams', services: [{ port: 23, proto: 6 }], extra: true }],
        },
        { name: 'DB', scope: 'app=db env=prod', allow: [{ from: 'app=web env=prod', to: 'ams', extra: true }] },
      ],
    },
    AS_GUIDED,
  )
  const answer = await bench.ok(TOOL, SHOP)
  partial(t, answer.traffic_analysis, {
    allowed_by_default_possible: true,
    policy_decisions: { allowed: 1, blocked: 1, potentially_blocked: 1 },
  })
  t.match(answer.recommendations.join('\n'), /^1 row may pass only by default \(selective mode/m)
  const other = await bench.ok(TOOL, { app_name: 'db', env_name: 'prod' })
  partial(t, other.traffic_analysis, { allowed_by_default_possible: false, policy_decisions: { allowed: 1 } })
  t.equal(
    (await bench.ok(TOOL, { app_name: 'pay', env_name: 'prod' })).traffic_analysis.allowed_by_default_possible,
    false,
  )
})

t.test('allowed by default depends on both ends and on which one judged', async (t) => {
  const judge = async (own: Partial<HandMadeHost>, remote: Partial<HandMadeHost>, flow?: HandMadeFlow) => {
    const bench = await start(
      t,
      {
        hosts: {
          'shop-1': { ip: '10.0.0.1', labels: OWN, ...own },
          'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod', ...remote },
        },
        flows: [flow ?? { from: 'pay-1', to: 'shop-1' }],
        ruleSets: [{ name: 'all', scope: '', allow: [{ from: 'ams', to: 'ams', services: [{ port: 22, proto: 6 }] }] }],
      },
      AS_GUIDED,
    )
    const { traffic_analysis: traffic, recommendations } = await bench.ok(TOOL, SHOP)
    const coverage = await bench.ok('get-policy-coverage-report', SHOP)
    const advice = recommendations.join('\n')
    t.equal(coverage.allowed_by_default_possible, traffic.allowed_by_default_possible)
    t.equal(/other end alone/.test(coverage.recommendation), /other end alone/.test(advice))
    t.equal(/by default/.test(coverage.recommendation), traffic.allowed_by_default_possible)
    return [
      traffic.policy_decisions.allowed,
      traffic.allowed_by_default_possible,
      /^1 allowed row judged by the other end alone/m.test(advice),
    ]
  }
  const [outbound, ssh] = [
    { from: 'shop-1', to: 'pay-1' },
    { from: 'pay-1', to: 'shop-1', port: 22 },
  ]
  t.same(await judge({ mode: 'idle' }, { mode: 'selective' }), [0, true, false], 'idle here, selective there')
  t.same(await judge({ managed: false }, { mode: 'selective' }), [0, true, false], 'no VEN here')
  t.same(await judge({ mode: 'idle' }, { mode: 'selective' }, outbound), [0, true, false], 'the other way round')
  t.same(await judge({ mode: 'selective' }, { mode: 'selective' }), [0, true, false])
  t.same(await judge({ mode: 'selective' }, { mode: 'idle' }), [0, true, false])
  t.same(await judge({ mode: 'selective' }, { mode: 'idle' }, outbound), [0, true, false])
  t.same(await judge({ mode: 'idle' }, { mode: 'full' }, ssh), [1, false, false], 'a rule allows it at both ends')
  t.same(await judge({ managed: false }, { mode: 'full' }, { from: 'shop-1', to: 'pay-1', port: 22 }), [1, false, true])
  t.same(await judge({ mode: 'selective' }, { mode: 'full' }, ssh), [1, false, false])
  t.same(await judge({ mode: 'visibility_only' }, { mode: 'selective' }, ssh), [1, false, false])
  t.same(await judge({ mode: 'selective' }, { mode: 'visibility_only' }, ssh), [1, false, false])
})

t.test('points alone do not make an application ready if a stricter mode may cut traffic', async (t) => {
  const judge = async (mode: HandMadeHost['mode'] & string, ruleSets: HandMadeEstate['ruleSets'] & object) => {
    const bench = await start(
      t,
      {
        hosts: {
          'shop-1': { ip: '10.0.0.1', labels: OWN, mode },
          'shop-2': { ip: '10.0.0.2', labels: OWN, mode },
          'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod', mode },
        },
        flows: [{ from: 'pay-1', to: 'shop-1' }, ...INSIDE],
        ruleSets,
      },
      AS_GUIDED,
    )
    const answer = await bench.ok(TOOL, SHOP)
    return {
      score: answer.readiness_score,
      level: answer.readiness_level,
      coverage: factor(answer, 'policy_coverage').reason,
      advice: answer.recommendations.join('\n'),
    }
  }
  const empty = { ...RINGFENCE, allow: [] }
  const everything = { name: 'all', scope: '', allow: [{ from: 'ams', to: 'ams' }] }
  const stricter = /the next step is a stricter mode/
  const nothing = await judge('selective', [empty])
  partial(t, nothing, {
    score: 40,
    level: 'not_ready',
    coverage: '0 of 9 rows allowed (0 %)',
    advice:
      /^40 of 100, but a stricter mode could block what is allowed now: 9 rows may pass only by default; "RF-shop-prod" has no enabled rule\. Add allow rules first\.$/m,
  })
  t.notMatch(nothing.advice, stricter)
  const byDefault = await judge('selective', [RINGFENCE])
  partial(t, byDefault, {
    score: 75.6,
    level: 'partially_ready',
    coverage: '8 of 9 rows allowed (88.9 %)',
    advice: /^75\.6 of 100, but .*now: 1 row may pass only by default\. Add allow rules first\.$/m,
  })
  t.notMatch(byDefault.advice, /no enabled rule|next step/)
  const byRule = await judge('selective', [RINGFENCE, everything])
  partial(t, byRule, { score: 90, level: 'ready', coverage: '9 of 9 rows allowed (100 %)', advice: stricter })
  const unfilled = await judge('visibility_only', [empty, everything])
  partial(t, unfilled, { score: 85, level: 'partially_ready', coverage: '9 of 9 rows allowed (100 %)' })
  t.match(unfilled.advice, /^85 of 100, but .*now: "RF-shop-prod" has no enabled rule\. Add/m)
  t.notMatch(unfilled.advice, stricter)
  const ready = await judge('visibility_only', [RINGFENCE, everything])
  partial(t, ready, { score: 85, level: 'ready', advice: stricter })
  t.notMatch(ready.advice, /but a stricter/)
  t.equal((await judge('selective', [])).level, 'not_ready', 'without a rule or a ringfence')
})

t.test(
  'what rules in the words of iptables do is not known, so no points make an application ready beside them',
  async (t) => {
    const everything = { name: 'all', scope: '', allow: [{ from: 'ams', to: 'ams' }] }
    const plain = handMade({
      hosts: {
        'shop-1': { ip: '10.0.0.1', labels: OWN },
        'shop-2': { ip: '10.0.0.2', labels: OWN },
        'shop-3': { ip: '10.0.0.3', labels: `${OWN} role=db` },
      },
      flows: [...INSIDE, { from: 'shop-1', to: 'shop-3' }],
      ruleSets: [RINGFENCE, everything],
    })
    const table = ipTablesRule('-j DROP')
    const judge = async ({ tables = [], isCut = false }: { tables?: object[]; isCut?: boolean }) => {
      const ruleSets = plain.ruleSets.map((set, at) => (at === 0 ? { ...set, ip_tables_rules: tables } : set))
      const bench = await startBench(t, { estate: { ...plain, ruleSets } as Estate })
      const { faults } = bench.simulator
      if (isCut) faults.add({ kind: 'status', path: /active\/services$/, times: 9, status: 403, body: [] })
      const { recommendation } = await bench.ok('get-policy-coverage-report', SHOP)
      const { readiness_score: score, readiness_level: level, recommendations } = await bench.ok(TOOL, SHOP)
      return {
        score,
        level,
        advice: recommendations.slice(-2),
        coverage: /[^ .][^.]*iptables.*/.exec(recommendation)?.[0],
      }
    }
    const stricter = '85 of 100: the next step is a stricter mode for the 3 workloads not in full enforcement.'
    const ready = await judge({ tables: [{ ...table, enabled: false }] })
    partial(t, ready, { score: 85, level: 'ready', coverage: undefined })
    t.equal(ready.advice.at(-1), stricter)
    t.same(await judge({ tables: [table] }), {
      score: null,
      level: 'unknown',
      advice: [
        '9 rows undecided because of rules in the words of iptables: not counted as allowed.',
        '1 rule in the words of iptables is not judged.',
      ],
      coverage: 'Coverage is not known: of 9 rows all are undecided because of rules in the words of iptables.',
    })
    const [role] = plain.labels.filter(({ value }) => value === 'db')
    const partly = await judge({ tables: [{ ...table, actors: [{ label: { href: role!.href } }] }] })
    t.equal(partly.level, 'partially_ready')
    t.equal(
      partly.advice.at(-1),
      '80.6 of 100, but a stricter mode could block what is allowed now: 1 row undecided because of rules in the words of iptables; 1 rule in the words of iptables is not judged.',
    )
    const unread = 'Whether rules in the words of iptables apply is not known: the policy in force could not be read'
    const { advice, ...cut } = await judge({ isCut: true })
    t.same(cut, { score: null, level: 'unknown', coverage: undefined })
    t.equal(advice.at(-1), `${unread}.`)
  },
)

t.test('judges rows by the policy in force and says what is undecided', async (t) => {
  const estate = (rule: HandMadeRuleSet): HandMadeEstate => ({
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN, mode: 'selective' } },
    flows: [{ from: '203.0.113.1', to: 'shop-1', port: 443 }],
    ruleSets: [rule],
  })
  const judge = async (bench: Bench) => {
    const { traffic_analysis: traffic, recommendations } = await bench.ok(TOOL, SHOP)
    const { recommendation } = await bench.ok('get-policy-coverage-report', SHOP)
    const weak = /(?:1 row undecided because [^:]*: not counted as allowed\.\s)?1 row may pass only by default[^.]*\./
    return {
      possible: traffic.allowed_by_default_possible,
      share: traffic.coverage_percentage,
      readiness: weak.exec(recommendations.join('\n'))?.[0],
      coverage: weak.exec(recommendation)?.[0],
    }
  }
  const ruleFor = (services: HandMadeRule['services'] & object): HandMadeRuleSet => ({
    name: 'Web',
    scope: OWN,
    allow: [{ from: 'any', to: 'ams', extra: true, services }],
  })
  const doubt =
    '1 row may pass only by default (selective mode, or one that is not known): no rule is known to allow them'

  const web = await start(t, estate(ruleFor([{ port: 443, proto: 6 }])), AS_GUIDED)
  t.same(await judge(web), { possible: false, share: 100, readiness: undefined, coverage: undefined })

  const other = await start(t, estate(ruleFor([{ port: 443, proto: 17 }])), AS_GUIDED)
  t.same(await judge(other), {
    possible: true,
    share: 0,
    readiness: `${doubt}, so full enforcement could block them.`,
    coverage: `${doubt}.`,
  })

  // Of the program at the destination the row says nothing.
  const { href } = await web.pce.services.create({ name: 'nginx', windows_services: [{ process_name: 'nginx.exe' }] })
  const [set] = await web.pce.ruleSets.getAll('draft')
  await web.pce.rules.update(set!.rules![0]!.href, { ingress_services: [{ href }] })
  t.equal((await judge(web)).possible, false, 'a draft is not in force')
  await web.pce.provisionPolicyChanges('programs', [set!.href, href])
  t.same(await judge(web), {
    possible: true,
    share: null,
    readiness: `1 row undecided because of rules for certain processes: not counted as allowed.\n${doubt}, so full enforcement could block them.`,
    coverage: undefined,
  })

  other.simulator.faults.add({ kind: 'status', path: /active\/services$/, times: 9, status: 403, body: [] })
  t.same(await judge(other), {
    possible: true,
    share: null,
    readiness: `1 row undecided because of a policy that could not be read: not counted as allowed.\n${doubt}, so full enforcement could block them.`,
    coverage: undefined,
  })
})

t.test('what no rule allows may be blocked already, where a selective source has a deny rule for it', async (t) => {
  const bench = await start(t, {
    hosts: {
      'shop-1': { ip: '10.0.0.1', labels: OWN, mode: 'selective' },
      'pay-1': { ip: '10.0.3.1', labels: 'app=pay env=prod' },
    },
    flows: [{ from: 'shop-1', to: 'pay-1', port: 25 }],
    ruleSets: [{ name: 'mail', scope: '', deny: [{ from: 'app=shop', to: 'app=pay' }] }],
  })
  const { traffic_analysis: traffic, factors, assumes, recommendations } = await bench.ok(TOOL, SHOP)
  t.same(
    traffic.policy_decisions,
    { allowed: 0, potentially_blocked: 1, blocked: 0, unknown: 0 },
    'not allowed, for sure',
  )
  t.same(
    factors.filter(({ factor }: Json) => factor === 'no_blocked_traffic'),
    [{ factor: 'no_blocked_traffic', points: 0, max: 10, reason: '1 row possibly blocked' }],
  )
  t.same(assumes, ['P51'])
  const BECAUSE =
    '1 row that no rule allows may be blocked already: undecided because of deny rules at sources in selective mode.'
  t.ok(recommendations.includes(BECAUSE), recommendations.join('\n'))
  const coverage = await bench.ok('get-policy-coverage-report', SHOP)
  t.same([coverage.assumes, coverage.recommendation.includes(BECAUSE)], [['P51'], true])
})

t.test('also names gaps in outbound and internal traffic', async (t) => {
  const bench = await start(t, {
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN }, 'shop-2': { ip: '10.0.0.2', labels: OWN } },
    flows: [
      { from: 'shop-1', to: 'shop-2' },
      { from: 'shop-2', to: 'shop-1' },
      { from: 'shop-1', to: 'shop-2', port: 22 },
      { from: 'shop-1', to: '203.0.113.9' },
    ],
    ruleSets: [{ name: 'ssh', scope: OWN, allow: [{ from: 'ams', to: 'ams', services: [{ port: 22, proto: 6 }] }] }],
  })
  t.same((await bench.ok(TOOL, SHOP)).recommendations, [
    '1 of 1 outbound row not allowed: add rules at their destinations, by IP list for those outside; see uncovered_flows.',
    '2 of 3 intra rows not allowed: the ringfence can allow them.',
    'No ringfence: plan "RF-shop-prod" with create-ringfence and dry_run.',
  ])
})

t.test('the ringfence must have exactly this name and scope', async (t) => {
  const hosts = { 'shop-1': { ip: '10.0.0.1', labels: [...OWN.split(' '), 'loc=eu'] } }
  const flows = [{ from: '203.0.113.1', to: 'shop-1', port: 443 }]
  const allow = [{ from: 'ams', to: 'ams' }]
  const withSets = async (t: Parameters<typeof startBench>[0], ...ruleSets: HandMadeEstate['ruleSets'] & object) =>
    start(t, { hosts, flows, ruleSets })
  const ringfenceFactor = async (bench: Bench) => {
    const answer = await bench.ok(TOOL, SHOP)
    const { points, reason } = factor(answer, 'ringfence')
    t.equal(answer.has_ringfence, points === 20)
    return { answer, points, reason, advice: answer.recommendations.join('\n') }
  }

  const near = await ringfenceFactor(
    await withSets(
      t,
      { name: 'RF-shop-prod2', scope: OWN, allow },
      { name: 'Old RF-shop-prod', scope: OWN, allow },
      { name: 'rf-shop-prod', scope: OWN, allow },
    ),
  )
  partial(t, near, { points: 0, reason: 'no rule set "RF-shop-prod"', advice: /No ringfence: plan "RF-shop-prod"/ })
  partial(t, near.answer.ringfence, { name: 'RF-shop-prod', provisioned: false, conflicts: [] })
  t.notOk('href' in near.answer.ringfence)

  for (const scope of [
    'app=shop',
    'env=prod',
    '',
    'app=shop env=prod loc=eu',
    'app=shop env=test',
    'app=shop app=shop',
  ]) {
    const wrong = await ringfenceFactor(await withSets(t, { name: 'RF-shop-prod', scope, allow }))
    partial(t, wrong, {
      points: 0,
      reason: '"RF-shop-prod" has a different scope',
      advice: /its scope is not exactly this app/,
    })
    partial(t, wrong.answer.ringfence.conflicts, [{ href: '/orgs/1/sec_policy/draft/rule_sets/1', why: 'other_scope' }])
  }
  const reversed = await ringfenceFactor(await withSets(t, { name: 'RF-shop-prod', scope: 'env=prod app=shop', allow }))
  partial(t, reversed, { points: 20, reason: '"RF-shop-prod" exists' })
  t.equal(reversed.answer.ringfence.href, '/orgs/1/sec_policy/draft/rule_sets/1')

  const twins = await ringfenceFactor(await withSets(t, { ...RINGFENCE, allow }, { ...RINGFENCE, allow }))
  partial(t, twins, {
    points: 20,
    reason: '"RF-shop-prod" exists, more than once with this scope',
    advice:
      /2 rule sets are named "RF-shop-prod" and have exactly this scope; of them only .*rule_sets\/\d+ was judged/,
  })
  partial(t, twins.answer.ringfence.conflicts, [{ why: 'same_scope' }])

  const bench = await withSets(t, { ...RINGFENCE, allow: [{ from: 'ams', to: 'ams', enabled: false }] })
  partial(t, await ringfenceFactor(bench), {
    points: 20,
    reason: '"RF-shop-prod" exists, without an enabled rule',
    advice: /has no enabled rule/,
  })
  const [set] = await bench.pce.ruleSets.getAll('draft')
  const [app, env] = set!.scopes[0]!.map(({ label }) => ({ label: { href: label!.href } }))
  for (const scopes of [
    [[app, env], [app]],
    [[app, { ...env, exclusion: true }]],
    [
      [app, env],
      [app, env],
    ],
  ]) {
    await bench.pce.ruleSets.update(set!.href, { scopes })
    partial(
      t,
      await ringfenceFactor(bench),
      { points: 0, reason: '"RF-shop-prod" has a different scope' },
      JSON.stringify(scopes),
    )
  }
  await bench.pce.ruleSets.update(set!.href, { scopes: [[app, env]], enabled: false })
  const disabled = await ringfenceFactor(bench)
  partial(t, disabled, {
    points: 0,
    reason: '"RF-shop-prod" is disabled',
    advice: /"RF-shop-prod" is disabled: enable it/,
  })
  partial(t, disabled.answer.ringfence, { enabled: false, provisioned: true, pending_changes: true })
  await bench.pce.ruleSets.delete(set!.href)
  const deleted = await ringfenceFactor(bench)
  partial(t, deleted, { points: 0, reason: '"RF-shop-prod" is marked for deletion', advice: /marked for deletion/ })
  partial(t, deleted.answer.ringfence, { provisioned: true, conflicts: [{ why: 'pending_deletion' }] })
  await bench.pce.discardPendingPolicyChanges()
  await bench.pce.ruleSets.update(set!.href, { enabled: false })
  await bench.ok('provision-policy', {})
  const off = await ringfenceFactor(bench)
  partial(t, off.answer.ringfence, { enabled: false, provisioned: false, pending_changes: false })
})

t.test('counts a draft ringfence and says that it is not in force', async (t) => {
  const bench = await start(t, {
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN } },
    flows: [{ from: '203.0.113.1', to: 'shop-1', port: 443 }],
  })
  const labels = await bench.pce.labels.getAll()
  const scopes = [labels.map(({ href }) => ({ label: { href } }))]
  const made = await bench.pce.ruleSets.create({ name: 'RF-shop-prod', scopes, enabled: true })
  await bench.pce.rules.create(
    {
      enabled: true,
      providers: [AMS],
      consumers: [AMS],
      ingress_services: [{ port: 443, proto: 6 }],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    },
    made.href,
  )
  const answer = await bench.ok(TOOL, SHOP)
  partial(t, factor(answer, 'ringfence'), { points: 20, reason: '"RF-shop-prod" exists, not provisioned' })
  partial(t, answer, {
    has_ringfence: true,
    ringfence: { enabled: true, rules: 1, provisioned: false, pending_changes: true, conflicts: [] },
  })
  t.match(answer.recommendations.join('\n'), /exists in the draft only: provision it/)
})

t.test('ready from 80, with no recommendation without a figure behind it', async (t) => {
  const bench = await start(t, {
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN }, 'shop-2': { ip: '10.0.0.2', labels: OWN } },
    flows: INSIDE,
    ruleSets: [RINGFENCE],
  })
  const answer = await bench.ok(TOOL, { app_name: 'app=shop', env_name: '/orgs/1/labels/2' })
  partial(t, answer, { readiness_score: 85, readiness_level: 'ready' })
  t.same(answer.recommendations, [
    '85 of 100: the next step is a stricter mode for the 2 workloads not in full enforcement.',
  ])
})

t.test('many neighbours: lists are cut to the budget, totals and score are not', async (t) => {
  const many = Array.from({ length: 150 }, (_, at) => `remote-${String(at).padStart(3, '0')}`)
  const estate: HandMadeEstate = {
    hosts: {
      'shop-1': { ip: '10.0.0.1', labels: OWN },
      ...Object.fromEntries(many.map((name, at) => [name, { ip: `10.1.0.${at}`, labels: `app=${name} env=prod` }])),
    },
    flows: [
      ...many.map((from): HandMadeFlow => ({ from, to: 'shop-1', port: 443 })),
      ...Array.from({ length: 30 }, (_, at): HandMadeFlow => ({ from: `203.0.113.${at}`, to: 'shop-1', port: 443 })),
    ],
  }
  const whole = await (await start(t, estate)).ok(TOOL, SHOP)
  t.equal(whole.remote_apps.uncovered.length, 150)
  t.equal(whole.uncovered_flows.length, 10)
  t.equal(whole.uncovered_flows_total, 180)
  partial(t, whole.unlabelled_sources, { total: 30, uncovered: 30 })
  t.equal(whole.unlabelled_sources.top.length, 10)
  t.same(whole.truncated_sections, ['uncovered_flows', 'unlabelled_sources.top'])
  t.match(whole.recommendations[0], /"remote-004 \(prod\)" and 145 more is allowed/)
  const small = await (await start(t, estate, { budget: 5_000 })).ok(TOOL, SHOP)
  t.ok(Buffer.byteLength(JSON.stringify(small)) <= 5_000)
  t.ok(small.remote_apps.uncovered.length < 150)
  t.same(small.remote_apps.totals, { covered: 0, uncovered: 150, partially_covered: 0 })
  t.same(small.factors, whole.factors)
  t.ok(small.truncated_sections.includes('remote_apps.uncovered'))
})

t.test('refusals', async (t) => {
  const bench = await start(t, {
    hosts: { 'shop-1': { ip: '10.0.0.1', labels: OWN } },
    labels: ['app=shopping', 'env=prod-eu'],
  })
  bench.simulator.clearRequests()
  partial(t, await bench.fails(TOOL, { ...SHOP, app_name: 'sho' }, 'not_found'), {
    key: 'app',
    argument: 'app_name',
    near_names: ['shop', 'shopping'],
  })
  partial(t, await bench.fails(TOOL, { ...SHOP, env_name: 'Prod' }, 'not_found'), {
    key: 'env',
    near_names: ['prod', 'prod-eu'],
  })
  await bench.fails(TOOL, { ...SHOP, env_name: 'app=shop' }, 'not_found')
  t.notOk(
    bench.simulator.requests.some(({ path }) => path.includes('traffic_flows')),
    'an unknown application is no query for everything',
  )
  for (const bad of [
    { app_name: 'shop' },
    { env_name: 'prod' },
    { ...SHOP, app_name: '' },
    { ...SHOP, lookback_days: 0 },
    { ...SHOP, lookback_days: 366 },
    { ...SHOP, lookback_days: 1.5 },
    { ...SHOP, lookback: 3 },
  ])
    await bench.fails(TOOL, bad, 'invalid_argument')
  bench.simulator.faults.add({
    kind: 'status',
    path: /async_queries$/,
    method: 'POST',
    times: 1,
    status: 406,
    body: [{ token: 'input_validation_error', message: 'x' }],
  })
  await bench.fails(TOOL, SHOP, 'pce_error')
  bench.simulator.faults.add({ kind: 'status', path: /rule_sets$/, times: 1, status: 403, body: [] })
  await bench.fails(TOOL, SHOP, 'pce_error')
})

t.test('figures of a generated estate match an independent count', async (t) => {
  const bench = await startBench(t, { flows: 2000 })
  const labels = await bench.pce.labels.getAll()
  const label = (key: string, value: string) => ({
    label: { href: labels.find((one) => one.key === key && one.value === value)!.href },
  })
  const side = [[label('app', 'payments'), label('env', 'prod')]]
  const ask = async (direction: 'sources' | 'destinations') =>
    bench.pce.getTrafficFlowsAsync('truth', {
      start_date: '2026-05-16T00:00:00Z',
      end_date: '2026-06-15T23:59:59Z',
      sources: { include: [[]], exclude: [] },
      destinations: { include: [[]], exclude: [] },
      services: { include: [], exclude: [] },
      policy_decisions: ['allowed', 'potentially_blocked', 'blocked'],
      [direction]: { include: side, exclude: [] },
    })
  const [inbound, outbound] = [await ask('destinations'), await ask('sources')]
  const rows = onceEach([...new Map([...inbound, ...outbound].map((flow) => [JSON.stringify(flow), flow])).values()])
  // Of the ICMP type, and of the program at the destination, a row says nothing, and rules are for some of them.
  const isOpen = ({ policy_decision: decision, service: { port, proto } }: TrafficFlow) =>
    decision === 'allowed' && (proto === 1 || port === 80)
  const allowed = rows.filter((flow) => flow.policy_decision === 'allowed' && !isOpen(flow))
  t.ok(rows.length > 40 && rows.length < inbound.length + outbound.length, 'some run inside the application')
  const connections = (flows: TrafficFlow[]) => flows.reduce((sum, flow) => sum + (flow.num_connections ?? 0), 0)

  const answer = await bench.ok(TOOL, { app_name: 'payments', env_name: 'prod' })
  partial(t, answer.traffic_analysis, {
    total_flows: rows.length,
    total_connections: connections(rows),
    policy_decisions: { allowed: allowed.length, undecided: rows.filter(isOpen).length },
    coverage_percentage: Math.round((1000 * allowed.length) / rows.length) / 10,
    connection_coverage_percentage: Math.round((1000 * connections(allowed)) / connections(rows)) / 10,
  })
  const of = (flow: TrafficFlow, key: string) => flow.src.workload?.labels?.find((one) => one.key === key)?.value
  const remotes = new Map<string, Set<string>>()
  const unlabelled = new Set<string>()
  for (const flow of inbound) {
    const [app, env] = [of(flow, 'app'), of(flow, 'env')]
    if (app === undefined || env === undefined) unlabelled.add(JSON.stringify(flow.src))
    else if (app !== 'payments' || env !== 'prod')
      remotes.set(
        `${app} ${env}`,
        (remotes.get(`${app} ${env}`) ?? new Set()).add(isOpen(flow) ? 'undecided' : flow.policy_decision),
      )
  }
  const named = (test: (decisions: Set<string>) => boolean) =>
    [...remotes]
      .filter(([, decisions]) => test(decisions))
      .map(([name]) => name)
      .sort()
  const shown = (list: Json[]) => list.map(({ app, env }) => `${app} ${env}`).sort()
  t.same(
    shown(answer.remote_apps.covered),
    named((decisions) => decisions.has('allowed') && decisions.size === 1),
  )
  t.same(
    shown(answer.remote_apps.uncovered),
    named((decisions) => !decisions.has('allowed') && !decisions.has('undecided')),
  )
  t.same(
    shown(answer.remote_apps.partially_covered),
    named((decisions) => decisions.has('undecided') || (decisions.has('allowed') && decisions.size > 1)),
  )
  t.ok(unlabelled.size > 5)
  t.equal(answer.unlabelled_sources.total, unlabelled.size)
})
