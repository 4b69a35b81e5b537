/** Suspending, resuming, unpairing and upgrading VENs: what a dry run judges, each VEN's outcome, and what is refused before a write. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type BenchOptions, type Json } from './harness.js'

/** web may reach db by a rule of labels; crm may not, and db drops it. */
const ESTATE: HandMadeEstate = {
  hosts: {
    'web-1': { ip: '10.0.0.1', labels: 'app=pay role=web env=prod', mode: 'full' },
    'db-1': { ip: '10.0.0.2', labels: 'app=pay role=db env=prod', mode: 'full' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
    'box-1': { ip: '10.0.2.1', labels: 'app=pay env=prod', managed: false },
  },
  ruleSets: [{ name: 'Pay', scope: 'app=pay', allow: [{ from: 'role=web', to: 'role=db' }] }],
  flows: [
    { from: 'web-1', to: 'db-1', port: 5432, connections: 50 },
    { from: 'crm-1', to: 'db-1', port: 22, connections: 30 },
  ],
}
const hrefOf = (name: string, { hosts = {} } = ESTATE) =>
  `/orgs/1/workloads/00000000-0000-4000-8000-${String(Object.keys(hosts).indexOf(name) + 1).padStart(12, '0')}`
const venOf = (name: string, estate = ESTATE) => hrefOf(name, estate).replace('/workloads/', '/vens/')

const start = (t: Test, estate = ESTATE, options: BenchOptions = {}) =>
  startBench(t, { estate: handMade(estate), ...options })
const outcomes = ({ ven_columns: columns, vens }: Json) =>
  vens.map((row: Json[]) =>
    ['name', 'before', 'now', 'outcome'].map((column) => String(row[columns.indexOf(column)])).join(' '),
  )
const statusOf = async ({ pce }: Bench, name: string) => (await pce.vens.getByReference(venOf(name))).status

t.test('suspending: what would pass, the mark, and back', async (t) => {
  const bench = await start(t)
  const args = { workloads: ['db-1'], status: 'suspended' }
  const plan = await bench.ok('set-ven-status', { ...args, dry_run: true })
  t.same(bench.writes(), [])
  t.same(plan.requests, [{ method: 'PUT', path: venOf('db-1'), body: { status: 'suspended' } }])
  t.same(plan.traffic_changes, [['opened', 'inbound', 'crm (prod)', '22/tcp', 30, 1, 'db-1']])
  partial(t, plan.connections, { opened: 30, cut: 0, stays_allowed: 50 })
  t.equal(plan.enforcing, 1)
  t.match(plan.notes[0], /illumio-ven-ctl suspend/)

  const done = await bench.ok('set-ven-status', args)
  t.equal(done.message, 'Marked as suspended: 1 of 1 VEN.')
  t.same(outcomes(done), ['db-1 active suspended done'])
  t.equal(await statusOf(bench, 'db-1'), 'suspended')

  bench.writes()
  t.equal((await bench.ok('set-ven-status', args)).message, 'Nothing was written. 1 so already.')
  t.same(bench.writes(), [])

  const back = { workloads: [venOf('db-1')], status: 'active' }
  const resumed = await bench.ok('set-ven-status', { ...back, dry_run: true })
  t.same(resumed.traffic_changes, [['cut', 'inbound', 'crm (prod)', '22/tcp', 30, 1, 'db-1']])
  t.same(outcomes(await bench.ok('set-ven-status', back)), ['db-1 suspended active done'])
})

t.test('unpairing: its peers drop what they allowed by its labels', async (t) => {
  const bench = await start(t)
  const args = { workloads: ['web-1'], firewall_restore: 'disable' }
  const plan = await bench.ok('unpair-vens', { ...args, dry_run: true })
  t.same(plan.requests, [
    {
      method: 'PUT',
      path: '/orgs/1/vens/unpair',
      body: { firewall_restore: 'disable', vens: [{ href: venOf('web-1') }] },
    },
  ])
  t.same(plan.traffic_changes, [['cut', 'outbound', 'pay (prod)', '5432/tcp', 50, 1, 'web-1']])
  partial(t, plan.connections, { cut: 50, opened: 0 })
  const done = await bench.ok('unpair-vens', args)
  t.same(outcomes(done), ['web-1 active gone done'])
  await bench.fails('unpair-vens', args, 'not_found')
})

t.test('unpairing what drops', async (t) => {
  const bench = await start(t)
  const plan = await bench.ok('unpair-vens', { workloads: ['db-1'], firewall_restore: 'saved', dry_run: true })
  t.same(
    plan.traffic_changes,
    [
      ['cut', 'inbound', 'pay (prod)', '5432/tcp', 50, 1, 'db-1'],
      ['opened', 'inbound', 'crm (prod)', '22/tcp', 30, 1, 'db-1'],
    ],
    'web drops what it could send by a rule that names the labels of db',
  )
})

t.test('a selection has to say how many it may match', async (t) => {
  const bench = await start(t)
  const args = { selection: { labels: ['app=pay'] }, status: 'suspended' }
  const plan = await bench.ok('set-ven-status', { ...args, dry_run: true })
  t.match(plan.message, /To write, repeat it with max_matches 2\.$/, 'the workload without a VEN is not counted')
  t.same(outcomes(plan), ['db-1 active null would_change', 'web-1 active null would_change'])
  partial(t, await bench.fails('set-ven-status', args, 'invalid_argument'), { argument: 'max_matches', matched: 2 })
  await bench.fails('set-ven-status', { ...args, max_matches: 1 }, 'invalid_argument')
  for (const [wrong, code] of [
    [{}, 'missing_identifier'],
    [{ ...args, workloads: ['db-1'] }, 'conflicting_identifiers'],
    [{ selection: {} }, 'invalid_argument'],
    [{ workloads: ['db-1', 'box-1'] }, 'invalid_argument'],
    [{ workloads: ['db-1', 'db'] }, 'not_found'],
    [{ selection: { labels: ['app=crm'], online: false } }, 'no_workloads'],
    [{ workloads: ['/orgs/1/vens/00000000-0000-4000-8000-000000000099'] }, 'not_found'],
  ] as [object, string][])
    await bench.fails('set-ven-status', { status: 'suspended', ...wrong }, code)
  t.same(bench.writes(), [], 'nothing is written before everything is known')
  t.same(outcomes(await bench.ok('set-ven-status', { ...args, max_matches: 2 })), [
    'db-1 active suspended done',
    'web-1 active suspended done',
  ])
})

t.test('a PCE that fails half-way: what is done is told, and the same call completes it', async (t) => {
  const bench = await start(t)
  const args = { workloads: ['crm-1', 'db-1', 'web-1'], status: 'suspended' }
  bench.simulator.faults.add({
    kind: 'status',
    method: 'PUT',
    path: /\/vens\//,
    status: 403,
    skip: 1,
    times: 1,
    body: [],
  })
  const error = await bench.fails('set-ven-status', args, 'pce_error')
  partial(t, error, { partial: true, http_status: 403, written: [{ href: venOf('crm-1') }] })
  t.same(outcomes(error), ['db-1 active active failed', 'web-1 active null not_attempted'])
  bench.simulator.faults.clear()
  t.same(outcomes(await bench.ok('set-ven-status', args)), [
    'db-1 active suspended done',
    'web-1 active suspended done',
    'crm-1 suspended null already',
  ])
})

t.test('one VEN that the PCE refuses does not keep it from the others', async (t) => {
  const bench = await start(t)
  const no = {
    kind: 'status',
    method: 'PUT',
    path: /\/vens\//,
    status: 406,
    body: [{ token: 'no', message: 'x' }],
  } as const
  bench.simulator.faults.add({ ...no, times: 1 })
  const answer = await bench.ok('set-ven-status', { workloads: ['crm-1', 'db-1'], status: 'suspended' })
  t.same(outcomes(answer), ['crm-1 active active failed', 'db-1 active suspended done'])
  bench.simulator.faults.add({ ...no, times: 9 })
  await bench.fails('set-ven-status', { workloads: ['crm-1'], status: 'suspended' }, 'pce_error')
})

t.test('an answer that is lost, and one with reasons for single VENs', async (t) => {
  const bench = await start(t)
  const args = { workloads: ['crm-1', 'db-1'], firewall_restore: 'disable' }
  const body = { errors: [{ token: 'odd', message: 'Not now', hrefs: [venOf('crm-1')] }] }
  bench.simulator.faults.add({ kind: 'status', method: 'PUT', path: /unpair$/, status: 200, times: 1, body })
  const answer = await bench.ok('unpair-vens', args)
  t.same(outcomes(answer), ['crm-1 active active failed', 'db-1 active active accepted'], 'taken, and still listed')
  t.match(answer.vens[0].at(-1), /odd: Not now/)
  bench.simulator.faults.add({ kind: 'commit-then-drop', method: 'PUT', path: /unpair$/, times: 9 })
  const error = await bench.fails('unpair-vens', args, 'outcome_unknown')
  partial(t, error, { read_back: { state: 'as_sent' }, outcomes: { done: 2 } })
})

t.test('upgrading', async (t) => {
  const bench = await start(t)
  const unknown = await bench.fails('upgrade-vens', { workloads: ['db-1'], release: '25.2' }, 'not_found')
  t.equal(unknown.argument, 'release')
  const args = { workloads: ['db-1', 'web-1'], release: '25.2.20-118' }
  const plan = await bench.ok('upgrade-vens', { ...args, dry_run: true })
  t.same(plan.requests, [
    {
      method: 'PUT',
      path: '/orgs/1/vens/upgrade',
      body: { release: '25.2.20-118', vens: [{ href: venOf('db-1') }, { href: venOf('web-1') }] },
    },
  ])
  t.notOk('connections' in plan, 'no traffic is judged')
  const [, before] = outcomes(plan)[0]!.split(' ') as [string, string]
  t.same(
    outcomes(await bench.ok('upgrade-vens', args)),
    ['db-1', 'web-1'].map((name) => `${name} ${before} ${before}, upgrade to 25.2.20-118 done`),
  )
  t.equal((await bench.ok('upgrade-vens', args)).message, 'Nothing was written. 2 so already.')
})

t.test('support reports', async (t) => {
  const bench = await start(t)
  const answer = await bench.ok('request-ven-support-reports', { workloads: ['db-1', venOf('web-1')] })
  t.equal(answer.message, 'Asked for a support report: 2 of 2 VENs.')
  t.same(
    bench.writes().map(({ method, path, body }) => [method, path, body]),
    ['db-1', 'web-1'].map((name) => ['POST', '/api/v2/orgs/1/support_report_requests', { ven: { href: venOf(name) } }]),
  )
})

t.test('of support reports whose request was lost, the answer says that it is not known', async (t) => {
  const bench = await start(t)
  const lost = {
    kind: 'commit-then-drop',
    method: 'POST',
    path: /support_report_requests$/,
    skip: 1,
    times: 9,
  } as const
  bench.simulator.faults.add(lost)
  const args = { workloads: ['crm-1', 'db-1', 'web-1'] }
  const error = await bench.fails('request-ven-support-reports', args, 'outcome_unknown')
  t.same(error.written, [{ href: venOf('crm-1') }])
  t.same(outcomes(error), ['db-1 active null unverified', 'web-1 active null not_attempted'])
})

t.test('what cannot be read back is said, and claimed of nobody', async (t) => {
  const blind = { kind: 'status', method: 'GET', path: /\/vens\//, skip: 2, times: 99 } as const
  for (const [tool, args] of [
    ['upgrade-vens', { release: '25.2.20-118' }],
    ['unpair-vens', { firewall_restore: 'saved' }],
  ] as const) {
    const bench = await start(t)
    bench.simulator.faults.add({ ...blind, status: tool === 'upgrade-vens' ? 503 : 200, body: {} })
    const answer = await bench.ok(tool, { workloads: ['crm-1', 'db-1'], ...args })
    t.same(answer.outcomes, { accepted: 2 }, tool)
    t.same(answer.warnings, ['2 VENs could not be read back: accepted is what the PCE answered.'])
  }
})
