/** Traffic decided by the rules of today or of the draft instead of what the PCE recorded, and ringfences judged so. */
import t, { type Test } from 'tap'
import { contains, partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, WEEK, type Bench, type Json } from './harness.js'

/**
 * No rule lets crm reach pay, though it was recorded so, and one lets web, though it was recorded as blocked. Whether the deny rule
 * stops db, which is in selective mode, at its source is not settled.
 */
const ESTATE: HandMadeEstate = {
  hosts: {
    'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
    'crm-1': { ip: '10.0.0.2', labels: 'app=crm env=prod' },
    'web-1': { ip: '10.0.0.3', labels: 'app=web env=prod' },
    'db-1': { ip: '10.0.0.4', labels: 'app=db env=prod', mode: 'selective' },
    'log-1': { ip: '10.0.0.5', labels: 'app=log env=prod', mode: 'idle' },
  },
  flows: [
    { from: 'crm-1', to: 'pay-1', port: 443, connections: 7, recorded: 'allowed' },
    { from: 'web-1', to: 'pay-1', port: 443, connections: 5, recorded: 'blocked' },
    { from: 'web-1', to: 'crm-1', port: 22, connections: 4 },
    { from: 'web-1', to: 'pay-1', port: 67, proto: 17, connections: 3, recorded: 'allowed' },
    { from: 'db-1', to: 'log-1', port: 514, connections: 2, recorded: 'allowed' },
    { from: 'log-1', to: '192.0.2.9', port: 123, proto: 17, connections: 1 },
  ],
  ruleSets: [
    {
      name: 'pay',
      scope: 'app=pay env=prod',
      allow: [{ from: 'app=web', to: 'ams', extra: true, services: [{ port: 443, proto: 6 }] }],
    },
    { name: 'deny', scope: '', deny: [{ from: 'app=db', to: 'ams', services: [{ port: 514, proto: 6 }] }] },
  ],
}

const start = (t: Test) => startBench(t, { estate: handMade(ESTATE) })
const FLOWS = { ...WEEK, group_by: ['source_app', 'port', 'policy_decision'] }
/** Each row as the application, the port, the decision and the connections. */
const rows = ({ columns, data }: Json): string[] =>
  data.map((row: Json[]) =>
    ['src_app', 'port', 'policy_decision', 'num_connections'].map((name) => row[columns.indexOf(name)]).join(' '),
  )
const asked = async ({ ok }: Bench, args: object) => ok('get-traffic-flows', { ...FLOWS, ...args })

t.test('rows are decided by the rules of today', async (t) => {
  const bench = await start(t)
  const recorded = await asked(bench, {})
  t.same(rows(recorded).slice(0, 2), ['crm 443 allowed 7', 'web 443 blocked 5'])
  t.equal(recorded.decided, undefined)
  const answer = await asked(bench, { decide_by: 'active' })
  t.same(rows(answer), [
    'crm 443 blocked 7',
    'web 443 allowed 5',
    'web 22 potentially_blocked 4',
    'web 67 unknown 3',
    'db 514 potentially_blocked 2',
    'log 123 unknown 1',
  ])
  partial(t, answer.decided, {
    by: 'active',
    undecided_rows: 1,
    undecided_connections: 3,
    maybe_blocked_connections: 2,
    because: 'undecided because of protocols that VENs keep open, deny rules at sources in selective mode',
  })
  t.same(answer.recorded_otherwise, { allowed_without_rule: 9, stopped_despite_rule: 5 })
  t.same(answer.decided.otherwise, [
    {
      source: 'crm (prod)',
      destination: 'pay (prod)',
      recorded: 'allowed',
      decided: 'blocked',
      connections: 7,
      ports: ['443/tcp'],
    },
    {
      source: 'web (prod)',
      destination: 'pay (prod)',
      recorded: 'blocked',
      decided: 'allowed',
      connections: 5,
      ports: ['443/tcp'],
    },
    {
      source: 'db (prod)',
      destination: 'log (prod)',
      recorded: 'allowed',
      decided: 'potentially_blocked',
      connections: 2,
      ports: ['514/tcp'],
    },
  ])
  t.equal(answer.decided.otherwise_total, 3)
  t.same(answer.assumes, ['P51'])
  partial(t, answer, { total_pce_flows: 6, rows_analysed: 6 })
})

t.test('grouped by what was recorded, each row has both decisions', async (t) => {
  const bench = await start(t)
  const both = async (args: object) => {
    const group_by = ['source_app', 'port', 'policy_decision', 'recorded_decision']
    const { columns, data } = await asked(bench, { ...args, group_by })
    const names = ['src_app', 'port', 'policy_decision', 'recorded_decision']
    return data.slice(0, 2).map((row: Json[]) => names.map((name) => row[columns.indexOf(name)]).join(' '))
  }
  t.same(await both({ decide_by: 'active' }), ['crm 443 blocked allowed', 'web 443 allowed blocked'])
  t.same(await both({}), ['crm 443 allowed allowed', 'web 443 blocked blocked'], 'as recorded, both are the record')
})

t.test('and the filter by decisions is about the decision that is shown', async (t) => {
  const bench = await start(t)
  const answer = await asked(bench, { decide_by: 'active', policy_decisions: ['blocked', 'unknown'] })
  t.same(rows(answer), ['crm 443 blocked 7', 'web 67 unknown 3', 'log 123 unknown 1'])
  partial(t, answer, { total_pce_flows: 6, rows_analysed: 3, recorded_otherwise: { allowed_without_rule: 7 } })
  contains(t, answer.coverage_note, 'applied to its rows here: policy_decisions')
  const allowed = await asked(bench, { decide_by: 'active', policy_decisions: ['allowed'] })
  t.same(rows(allowed), ['web 443 allowed 5'])
  t.equal(allowed.decided.undecided_rows, 1, 'what is left out undecided is counted')
  t.same(rows(await asked(bench, { policy_decisions: ['blocked'] })), ['web 443 blocked 5'])
})

t.test('the draft decides as if it were provisioned', async (t) => {
  const bench = await start(t)
  const same = await asked(bench, { decide_by: 'draft' })
  contains(t, same.decided.note, 'Nothing is pending')
  const rule = {
    providers: ['ams'],
    consumers: ['app=crm'],
    ingress_services: ['All Services'],
    unscoped_consumers: true,
  }
  const { ruleset } = await bench.ok('create-ruleset', {
    name: 'crm',
    scopes: [['app=pay', 'env=prod']],
    rules: [rule],
  })
  t.equal(rows(await asked(bench, { decide_by: 'active' }))[0], 'crm 443 blocked 7')
  const draft = await asked(bench, { decide_by: 'draft' })
  t.equal(rows(draft)[0], 'crm 443 allowed 7')
  t.same(draft.recorded_otherwise, { allowed_without_rule: 2, stopped_despite_rule: 5 })
  await bench.ok('provision-policy', { hrefs: [ruleset.href] })
  t.same(rows(await asked(bench, { decide_by: 'active' })), rows(draft))
})

t.test('a cursor belongs to whose decision it shows, and tells of another policy', async (t) => {
  const bench = await start(t)
  const first = await asked(bench, { decide_by: 'active', max_results: 2 })
  const { next_cursor: cursor } = first
  await bench.fails('get-traffic-flows', { ...FLOWS, cursor }, 'invalid_argument')
  await bench.fails('get-traffic-flows', { ...FLOWS, decide_by: 'draft', cursor }, 'invalid_argument')
  const next = await asked(bench, { decide_by: 'active', cursor })
  t.same([...rows(first), ...rows(next)], rows(await asked(bench, { decide_by: 'active' })))
  t.equal(next.coverage_note, undefined)
  const [ruleSet] = await bench.pce.ruleSets.getAll()
  await bench.pce.rules.update(ruleSet!.rules![0]!.href, { enabled: false })
  await bench.ok('provision-policy', { hrefs: [ruleSet!.href] })
  const moved = await asked(bench, { decide_by: 'active', cursor })
  contains(t, moved.coverage_note, 'The traffic or what decides about it has changed since the page before')
})

t.test('without the policy nothing is known', async (t) => {
  const bench = await start(t)
  bench.simulator.faults.add({ kind: 'status', path: /active\/services$/, status: 403, times: 9, body: [] })
  const answer = await asked(bench, { decide_by: 'active' })
  t.same([...new Set(rows(answer).map((row) => row.split(' ')[2]))], ['unknown'])
  partial(t, answer.decided, { undecided_rows: 5, because: /a policy that could not be read/ })
})

t.test('modes are those that workloads have now, whatever the rows report', async (t) => {
  const bench = await start(t)
  const pay = (await bench.pce.workloads.getAll()).find(({ name }) => name === 'pay-1')!
  const inInventory = async (path: string, status: number, body: object = []) => {
    bench.simulator.faults.clear()
    bench.simulator.faults.add({ kind: 'status', path: new RegExp(`${path}$`), status, times: 9, body })
    const { decided, ...answer } = await asked(bench, { decide_by: 'active' })
    return { first: rows(answer)[0], because: decided.because, note: decided.note }
  }
  const relaxed = await inInventory(pay.href, 200, { ...pay, enforcement_mode: 'selective' })
  t.equal(relaxed.first, 'crm 443 potentially_blocked 7', 'its row reports full')
  contains(t, relaxed.note, 'in the modes of today: allowed')
  const gone = await inInventory(pay.href, 404)
  t.equal(gone.first, 'crm 443 potentially_blocked 7')
  contains(t, gone.because, 'an unknown enforcement mode')
  contains(
    t,
    gone.note,
    '1 workload of the rows is not in the inventory (removed, or not visible to this account): the mode is not known.',
  )
  const refused = await inInventory('/workloads/[^/]+', 403)
  t.equal(refused.first, 'crm 443 potentially_blocked 7', 'the row reports full, which is no evidence')
  contains(t, refused.note, 'The mode of 5 workloads is not known: ')
})

t.test('the summary by the rules', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('get-traffic-flows-summary', {
    ...WEEK,
    decide_by: 'active',
    policy_decisions: ['blocked'],
  })
  t.same(
    answer.blocked.map(({ from, to, policy }: Json) => [from, to, policy]),
    [['crm-1', 'pay-1', 'blocked']],
  )
  partial(t, answer, { totals: { rows: 1, connections: 7, pce_flows: 6 }, decided: { undecided_rows: 1 } })
})

const PAY = { app_name: 'pay', env_name: 'prod' }

t.test('a ringfence judges by the rules too, in the window that was asked for', async (t) => {
  const bench = await start(t)
  const options = { ...PAY, ...WEEK, exclude_sources: ['app=crm'], dry_run: true }
  const plan = await bench.ok('create-ringfence', options)
  t.same(plan.window, { start: '2026-06-08T00:00:00Z', end: '2026-06-14T23:59:59Z' })
  t.same(
    plan.would_be_cut.map(({ effect, source }: Json) => [effect, source]),
    [['cut', 'crm (prod)']],
    'as it is today, though the PCE recorded it as allowed',
  )
  t.same(plan.recorded_otherwise, { allowed_without_rule: 7, stopped_despite_rule: 5 })
  t.ok(plan.warnings.some((text: string) => text.startsWith('recorded_otherwise: ')))
  t.same(
    plan.inbound_remote_apps.map(({ app, coverage }: Json) => [app, coverage]),
    [
      ['crm', 'newly_allowed'],
      ['web', 'newly_allowed'],
    ],
    'one port of web is undecided',
  )
  const batch = await bench.ok('ringfence-batch', { apps: [PAY], ...WEEK, exclude_sources: ['app=crm'], dry_run: true })
  t.same(batch.window, plan.window)
  t.same(batch.results[0].result.would_be_cut, plan.would_be_cut)
  t.same(batch.results[0].result.recorded_otherwise, plan.recorded_otherwise)
  await bench.fails('create-ringfence', { ...PAY, start_date: '2026-06-14', end_date: '2026-06-08' }, 'invalid_window')
})

t.test('of many pairs the busiest are listed, with their busiest ports, and all are counted', async (t) => {
  const apps = Array.from({ length: 12 }, (_, at) => `a${String(at).padStart(2, '0')}`)
  const host = (app: string, at: number) => ({
    ip: `10.0.1.${at + 1}`,
    labels: `app=${app} env=prod`,
    mode: 'full' as const,
  })
  const recorded = 'allowed' as const
  const { ok } = await startBench(t, {
    estate: handMade({
      hosts: {
        'pay-1': { ip: '10.0.0.1', labels: 'app=pay env=prod', mode: 'full' },
        'pay-2': { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'full' },
        ...Object.fromEntries(apps.map((app, at) => [app, host(app, at)])),
      },
      flows: [
        ...apps.map((from, at) => ({ from, to: 'pay-1', port: 443, connections: at + 1, recorded })),
        ...apps
          .slice(0, 7)
          .map((_, at) => ({ from: 'pay-1', to: 'pay-2', port: 8000 + at, connections: 9 - at, recorded })),
        { from: 'a11', to: 'pay-2', port: 443, connections: 50, recorded },
      ],
    }),
  })
  const { decided } = await ok('get-traffic-flows', { ...FLOWS, decide_by: 'active' })
  t.equal(decided.otherwise_total, 13)
  t.same(
    decided.otherwise.map(({ source, destination, connections }: Json) => [source, destination, connections]),
    [
      ['a11 (prod)', 'pay (prod)', 62],
      ['pay-1', 'pay-2', 42],
      ...[10, 9, 8, 7, 6, 5, 4, 3].map((at) => [`${apps[at]} (prod)`, 'pay (prod)', at + 1]),
    ],
  )
  t.same(decided.otherwise[1].ports, ['8000/tcp', '8001/tcp', '8002/tcp', '8003/tcp', '8004/tcp'])
  contains(t, decided.note, 'otherwise has the busiest pairs of these')
})
