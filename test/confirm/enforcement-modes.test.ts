/** Setting modes is confirmed whichever way it goes, for exactly these workloads in exactly these modes. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from '../tools/hand-made.js'
import type { Json } from '../tools/harness.js'
import { startConfirming } from './harness.js'

const TOOL = 'set-enforcement-mode'
const PAY = { app_name: 'pay', env_name: 'prod' }
const FEW_KILOBYTES = 12_000

const ESTATE: HandMadeEstate = {
  hosts: {
    'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod' },
    'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod', mode: 'full' },
    'box-1': { ip: '10.0.0.4', labels: 'app=pay env=prod', managed: false },
    'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
  },
  labels: ['app=payments'],
  flows: [
    { from: 'crm-1', to: 'db-1', port: 22, connections: 30 },
    { from: 'crm-1', to: 'web-1', port: 443, connections: 40 },
  ],
}
const hrefOf = (name: string) =>
  `/orgs/1/workloads/00000000-0000-4000-8000-${String(Object.keys(ESTATE.hosts!).indexOf(name) + 1).padStart(12, '0')}`

const start = (t: Test) => startConfirming(t, { estate: handMade(ESTATE) })
type Bench = Awaited<ReturnType<typeof start>>
const modesOf = ({ simulator }: Bench) =>
  ['db-1', 'web-1', 'crm-1'].map((name) => simulator.state.find(hrefOf(name))!.enforcement_mode)

t.test('stricter: shows whom and what it cuts, and runs once', async (t) => {
  const bench = await start(t)
  const args = { ...PAY, enforcement_mode: 'full' }
  const asked = await bench.call(TOOL, args)
  partial(t, asked, { error: 'confirm_required', reason: 'missing' })
  t.equal(
    asked.summary,
    '1 of 3 workloads of "pay (prod)" would be set to full: 1 from visibility_only. 1 is in full already. 1 has no VEN and no mode to change. ' +
      'Of the traffic seen in the last 30 days, 30 connections would be cut and 0 possibly, with 1 peer. ' +
      'It takes effect at once, without provisioning.',
  )
  t.same(asked.traffic_changes, [['cut', 'inbound', 'crm (prod)', '22/tcp', 30, 1, 'db-1']])
  t.same(asked.workloads, [['db-1', hrefOf('db-1'), 'visibility_only']])
  t.ok(Buffer.byteLength(JSON.stringify(asked)) < FEW_KILOBYTES)
  t.same(bench.writes(), [], 'looking writes nothing')

  const { confirm_token: token } = await bench.confirm(asked)
  partial(t, await bench.call(TOOL, args, { token }), { ok: true, outcomes: { changed: 1, already_there: 1 } })
  t.same(modesOf(bench), ['full', 'full', 'visibility_only'])
  partial(t, await bench.call(TOOL, args, { token }), { error: 'confirm_token_replay' })
  t.equal(bench.writes().length, 1)
})

t.test('looser: shows what it opens, and is confirmed as well', async (t) => {
  const bench = await start(t)
  const args = { ...PAY, enforcement_mode: 'visibility_only' }
  const asked = await bench.call(TOOL, args)
  t.match(asked.summary, /40 connections blocked now would pass and 0 possibly, with 1 peer/)
  t.same(asked.traffic_changes, [['opened', 'inbound', 'crm (prod)', '443/tcp', 40, 1, 'web-1']])
  const { confirm_token: token } = await bench.confirm(asked)
  partial(t, await bench.call(TOOL, args, { token }), { ok: true })
  t.same(modesOf(bench), ['visibility_only', 'visibility_only', 'visibility_only'])
})

t.test('what was shown is what runs', async (t) => {
  const args = { ...PAY, enforcement_mode: 'full' }
  const labels = async ({ pce }: Bench, ...texts: string[]) => {
    const all = await pce.labels.getAll()
    return texts.map((text) => ({ href: all.find(({ key, value }) => `${key}=${value}` === text)!.href }))
  }
  const changes: Record<string, (bench: Bench) => Promise<void>> = {
    'another mode of one of them': ({ pce }) => pce.workloads.update(hrefOf('db-1'), { enforcement_mode: 'selective' }),
    'one that is there already leaves its mode': ({ pce }) =>
      pce.workloads.update(hrefOf('web-1'), { enforcement_mode: 'idle' }),
    'another name of one of them': ({ pce }) => pce.workloads.update(hrefOf('db-1'), { name: 'core-switch' }),
    'one more workload': async (bench) =>
      bench.pce.workloads.update(hrefOf('crm-1'), { labels: await labels(bench, 'app=pay', 'env=prod') }),
    'one fewer': async (bench) =>
      bench.pce.workloads.update(hrefOf('db-1'), { labels: await labels(bench, 'app=crm', 'env=prod') }),
  }
  for (const [name, change] of Object.entries(changes))
    await t.test(`${name}: asks anew`, async (t) => {
      const bench = await start(t)
      const token = await bench.tokenFor(TOOL, args)
      await change(bench)
      const before = modesOf(bench)
      bench.writes()
      partial(t, await bench.call(TOOL, args, { token }), { error: 'confirm_required', reason: 'stale' })
      t.same(bench.writes(), [])
      t.same(modesOf(bench), before)
      t.ok((await bench.call(TOOL, args, { token: await bench.tokenFor(TOOL, args) })).ok, 'and can be confirmed anew')
    })

  await t.test("a change after the gate's look, before the first write", async (t) => {
    const bench = await start(t)
    const token = await bench.tokenFor(TOOL, args)
    bench.writes()
    // The gate reads the workloads, then the tool does; in between somebody else is faster.
    let looks = 0
    const { workloads } = bench.pce
    const scan = workloads.scan.bind(workloads)
    workloads.scan = async (...given) => {
      looks += 1
      if (looks === 2) await bench.pce.workloads.update(hrefOf('db-1'), { enforcement_mode: 'selective' })
      return scan(...given)
    }
    const answer = await bench.call(TOOL, args, { token })
    partial(t, answer, { error: 'confirm_required', reason: 'stale', message: /Nothing was written/ })
    t.equal(bench.writes().filter(({ path }) => path.endsWith('bulk_update')).length, 0)
  })

  await t.test('other changes do not count', async (t) => {
    const bench = await start(t)
    const token = await bench.tokenFor(TOOL, args)
    await bench.pce.workloads.update(hrefOf('db-1'), { description: 'x' })
    await bench.pce.workloads.update(hrefOf('crm-1'), { enforcement_mode: 'full' })
    await bench.draft('something else')
    t.ok((await bench.call(TOOL, args, { token })).ok)
  })
})

t.test('a token is for one mode and one selection; a dry run is confirmed as such', async (t) => {
  const bench = await start(t)
  const args = { ...PAY, enforcement_mode: 'full' }
  const token = await bench.tokenFor(TOOL, args)
  for (const other of [
    { ...args, enforcement_mode: 'idle' },
    { workloads: ['db-1'], enforcement_mode: 'full' },
  ])
    partial(t, await bench.call(TOOL, other, { token }), { error: 'confirm_required', reason: 'mismatch' })
  const dry = { ...args, dry_run: true }
  const asked = await bench.call(TOOL, dry)
  t.match(asked.summary, /This is a dry run/)
  partial(t, await bench.call(TOOL, dry, { token: (await bench.confirm(asked)).confirm_token }), { dry_run: true })
  t.same(bench.writes(), [])
})

t.test('what cannot be shown cannot be confirmed; nobody but an admin is asked', async (t) => {
  const bench = await start(t)
  const asked: Json = await bench.call(TOOL, { workloads: ['box-1'], enforcement_mode: 'full' })
  partial(t, asked, { error: 'confirm_required', preview_error: { error: 'invalid_argument' } })
  for (const as of ['olga', 'rita'])
    partial(t, await bench.call(TOOL, { ...PAY, enforcement_mode: 'full' }, { as }), { error: 'forbidden' })
})
