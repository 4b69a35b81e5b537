/** "Did you mean" is a hint: it costs nothing noticeable, whatever a caller writes and however many names there are. */
import t, { type Test } from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { startServer } from '../pce-client/support.js'
import { benchOf, NOW, WEEK, type Json } from './harness.js'

/** The processor time of a call, in that of one with fifty short names. Comparing names of any length took 88 times as much. */
const MOST_TIMES = 5
/** Longer than a label can be, and not longer than a reference to one. */
const LONG = 'payments-backend '.repeat(28)

const LABELS = Array.from({ length: 20_000 }, (_, n) => {
  const value = `${n % 2 === 0 ? 'a' : 'p'}${n.toString(36)}-${'service-of-the-estate-'.repeat(9)}`
  return { href: `/orgs/1/labels/${n + 1}`, key: 'app', value, created_at: '2026-01-01T00:00:00Z' }
})
LABELS[7_000]!.value = 'out of reach'
LABELS[4_000]!.value = 'payments'
LABELS[4_001]!.value = 'payments-europe'

async function startWide(t: Test) {
  const simulator = await createPceSimulator({ seed: 3, workloads: 20, flows: 0, now: () => NOW })
  t.teardown(() => simulator.close())
  const text = JSON.stringify(LABELS)
  const headers = { 'x-total-count': String(LABELS.length), 'content-type': 'application/json' }
  const { port } = await startServer(t, ({ path }) =>
    /\/labels\?/.test(path) ? { body: text, headers } : { body: [] },
  )
  return benchOf(t, simulator, `http://127.0.0.1:${port}`)
}

/** What a call answers, and the processor time that it took in microseconds. */
async function timed(act: () => Promise<Json>): Promise<{ answer: Json; spent: number }> {
  const before = process.cpuUsage()
  const answer = await act()
  const { user, system } = process.cpuUsage(before)
  return { answer, spent: user + system }
}

t.test('suggestions', async (t) => {
  const bench = await startWide(t)
  // The labels are read before: their list is not what is measured.
  await bench.fails('enforcement-readiness', { app_name: 'x', env_name: 'y' }, 'not_found')
  const short = Array.from({ length: 50 }, (_, n) => `app=x${n}`)
  const { spent: usual } = await timed(() => bench.fails('get-workloads', { labels: short }, 'unresolved_label_filter'))

  await t.test('are none for what is longer than any name', async (t) => {
    const fifty = Array.from({ length: 50 }, (_, n) => `app=${n}${LONG}`)
    const { answer, spent } = await timed(() =>
      bench.fails('get-workloads', { labels: fifty }, 'unresolved_label_filter'),
    )
    t.equal(answer.unresolved.length, 50)
    t.same(Object.values(answer.valid_values).flat(), [])
    t.ok(spent <= MOST_TIMES * usual, `${(spent / usual).toFixed(1)} times as long`)
  })

  await t.test('are for the first of many', async (t) => {
    const many = Array.from({ length: 50 }, (_, n) => `app=${'paymnets'.repeat(3)}${n}`)
    for (const [tool, args] of [
      ['get-workloads', { labels: many }],
      ['get-traffic-flows', { ...WEEK, include_sources: many.slice(0, 40) }],
    ] as const) {
      const { answer, spent } = await timed(() => bench.fails(tool, args, 'unresolved_label_filter'))
      t.ok(answer.unresolved.length >= 40)
      t.equal(Object.keys(answer.valid_values).length, 20)
      t.match(answer.message, /and \d+ more\. Nothing was queried/)
      t.ok(spent <= MOST_TIMES * usual, `${tool}: ${(spent / usual).toFixed(1)} times as long`)
    }
  })

  await t.test('are still the nearest', async (t) => {
    const { near_names: near } = await bench.fails(
      'enforcement-readiness',
      { app_name: 'paymnets', env_name: 'y' },
      'not_found',
    )
    t.equal(near[0], 'payments')
    const part = await bench.fails('enforcement-readiness', { app_name: 'payments-eu', env_name: 'y' }, 'not_found')
    t.equal(part.near_names[0], 'payments-europe')
    const few = await bench.fails('get-workloads', { labels: ['app=PAYMENTS'] }, 'unresolved_label_filter')
    t.equal(few.valid_values['app=PAYMENTS'][0], 'payments')
  })
})
