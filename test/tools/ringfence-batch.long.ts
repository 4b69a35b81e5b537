/** ringfence-batch: order, what is left out, and what one application's failure does to the others. */
import t, { type Test } from 'tap'
import type { Estate } from '../../pce-simulator/model.js'
import { partial } from '../partial.js'
import { handMade, ipTablesRule, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type BenchOptions, type Json } from './harness.js'

/** dns is used by everyone, so it is infrastructure; shop uses pay. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'shop-1': { ip: '10.0.0.2', labels: 'app=shop env=prod' },
    'crm-1': { ip: '10.0.0.3', labels: 'app=crm env=prod' },
    'dns-1': { ip: '10.0.0.4', labels: 'app=dns env=prod' },
    'quiet-1': { ip: '10.0.0.5', labels: 'app=quiet env=prod' },
    'bare-1': { ip: '10.0.0.6' },
  },
  labels: ['app=ghost'],
  flows: [
    ...['pay-1', 'shop-1', 'crm-1'].map((from) => ({ from, to: 'dns-1', port: 53, proto: 17, connections: 50 })),
    { from: 'shop-1', to: 'pay-1', port: 443, connections: 5 },
    { from: 'bare-1', to: 'pay-1', port: 22 },
  ],
}

const prod = (...apps: string[]) => apps.map((app) => ({ app_name: app, env_name: 'prod' }))
const start = (t: Test, options: BenchOptions = {}) => startBench(t, { estate: handMade(ESTATE), ...options })
const brief = ({ results }: Json) => results.map(({ app, status }: Json) => `${app} ${status}`)
const ruleSetNames = async ({ pce }: Bench) => (await pce.ruleSets.getAll()).map(({ name }) => name)
const queries = ({ simulator }: Bench, name: string) =>
  simulator.requests.filter(({ method, body }) => method === 'POST' && (body as Json)?.query_name === name).length

t.test('each application gets its ringfence, in the given order, with its own options', async (t) => {
  const bench = await start(t)
  const apps = [
    { ...prod('shop')[0], selective: true, deny_consumer: 'ams' },
    { ...prod('pay')[0], ruleset_name: 'pay ring' },
    { ...prod('dns')[0], selective: true, deny_service: { port: 53, proto: 'udp' }, skip_allowed: true },
  ]
  bench.writes()
  const plan = await bench.ok('ringfence-batch', { apps, dry_run: true })
  t.same(bench.writes(), [])
  partial(t, plan, {
    message: 'Planned 3 ringfences.',
    summary: {
      total_apps: 3,
      successful: 3,
      errors: 0,
      skipped: 0,
      dry_run: true,
      auto_ordered: false,
      rules_created: 0,
      rulesets_created: 0,
      sources_cut: 1,
    },
    order: [{ app: 'shop' }, { app: 'pay' }, { app: 'dns' }],
  })
  const done = await bench.ok('ringfence-batch', { apps })
  t.same(brief(done), ['shop success', 'pay success', 'dns success'])
  // shop: inside and deny; pay: inside and shop; dns: inside, three clients and deny.
  partial(t, done.summary, { rulesets_created: 3, rules_created: 9, dry_run: false })
  t.same(
    done.results.map(({ result }: Json) => [result.ruleset.name, result.ruleset.rules.length]),
    [
      ['RF-shop-prod', 2],
      ['pay ring', 2],
      ['RF-dns-prod', 5],
    ],
  )
  t.equal(done.results[0].result.deny_consumer, 'ams')
  t.equal(plan.results[2].result.planned_rules.at(-1).services, '53/udp')
  t.same(
    done.results.map(({ result }: Json) => result.warnings_of_plan),
    plan.results.map(({ result }: Json) => (result.warnings.length === 0 ? undefined : result.warnings.length)),
    'the plans are counted, not repeated',
  )
  t.equal(done.note, 'Plans and their warnings (warnings_of_plan) are shown by the same call with dry_run.')
  t.notOk(JSON.stringify(done.results).includes('left_out'), 'which is said once for all')
  for (const [at, { result }] of done.results.entries())
    t.same(result.would_be_cut, plan.results[at].result.would_be_cut)
  bench.writes()
  const again = await bench.ok('ringfence-batch', { apps })
  t.same(bench.writes(), [], 'a second time there is nothing to write')
  partial(t, again.summary, { successful: 3, rulesets_created: 0, rules_created: 0 })
})

t.test('auto_order puts infrastructure first, and ranks the estate once', async (t) => {
  const bench = await start(t)
  const plan = await bench.ok('ringfence-batch', {
    apps: prod('quiet', 'crm', 'pay', 'dns'),
    auto_order: true,
    dry_run: true,
  })
  t.equal(plan.order[0].app, 'dns')
  partial(t, plan.order.at(-1), { app: 'quiet', infrastructure_score: 0 })
  const scores = plan.order.map(({ infrastructure_score: score }: Json) => score)
  t.same(
    scores,
    scores.toSorted((a: number, b: number) => b - a),
  )
  t.same(
    plan.results.map(({ app }: Json) => app),
    plan.order.map(({ app }: Json) => app),
  )
  t.equal(plan.summary.auto_ordered, true)
  t.equal(queries(bench, 'mcp-ringfence-estate'), 1)
  t.equal(queries(bench, 'mcp-ringfence-inbound'), 4)
  const steps = bench.progress.map(({ progress }) => progress)
  t.same(
    steps,
    steps.toSorted((a, b) => a - b),
  )
  t.equal(new Set(steps).size, steps.length, 'progress rises')
  t.ok(bench.progress.some(({ message }) => message === `Application 2 of 4: "${plan.order[1].app} (prod)".`))

  // Two that nobody talks with keep the order given.
  const stable = await bench.ok('ringfence-batch', { apps: prod('ghost', 'quiet'), auto_order: true, dry_run: true })
  t.same(brief(stable), ['ghost success', 'quiet success'])

  bench.simulator.faults.add({
    kind: 'job-failed',
    path: '/orgs/1/traffic_flows/async_queries',
    method: 'POST',
    times: 1,
  })
  const blind = await bench.ok('ringfence-batch', { apps: prod('quiet', 'dns'), auto_order: true, dry_run: true })
  partial(t, blind, {
    summary: { auto_ordered: false },
    order: [{ app: 'quiet' }, { app: 'dns' }],
    warnings: [/^Not ordered\./],
  })
})

t.test('skips a repeated application, in any form', async (t) => {
  const bench = await start(t)
  const [label] = await bench.pce.labels.get('draft', null, { params: { key: 'app', value: 'pay' } })
  const apps = [
    ...prod('pay', 'app=pay'),
    { app_name: label!.href, env_name: 'env=prod', selective: true },
    ...prod('pay'),
  ]
  const done = await bench.ok('ringfence-batch', { apps })
  t.same(brief(done), ['pay success', 'pay skipped', 'pay skipped', 'pay skipped'])
  t.ok(done.results.slice(1).every(({ reason }: Json) => reason === 'duplicate'))
  partial(t, done.summary, { total_apps: 4, successful: 1, skipped: 3, rulesets_created: 1 })
})

t.test('an error affects only its application and is never a success', async (t) => {
  const bench = await start(t)
  const apps = [
    ...prod('pa', 'ghost'),
    { ...prod('shop')[0], selective: true, deny_service: 'No such' },
    ...prod('pay'),
  ]
  const done = await bench.ok('ringfence-batch', { apps })
  t.same(brief(done), ['pa error', 'ghost error', 'shop error', 'pay success'])
  partial(
    t,
    done.results.map(({ error }: Json) => error),
    [
      { error: 'not_found', argument: 'app_name', near_names: ['pay'] },
      { error: 'no_workloads', message: /ghost/ },
      { error: 'invalid_deny_service', reason: 'not_found' },
      undefined,
    ],
  )
  partial(t, done, {
    message: 'Wrote 1 ringfence; 3 applications failed.',
    summary: { errors: 3, successful: 1, rules_created: 2 },
  })
  t.same(await ruleSetNames(bench), ['RF-pay-prod'])
})

t.test('stop_on_error ends the batch; an unknown name ends it before anything is written', async (t) => {
  const bench = await start(t)
  bench.writes()
  const none = await bench.ok('ringfence-batch', { apps: prod('pay', 'nobody', 'dns'), stop_on_error: true })
  t.same(brief(none), ['pay skipped', 'nobody error', 'dns skipped'])
  t.equal(none.results[0].reason, 'stopped')
  t.same(bench.writes(), [])

  const done = await bench.ok('ringfence-batch', { apps: prod('pay', 'ghost', 'dns'), stop_on_error: true })
  t.same(brief(done), ['pay success', 'ghost error', 'dns skipped'])
  t.same(await ruleSetNames(bench), ['RF-pay-prod'])
})

t.test('a failure partway reports what was written, and the rest continues', async (t) => {
  const bench = await start(t)
  const refusal = {
    kind: 'status' as const,
    method: 'POST',
    status: 406,
    body: [{ token: 'odd_token', message: 'no' }],
  }
  // shop: rule set and its one rule; then the rule set of pay, whose first rule is refused.
  bench.simulator.faults.add({ ...refusal, path: /sec_rules$/, skip: 1, times: 1 })
  const done = await bench.ok('ringfence-batch', { apps: prod('shop', 'pay', 'crm') })
  t.same(brief(done), ['shop success', 'pay error', 'crm success'])
  const { error } = done.results[1]
  partial(t, error, {
    error: 'pce_error',
    token: 'odd_token',
    partial: true,
    written: [{ href: /rule_sets\/\d+$/ }],
    not_written: 2,
  })
  t.same(error.stands, error.written)
  partial(t, done.summary, { rulesets_created: 2, rules_created: 2 })
})

t.test('bad input writes nothing', async (t) => {
  const bench = await start(t, {
    estate: handMade({
      ...ESTATE,
      hosts: {
        ...ESTATE.hosts,
        ab: { ip: '10.9.0.1', labels: 'app=a-b env=c' },
        a: { ip: '10.9.0.2', labels: 'app=a env=b-c' },
      },
    }),
  })
  bench.writes()
  const bad: object[] = [
    {},
    { apps: [] },
    { apps: prod(...Array<string>(101).fill('pay')) },
    { apps: [{ app_name: 'pay' }] },
    { apps: [{ ...prod('pay')[0], dry_run: true }] },
    { apps: [{ ...prod('pay')[0], deny_consumer: 'all' }] },
    { apps: prod('pay'), lookback_days: 0 },
    // One name for two.
    { apps: [...prod('dns'), { ...prod('pay')[0], ruleset_name: 'x' }, { ...prod('shop')[0], ruleset_name: 'x' }] },
    {
      apps: [
        { app_name: 'a-b', env_name: 'c' },
        { app_name: 'a', env_name: 'b-c' },
      ],
    },
    { apps: [...prod('dns'), { ...prod('pay')[0], ruleset_name: 'x\u200b' }] },
  ]
  for (const args of bad) await bench.fails('ringfence-batch', args, 'invalid_argument')
  t.same(bench.writes(), [])
})

t.test('the answer stays within its budget, however much it has to say', async (t) => {
  const apps = Array.from({ length: 60 }, (_, at) => `app-${String(at).padStart(2, '0')}`)
  const hosts = Object.fromEntries(
    apps.map((app, at) => [app, { ip: `10.5.0.${at + 1}`, labels: `app=${app} env=prod` }]),
  )
  const flows = apps.flatMap((to, at) => [1, 2, 3].map((step) => ({ from: apps[(at + step) % apps.length]!, to })))
  const plain = handMade({ hosts, flows, ruleSets: [{ name: 'tables', scope: '' }] })
  const table = ipTablesRule('-j ACCEPT')
  const [first, ...others] = plain.conversations
  // One conversation began before the window.
  const conversations = [{ ...first!, firstDay: first!.firstDay - 60 }, ...others]
  const estate = { ...plain, conversations, ruleSets: [{ ...plain.ruleSets[0]!, ip_tables_rules: [table] }] } as Estate
  const bench = await start(t, { estate, addUpBeforeCutting: true })
  const done = await bench.ok('ringfence-batch', { apps: prod(...apps) })
  t.match(done.note, /^Up to \d rows with \d+ connections reach out of the window/, 'once for all that are shortened')
  t.notOk(JSON.stringify(done.results).includes('out of the window'))
  t.ok(
    done.note.endsWith(
      ' create-ringfence with dry_run shows each shortened application alone. Plans and their warnings (warnings_of_plan) are shown by the same call with dry_run.',
    ),
    done.note,
  )
  t.ok(JSON.stringify(done).length <= 24_000, `${JSON.stringify(done).length} bytes`)
  partial(t, done.summary, { successful: 60, rulesets_created: 60, rules_created: 240 })
  for (const { result } of done.results) {
    partial(t, result, {
      ruleset: { href: /rule_sets/, name: /^RF-app-\d\d-prod$/ },
      section_totals: { rules: 4 },
    })
    t.same(result.assumes, ['P19'], 'the facts on which it hangs are not cut')
  }
})

t.test('warnings and losses of each application are kept as far as there is room', async (t) => {
  const count = 60
  const apps = Array.from({ length: count }, (_, at) => `app-${String(at).padStart(2, '0')}`)
  const hosts = Object.fromEntries(
    apps.map((app, at) => [app, { ip: `10.5.0.${at + 1}`, labels: `app=${app} env=prod` }]),
  )
  const flows = apps.flatMap((to, at) =>
    Array.from({ length: 3 }, (_, peer) => ({ from: `8.8.${at}.${peer}`, to, connections: 20 - peer })),
  )
  const bench = await start(t, { estate: handMade({ hosts, flows }) })
  for (const [of, least] of [
    [24, 3],
    [count, 1],
  ] as const) {
    const plan = await bench.ok('ringfence-batch', {
      apps: prod(...apps.slice(0, of)).map((one) => ({ ...one, selective: true })),
      dry_run: true,
    })
    const bytes = Buffer.byteLength(JSON.stringify(plan))
    t.ok(bytes <= 24_000, `${bytes} bytes`)
    t.equal(plan.summary.sources_cut, 3 * of)
    for (const { app, result } of plan.results) {
      t.match(result.warnings[0], /^3 sources \(57 connections in the window\) would be cut/, app)
      if (!('warnings_total' in result)) continue
      t.ok(result.warnings.length + (result.would_be_cut ?? []).length >= least, `${app} of ${of}`)
      if (of < count)
        partial(t, result.would_be_cut[0], { source: `8.8.${apps.indexOf(app)}.0`, sources: 3, connections: 57 })
    }
  }
})

/** The client is told that the inbound queries reached the row limit. */
function truncate({ pce }: Bench) {
  const stream = pce.streamTrafficFlows.bind(pce)
  pce.streamTrafficFlows = async (name, query, options) => {
    const outcome = await stream(name, query, options)
    return name === 'mcp-ringfence-inbound' ? { ...outcome, flows: 200_000 } : outcome
  }
}

t.test('the batch reports how ringfences differ from the request', async (t) => {
  const bench = await start(t)
  truncate(bench)
  bench.simulator.faults.add({ kind: 'status', path: /draft\/ip_lists$/, times: 9, status: 200, body: [] })
  bench.writes()
  const apps = prod('pay', 'shop', 'crm').map((one, at) => ({ ...one, selective: at < 2 }))
  for (const dryRun of [true, false]) {
    const done = await bench.ok('ringfence-batch', { apps, dry_run: dryRun })
    partial(t, done.warnings, [
      /^The deny rule was left out.*shorter lookback_days \(2 applications\): "pay \(prod\)"; "shop \(prod\)"\.$/,
      /^The row limit was reached.*\(3 applications\): "pay \(prod\)"; "shop \(prod\)"; "crm \(prod\)"\.$/,
      /^There is no Any IP list.*\(2 applications\): "pay \(prod\)"; "shop \(prod\)"\.$/,
    ])
    t.equal(done.warnings.length, 3)
    t.equal(done.flows_truncated, true)
    t.match(done.results[0].result.warnings[0], /^The deny rule was left out/)
  }
  t.notOk(bench.writes().some(({ path }) => path.endsWith('/deny_rules')))
  const calm = await start(t)
  t.same((await calm.ok('ringfence-batch', { apps, dry_run: true })).warnings, [])
})

t.test('a concurrently changed rule set fails only its application', async (t) => {
  const bench = await start(t)
  const { pce } = bench
  const stream = pce.streamTrafficFlows.bind(pce)
  let isDone = false
  pce.streamTrafficFlows = async (name, query, options) => {
    if (!isDone && name === 'mcp-ringfence-outbound') {
      isDone = true
      await pce.ruleSets.create({ name: 'RF-shop-prod', scopes: [[]] })
    }
    return stream(name, query, options)
  }
  const done = await bench.ok('ringfence-batch', { apps: prod('shop', 'pay') })
  t.same(brief(done), ['shop error', 'pay success'])
  partial(t, done.results[0].error, { error: 'already_exists', reason: 'changed_meanwhile' })
})

t.test('labels and policy of a long batch are never older than a minute', async (t) => {
  const rename = async (bench: Bench, from: string, to: string) => {
    const label = (await bench.pce.labels.getAll()).find(({ value }) => value === from)
    await bench.pce.labels.update(label?.href ?? '', { value: to })
  }
  /** What happens during the queries of the first application. */
  const during = (bench: Bench, act: () => Promise<unknown>) => {
    const { pce } = bench
    const stream = pce.streamTrafficFlows.bind(pce)
    let isDone = false
    pce.streamTrafficFlows = async (name, query, options) => {
      const outcome = await stream(name, query, options)
      if (!isDone) {
        isDone = true
        await act()
      }
      return outcome
    }
  }
  // shop is a source of pay and of dns. After a minute the list is a new one.
  const late = await start(t)
  during(late, async () => {
    await rename(late, 'shop', 'store')
    await rename(late, 'crm', 'sales')
    late.advance(61_000)
  })
  const done = await late.ok('ringfence-batch', { apps: prod('quiet', 'pay', 'crm') })
  t.same(brief(done), ['quiet success', 'pay success', 'crm error'])
  t.same(
    done.results[1].result.ruleset.rules.flatMap(({ app }: Json) => app ?? []),
    ['store'],
  )
  partial(t, done.results[2].error, { error: 'label_not_found', message: /Labels changed in the meantime: "app=crm"/ })

  // Before, the first application that meets it fails, and the next has the new list.
  const soon = await start(t)
  during(soon, () => rename(soon, 'shop', 'store'))
  const both = await soon.ok('ringfence-batch', { apps: prod('quiet', 'pay', 'dns') })
  t.same(brief(both), ['quiet success', 'pay error', 'dns success'])
  partial(t, both.results[1].error, { error: 'label_not_found', message: /app=store/ })

  // A rule set of someone else that lets an address in is seen by the application after a minute.
  const policy = await start(t)
  during(policy, async () => {
    policy.advance(61_000)
    return Promise.resolve()
  })
  const reads = () => policy.simulator.requests.filter(({ path }) => path.endsWith('/draft/services')).length
  const before = reads()
  await policy.ok('ringfence-batch', { apps: prod('quiet', 'pay', 'dns'), dry_run: true })
  t.equal(reads() - before, 2, 'once for the first, once for the others')
})
