/** Setting the modes of an application: in bulk, each workload's outcome, what is left alone, and what a failure half-way leaves. */
import t, { type Test } from 'tap'
import type { EnforcementMode } from '../../schemas/pce/workload.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type BenchOptions, type Json } from './harness.js'

const TOOL = 'set-enforcement-mode'
const PAY = { app_name: 'pay', env_name: 'prod', enforcement_mode: 'full' }

const ESTATE: HandMadeEstate = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'full' },
    'app-1': { ip: '10.0.0.3', labels: 'app=pay env=prod', mode: 'selective', online: false },
    'box-1': { ip: '10.0.0.4', labels: 'app=pay env=prod', managed: false, mode: 'idle' },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
  },
  flows: [{ from: 'crm-1', to: 'db-1', port: 22, connections: 30 }],
}
const hrefOf = (name: string, { hosts = {} } = ESTATE) =>
  `/orgs/1/workloads/00000000-0000-4000-8000-${String(Object.keys(hosts).indexOf(name) + 1).padStart(12, '0')}`

const start = (t: Test, estate = ESTATE, options: BenchOptions = {}) =>
  startBench(t, { estate: handMade(estate), ...options })
const modeOf = (bench: Bench, href: string) => bench.simulator.state.find(href)!.enforcement_mode
const outcomes = ({ workload_columns: columns, workloads }: Json) =>
  workloads.map((row: Json[]) => `${row[0]} ${row[columns.indexOf('before')]} ${row[columns.indexOf('outcome')]}`)

t.test('all workloads of an application, in one request', async (t) => {
  const bench = await start(t)
  await t.test('dry run', async (t) => {
    const plan = await bench.ok(TOOL, { ...PAY, dry_run: true })
    t.same(bench.writes(), [])
    t.same(plan.requests, [
      {
        method: 'PUT',
        path: '/orgs/1/workloads/bulk_update',
        body: ['app-1', 'db-1'].map((name) => ({ href: hrefOf(name), enforcement_mode: 'full' })),
      },
    ])
    t.same(outcomes(plan), [
      'app-1 selective would_change',
      'db-1 visibility_only would_change',
      'box-1 null unmanaged',
      'web-1 full already_there',
    ])
    t.same(plan.traffic_changes, [['cut', 'inbound', 'crm (prod)', '22/tcp', 30, 1, 'db-1']])
    partial(t, plan.connections, { cut: 30, possibly_cut: 0 })
  })

  await t.test('for real', async (t) => {
    bench.simulator.clearRequests()
    const answer = await bench.ok(TOOL, PAY)
    const sent = bench.simulator.requests.map(({ method, path }) => `${method} ${path}`)
    t.same(
      sent.filter((line) => !line.endsWith('/labels')),
      [
        'GET /api/v2/orgs/1/workloads',
        'GET /api/v2/orgs/1/kubernetes_workloads',
        'PUT /api/v2/orgs/1/workloads/bulk_update',
        'GET /api/v2/orgs/1/workloads',
      ],
    )
    t.ok(sent.length <= 7, 'as its contract says')
    t.equal(
      answer.message,
      'Set 2 of 4 workloads of "pay (prod)" to full. 1 was in full already. 1 has no VEN and was left out.',
    )
    t.same(outcomes(answer), [
      'box-1 null unmanaged',
      'app-1 selective changed',
      'db-1 visibility_only changed',
      'web-1 full already_there',
    ])
    partial(t, answer.outcomes, { changed: 2, already_there: 1, unmanaged: 1, failed: 0, not_attempted: 0 })
    t.match(answer.warnings[0], /^Of 1 workload: the VEN does not reach the PCE/)
    t.same(
      ['db-1', 'web-1', 'app-1', 'box-1', 'crm-1'].map((name) => modeOf(bench, hrefOf(name))),
      ['full', 'full', 'full', 'idle', 'visibility_only'],
    )
  })

  await t.test('again: nothing is written', async (t) => {
    bench.writes()
    const answer = await bench.ok(TOOL, PAY)
    t.equal(
      answer.message,
      'Nothing was written: no workload of "pay (prod)" had a mode to change. 3 were in full already. 1 has no VEN and was left out.',
    )
    const plan = await bench.ok(TOOL, { ...PAY, dry_run: true })
    t.same(plan.requests, [])
    t.notOk('connections' in plan, 'no traffic is read for that')
    t.same(bench.writes(), [])
  })
})

t.test('a pending draft makes no difference', async (t) => {
  const bench = await start(t)
  await bench.ok('create-ruleset', { name: 'open', scopes: [['app=pay']], rules: [] })
  await bench.ok(TOOL, PAY)
  t.equal(modeOf(bench, hrefOf('db-1')), 'full')
  t.equal((await bench.pce.getPendingPolicyChanges()).length, 1)
})

t.test('named workloads', async (t) => {
  const bench = await start(t)
  const named = (...workloads: string[]) => ({ workloads, enforcement_mode: 'selective' })
  const refused = await bench.fails(TOOL, named('db-1', 'box-1'), 'invalid_argument')
  partial(t, refused, { argument: 'workloads', unmanaged: [hrefOf('box-1')], message: /^No VEN runs on "box-1"/ })
  await bench.fails(TOOL, named('db-1', 'nobody'), 'not_found')
  await bench.fails(TOOL, { ...named('db-1'), app_name: 'pay' }, 'conflicting_identifiers')
  t.same(bench.writes(), [], 'everything is resolved before the first write')
  const answer = await bench.ok(TOOL, named('db-1', hrefOf('db-1'), 'web-1'))
  t.equal(answer.message, 'Set 2 of 2 named workloads to selective.')
  t.equal(modeOf(bench, hrefOf('app-1')), 'selective')
  t.equal(modeOf(bench, hrefOf('crm-1')), 'visibility_only')
})

/** `count` hosts of one application. */
const crowd = (count: number, mode: EnforcementMode = 'visibility_only'): HandMadeEstate => ({
  hosts: Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      `w-${String(at).padStart(4, '0')}`,
      { ip: `10.1.${at >> 8}.${at & 255}`, labels: 'app=pay env=prod', mode },
    ]),
  ),
})

t.test('more than one request holds', async (t) => {
  const estate = crowd(1100)
  const bench = await start(t, estate)
  const hrefs = (await bench.pce.workloads.getAll()).map(({ href }) => href)
  const counts = () => hrefs.filter((href) => modeOf(bench, href) === 'full').length
  t.equal(hrefs.length, 1100)

  await t.test('the second one is refused: what is done, and what is not', async (t) => {
    const path = /bulk_update$/
    bench.simulator.faults.add({
      kind: 'status',
      path,
      status: 406,
      skip: 1,
      times: 1,
      body: [{ token: 'no', message: 'x' }],
    })
    const error = await bench.fails(TOOL, PAY, 'pce_error')
    bench.simulator.faults.clear()
    t.equal(counts(), 1000)
    partial(t, error, { partial: true, http_status: 406, outcomes: { changed: 1000, failed: 100, not_attempted: 0 } })
    t.match(error.summary, /^Set 1000 of 1100 workloads of "pay \(prod\)" to full\. 100 failed\./)
    t.ok(Buffer.byteLength(JSON.stringify(error)) < 50_000)
    t.match(error.warnings.join(), /each list is cut/)
    t.ok(error.written.length > 0)
  })

  await t.test('repeating it goes on with the rest', async (t) => {
    bench.writes()
    const answer = await bench.ok(TOOL, PAY)
    t.equal(bench.writes().length, 1)
    partial(t, answer, { outcomes: { changed: 100, already_there: 1000 } })
    t.equal(counts(), 1100)
  })

  await t.test('cancelled between two requests', async (t) => {
    const args = { ...PAY, enforcement_mode: 'selective' }
    const error = await bench.cancelled(TOOL, args, ({ message }) => message === 'Set 1000 of 1100 workloads.')
    partial(t, error, { error: 'cancelled', partial: true, outcomes: { changed: 1000, not_attempted: 100 } })
    t.equal(counts(), 100)
  })
})

t.test("what the PCE refuses of one workload is that one's outcome", async (t) => {
  const bench = await start(t)
  const answerOf = (...failed: string[]) =>
    ['app-1', 'db-1'].map((name) =>
      failed.includes(name)
        ? { href: hrefOf(name), status: 'validation_failure', token: 'input_validation_error', message: 'not now' }
        : { href: hrefOf(name), status: 'updated' },
    )
  const path = /bulk_update$/
  // Nothing is changed by an answer that the fault makes up, so the workload that "was changed" reads back as it was.
  bench.simulator.faults.add({ kind: 'status', path, status: 200, times: 1, body: answerOf('db-1') })
  const answer = await bench.ok(TOOL, PAY)
  t.same(outcomes(answer).slice(0, 2), ['db-1 visibility_only failed', 'app-1 selective differs'])
  t.match(JSON.stringify(answer.workloads[0]), /input_validation_error: not now/)

  bench.simulator.faults.add({ kind: 'status', path, status: 200, times: 1, body: answerOf('db-1', 'app-1') })
  const error = await bench.fails(TOOL, PAY, 'pce_error')
  t.match(error.message, /^Set 0 of 4 workloads of "pay \(prod\)" to full\. 2 failed\./)
  t.match(error.hint, /Nothing was changed/)

  const stored = await bench.pce.workloads.getAll()
  const body = stored.map((workload) =>
    workload.name === 'db-1' ? { ...workload, enforcement_mode: 'full' } : workload,
  )
  const readBack = (fault: object) =>
    bench.simulator.faults.add(
      { kind: 'status', path, status: 200, times: 1, body: answerOf('db-1', 'app-1') },
      { kind: 'status', path: /\/workloads$/, method: 'GET', skip: 1, times: 9, ...fault },
    )
  readBack({ status: 200, body })
  const contradicted = await bench.ok(TOOL, PAY)
  bench.simulator.faults.clear()
  partial(t, contradicted, { outcomes: { changed: 1, failed: 1 } })
  const written = outcomes(contradicted).filter((outcome: string) => /^(?:app|db)-1 /.test(outcome))
  t.same(written, ['app-1 selective failed', 'db-1 visibility_only changed'])
  t.match(JSON.stringify(contradicted.workloads), /reads back in the mode, though the PCE answered: input_validation/)

  readBack({ status: 403 })
  const unread = await bench.fails(TOOL, PAY, 'pce_error')
  bench.simulator.faults.clear()
  t.notMatch(unread.hint, /Nothing was changed/, 'where it could not be read back')
})

t.test('an answer that is lost is looked for', async (t) => {
  const bench = await start(t)
  const path = /bulk_update$/
  bench.simulator.faults.add(
    { kind: 'commit-then-drop', path, times: 1 },
    { kind: 'status', path, status: 503, times: 9 },
  )
  const error = await bench.fails(TOOL, PAY, 'outcome_unknown')
  bench.simulator.faults.clear()
  partial(t, error, { read_back: { state: 'as_sent' }, outcomes: { changed: 2 }, hint: /the change was made/ })
})
