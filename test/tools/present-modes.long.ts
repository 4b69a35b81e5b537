/** The ends of traffic are judged in the modes that they have now, by every tool alike, whatever their rows report. */
import t, { type Test } from 'tap'
import { handMade, type HandMadeEstate } from './hand-made.js'
import type { Bench, Json } from './harness.js'
import { partial } from '../partial.js'
import { reportModes, startTwisted, type Twist } from './twisted.js'

const ESTATE: HandMadeEstate = {
  hosts: {
    a1: { ip: '10.0.0.1', labels: 'app=A env=prod' },
    a2: { ip: '10.0.0.2', labels: 'app=A env=prod', mode: 'full' },
    a3: { ip: '10.0.0.3', labels: 'app=A env=prod', mode: 'idle' },
    strict: { ip: '10.0.1.1', labels: 'app=B env=prod', mode: 'full' },
    lax: { ip: '10.0.1.2', labels: 'app=C env=prod' },
    idle: { ip: '10.0.1.3', labels: 'app=D env=prod', mode: 'idle' },
    mild: { ip: '10.0.1.4', labels: 'app=E env=prod', mode: 'selective' },
  },
  // Any sum of connections tells which flows it is of.
  flows: [
    { from: 'strict', to: 'a1', port: 22, connections: 1 },
    { from: 'lax', to: 'a1', port: 22, connections: 2 },
    { from: 'idle', to: 'a1', port: 23, connections: 4 },
    { from: 'lax', to: 'a2', port: 443, connections: 8 },
    { from: 'a1', to: 'strict', port: 5, connections: 16 },
    { from: 'a1', to: 'lax', port: 6, connections: 32 },
    { from: 'lax', to: 'a1', port: 443, connections: 64 },
    { from: 'strict', to: 'a1', port: 443, connections: 128 },
    { from: 'mild', to: 'a3', port: 22, connections: 256 },
  ],
  ruleSets: [
    {
      name: 'A',
      scope: 'app=A env=prod',
      allow: [{ from: 'ams', to: 'ams', extra: true, services: [{ port: 443, proto: 6 }] }],
    },
  ],
}
const A = { app_name: 'A', env_name: 'prod' }
const WEEK = { start_date: '2026-06-08', end_date: '2026-06-14' }
/** What rows report in place of the mode of today. */
const OLD = { full: 'visibility_only', visibility_only: 'full', idle: 'full', selective: 'full' }
const RULE = '/orgs/1/sec_policy/draft/rule_sets/1/sec_rules/1'

const CALLS = {
  rows: ['get-traffic-flows', { ...WEEK, group_by: ['policy_decision'], decide_by: 'active' }],
  preview: ['preview-enforcement-change', { ...A, enforcement_mode: 'full' }],
  planned: ['set-enforcement-mode', { ...A, enforcement_mode: 'full', dry_run: true }],
  one: ['update-workload', { name: 'a1', enforcement_mode: 'full', dry_run: true }],
  readiness: ['enforcement-readiness', A],
  coverage: ['get-policy-coverage-report', A],
  compliance: ['compliance-check', A],
  ringfence: ['create-ringfence', { ...A, dry_run: true }],
  rule: ['update-sec-rule', { href: RULE, enabled: false, dry_run: true }],
} as const
type Said = Record<keyof typeof CALLS, Json>

async function start(t: Test, estate = ESTATE) {
  const bench = await startTwisted(t, { estate: handMade(estate) })
  bench.twist(reportModes((mode) => OLD[mode as 'full']))
  return bench
}

async function ask({ ok }: Bench): Promise<Said> {
  const said: Record<string, Json> = {}
  for (const [name, [tool, args]] of Object.entries(CALLS)) said[name] = await ok(tool, args)
  return said as Said
}

t.test('whatever rows report, all tools judge by the modes that explain-flow judges by', async (t) => {
  const bench = await start(t)
  const blocked: number[] = []
  for (const { from, to, port, connections } of ESTATE.flows!) {
    const asked = { source: from, destination: to, port, proto: 'tcp', lookback_days: 0 }
    if ((await bench.ok('explain-flow', asked)).active.verdict === 'blocked') blocked.push(connections!)
  }
  t.same(blocked, [1, 16], 'the inventory says that only strict drops what no rule allows')
  const { estate, movement, ...said } = {
    ...(await ask(bench)),
    estate: await bench.ok('compliance-check'),
    movement: await bench.ok('detect-lateral-movement-paths', { app_name: 'C', env_name: 'prod' }),
  }
  const passing = { cut: 2 + 4 + 32 + 256, stays_allowed: 8 + 64 + 128, stays_blocked: 1 + 16 }
  for (const { connections } of [said.preview, said.planned]) {
    const { cut, stays_allowed, stays_blocked } = connections
    t.same({ cut, stays_allowed, stays_blocked }, passing)
  }
  t.same(said.one.effect.traffic.connections, { cut: 38, possibly_cut: 0, kept: 192, blocked: 17 })
  const words = said.rows.data.map(([word, connections]: Json[]) => `${connections} ${word}`)
  t.same(words, ['294 potentially_blocked', '200 allowed', '17 blocked'])
  const decisions = { allowed: 3, potentially_blocked: 4, blocked: 2 }
  t.same(said.readiness.traffic_analysis.policy_decisions, { ...decisions, unknown: 0 })
  const { inbound, outbound } = said.coverage
  t.same([inbound.by_decision.blocked, outbound.by_decision.blocked], [1, 1])
  for (const { findings } of [said.compliance, estate])
    partial(t, findings.find(({ id }: Json) => id === 'SEG-4').evidence.counts, decisions)
  t.equal(said.ringfence.policy_coverage.allowed_by_default_possible, 1, 'of mild, which selective mode lets out')
  t.same(said.rule.observed.connections, { cut: 8 + 128, cut_once_enforced: 64, undecided: 0, not_affected: 0 })
  t.equal(movement.blocked_edges, 1)
})

t.test('what is not known of a mode is said once in each answer', async (t) => {
  const bench = await start(t)
  const lost = (status: number) =>
    bench.simulator.faults.add({
      kind: 'status',
      path: /workloads\/[^/]+-0000000000\d[4-7]$/,
      status,
      times: 99,
      body: [],
    })
  for (const [status, sentence] of [
    [403, /The mode of \d workloads is not known/g],
    [
      404,
      /\d workloads of the rows are not in the inventory \(removed, or not visible to this account\): the mode is not known/g,
    ],
  ] as const) {
    bench.simulator.faults.clear()
    lost(status)
    const said = await ask(bench)
    const times = Object.entries(said).map(([name, answer]) => [name, JSON.stringify(answer).match(sentence)?.length])
    t.same(Object.fromEntries(times), Object.fromEntries(Object.keys(CALLS).map((name) => [name, 1])))
  }
})

t.test('few ends are looked up, and for many the list is read', async (t) => {
  for (const [many, reads] of [
    [19, { one: 20, list: 0 }],
    [20, { one: 0, list: 1 }],
  ] as const) {
    const others = Array.from(
      { length: many },
      (_, at) => [`b${at}`, { ip: `10.0.1.${at}`, labels: 'app=B env=prod' }] as const,
    )
    const bench = await start(t, {
      hosts: { a1: ESTATE.hosts!.a1!, ...Object.fromEntries(others) },
      flows: others.map(([name]) => ({ from: name, to: 'a1', port: 443 })),
    })
    const since = bench.simulator.requests.length
    await bench.ok(...CALLS.rows)
    const paths = bench.simulator.requests.slice(since).map(({ path }) => path)
    const count = (kind: RegExp) => paths.filter((path) => kind.test(path)).length
    const found = { one: count(/\/workloads\/[^/?]+$/), list: count(/\/workloads(\?.*)?$/) }
    t.same(found, reads, `${many + 1} ends`)
  }
})

t.test('where rows do not all fit, the list is read before they are passed on', async (t) => {
  const bench = await start(t)
  const summary = { ...WEEK, decide_by: 'active' }
  const whole = await bench.ok('get-traffic-flows-summary', summary)
  const since = bench.simulator.requests.length
  const parts = await bench.ok('get-traffic-flows-summary', { ...summary, complete: true, max_results: 4 })
  const paths = bench.simulator.requests.slice(since).map(({ path }) => path)
  t.equal(paths.filter((path) => /\/workloads(\?.*)?$/.test(path)).length, 1)
  t.equal(parts.totals.rows, whole.totals.rows)
  t.same(parts.by_policy_decision, whole.by_policy_decision)
})

t.test('a mode that could not be read decides nothing, and hides no other one', async (t) => {
  const refuse =
    (path: RegExp): Twist =>
    (request) =>
      path.test(request.path) ? { status: 403, body: '[]' } : undefined
  const preview = async (...refused: Twist[]) => {
    const bench = await start(t)
    const old = reportModes((mode) => OLD[mode as 'full'])
    bench.twist((request, answer) => refused.map((one) => one(request, answer)).find(Boolean) ?? old(request, answer))
    const { connections } = await bench.ok(...CALLS.preview)
    return Object.fromEntries(Object.entries(connections).filter(([, count]) => count !== 0))
  }
  const known = { cut: 2 + 4 + 32 + 256, stays_allowed: 8 + 64 + 128, stays_blocked: 1 + 16 }
  t.same(await preview(), known)
  // Whether strict drops what no rule allows is then open, and the rest is not.
  const one = { cut: known.cut, possibly_cut: 1 + 16, stays_allowed: known.stays_allowed }
  t.same(await preview(refuse(/\/workloads\/[^/]+04$/)), one, 'strict is refused')
  const movement = await start(t)
  movement.twist(refuse(/\/workloads$/))
  const { blocked_edges, message } = await movement.ok('detect-lateral-movement-paths')
  t.same(blocked_edges, 0, 'no row blocks an edge by the mode that it reports')
  t.match(message, /The mode of \d workloads is not known/)
})

t.test('ringfences of a batch read the list of workloads once', async (t) => {
  const apps = ['P', 'Q', 'R']
  const far = Array.from({ length: 22 }, (_, at) => `far${at}`)
  const bench = await start(t, {
    hosts: Object.fromEntries([
      ...apps.map((app, at) => [app, { ip: `10.0.0.${at + 1}`, labels: `app=${app} env=prod` }] as const),
      ...far.map((name, at) => [name, { ip: `10.0.1.${at + 1}`, labels: 'app=far env=prod' }] as const),
    ]),
    flows: apps.flatMap((app) => far.map((from) => ({ from, to: app, port: 22 }))),
  })
  const since = bench.simulator.requests.length
  await bench.ok('ringfence-batch', { apps: apps.map((app) => ({ app_name: app, env_name: 'prod' })), dry_run: true })
  const lists = bench.simulator.requests
    .slice(since)
    .filter(
      ({ path, query }: Json) => /\/workloads(\?.*)?$/.test(path) && !JSON.stringify([path, query]).includes('labels'),
    )
  t.equal(lists.length, 1)
})

t.test('the time of reading modes between two parts is none of the query', async (t) => {
  const bench = await startTwisted(t, { seed: 5, workloads: 60, flows: 400, queryTimeout: 600 })
  const asked = { ...WEEK, complete: true, max_results: 50, decide_by: 'active' }
  const { totals } = await bench.ok('get-traffic-flows-summary', asked)
  bench.twist(({ path }) => {
    if (/\/orgs\/1\/workloads$/.test(path)) bench.advance(700_000)
    return undefined
  })
  t.equal((await bench.ok('get-traffic-flows-summary', asked)).totals.rows, totals.rows)
})
