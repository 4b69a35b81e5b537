/** What every analysis tool promises of its answers, on an estate large enough to outgrow them. */
import t from 'tap'
import { partial } from '../partial.js'
import { startBench, WEEK, type Json } from './harness.js'

const APPLICATION = { app_name: 'payments', env_name: 'prod' }

/** Every tool that runs a traffic query, with arguments that leave everything else at its default. */
const CALLS: Record<string, object> = {
  'get-traffic-flows': WEEK,
  'get-traffic-flows-summary': WEEK,
  'find-unmanaged-traffic': {},
  'discover-process-egress': {},
  'identify-infrastructure-services': {},
  'detect-lateral-movement-paths': APPLICATION,
  'create-ringfence': { ...APPLICATION, selective: true, dry_run: true },
  'ringfence-batch': { apps: [APPLICATION, { app_name: 'ordering', env_name: 'prod' }], dry_run: true },
  'compliance-check': {},
  'enforcement-readiness': APPLICATION,
  'get-policy-coverage-report': APPLICATION,
}
/** D2. */
const BUDGET = 24_000

t.test('answers of the analysis tools', async (t) => {
  const bench = await startBench(t, { seed: 7, workloads: 400, flows: 10_000 })
  const { simulator } = bench

  for (const [name, args] of Object.entries(CALLS)) {
    await t.test(name, async (t) => {
      simulator.clearRequests()
      const answer = await bench.ok(name, args)
      const queries = simulator.requests.filter(({ method, path }) => method === 'POST' && /async_queries$/.test(path))
      t.ok(queries.length > 0, `${queries.length} queries`)
      for (const { body } of queries) partial(t, body, { max_results: 200_000 }, 'as many rows as the PCE gives')

      const bytes = Buffer.byteLength(JSON.stringify(answer))
      t.ok(bytes <= BUDGET, `${bytes} bytes`)
      t.type(answer.flows_truncated ?? answer.totals.truncated, 'boolean', 'says whether the row limit was reached')
      if (name !== 'ringfence-batch') {
        partial(t, answer.window, { start: /^2026-\d\d-\d\dT00:00:00Z$/, end: /^2026-\d\d-\d\dT23:59:59Z$/ })
        const rows = answer.analysed?.rows ?? answer.rows_analysed ?? answer.totals.rows
        t.ok(rows > 100, `${rows} rows analysed`)
      }
      const steps: number[] = bench.progress.map(({ progress }) => progress)
      t.ok(steps.length > 3, 'progress is reported')
      t.ok(
        steps.every((step, at) => at === 0 || step > (steps[at - 1] as number)),
        'and rises over all queries of the call',
      )
      t.same(await bench.ok(name, args), answer, 'the same question has the same answer')
    })
  }

  await t.test('a smaller budget costs rows, never totals or correctness', async (t) => {
    const small = await startBench(t, { seed: 7, workloads: 400, flows: 10_000, budget: 12_000 })
    for (const name of [
      'find-unmanaged-traffic',
      'identify-infrastructure-services',
      'detect-lateral-movement-paths',
    ]) {
      const [whole, cut]: Json[] = [await bench.ok(name, CALLS[name]), await small.ok(name, CALLS[name])]
      t.ok(Buffer.byteLength(JSON.stringify(cut)) <= 12_000, `${name}: ${Buffer.byteLength(JSON.stringify(cut))} bytes`)
      t.ok(cut.truncated_sections.length > 0, 'what is shown shorter is named')
      for (const [field, value] of Object.entries<Json>(whole)) {
        if (Array.isArray(value) || /truncat/.test(field)) continue
        t.same(cut[field], value, `${name}: ${field}`)
      }
    }
  })
})
