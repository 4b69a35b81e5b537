/** "Did you mean" is a hint: it costs nothing noticeable, whatever a caller writes and however many names there are. */
import t, { type Test } from 'tap'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { startServer } from '../pce-client/support.js'
import { benchOf, NOW, WEEK, type Json } from './harness.js'

/** Comparing names of any length took 17 s for one of these calls; what is measured is this process with all that goes on beside it. */
const MOST_MS = 5000
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

/** What a call answers, and how long it took in milliseconds. */
async function timed(act: () => Promise<Json>): Promise<{ answer: Json; ms: number }> {
  const started = performance.now()
  const answer = await act()
  return { answer, ms: performance.now() - started }
}

t.test('suggestions', async (t) => {
  const bench = await startWide(t)
  // The labels are read before: their list is not what is measured.
  await bench.fails('enforcement-readiness', { app_name: 'x', env_name: 'y' }, 'not_found')

  await t.test('are none for what is longer than any name', async (t) => {
    const fifty = Array.from({ length: 50 }, (_, n) => `app=${n}${LONG}`)
    const { answer, ms } = await timed(() => bench.fails('get-workloads', { labels: fifty }, 'unresolved_label_filter'))
    t.equal(answer.unresolved.length, 50)
    t.same(Object.values(answer.valid_values).flat(), [])
    t.ok(ms < MOST_MS, `${Math.round(ms)} ms`)
  })

  await t.test('are for the first of many', async (t) => {
    const many = Array.from({ length: 50 }, (_, n) => `app=${'paymnets'.repeat(3)}${n}`)
    for (const [tool, args] of [
      ['get-workloads', { labels: many }],
      ['get-traffic-flows', { ...WEEK, include_sources: many.slice(0, 40) }],
    ] as const) {
      const { answer, ms } = await timed(() => bench.fails(tool, args, 'unresolved_label_filter'))
      t.ok(answer.unresolved.length >= 40)
      t.equal(Object.keys(answer.valid_values).length, 20)
      t.match(answer.message, /and \d+ more\. Nothing was queried/)
      t.ok(ms < MOST_MS, `${tool}: ${Math.round(ms)} ms`)
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
