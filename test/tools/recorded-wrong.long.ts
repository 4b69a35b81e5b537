/**
 * On random estates whose recorded decisions are planted: what the PCE recorded changes no judgement of preview, dry runs, readiness
 * and coverage, and what explain-flow says for certain before and after the change is what the preview counted.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { randomCase } from './random-estate.js'

const MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
const PAY = { app_name: 'pay', env_name: 'prod' }
const PROTOCOLS: Record<number, string> = { 6: 'tcp', 17: 'udp' }
const RANDOM = { numRuns: 40, seed: 20261128, endOnFailure: true }

/** What all tools judge; `stays` is one sum, as the record tells the two apart where nobody else does. */
async function judge({ ok }: Bench, to: string) {
  const change = { ...PAY, enforcement_mode: to }
  const preview = await ok('preview-enforcement-change', { ...change, detail_level: 'full' })
  const planned = await ok('set-enforcement-mode', { ...change, dry_run: true })
  const one = await ok('update-workload', { name: 'pay-1', enforcement_mode: to, dry_run: true })
  const readiness = await ok('enforcement-readiness', PAY)
  const coverage = await ok('get-policy-coverage-report', PAY)
  const stays = ({ stays_allowed: allowed, stays_blocked: blocked, ...others }: Json) => ({
    ...others,
    stays: allowed + blocked,
  })
  const { kept, blocked, ...cut } = one.effect?.traffic.connections ?? { kept: 0, blocked: 0 }
  return {
    connections: preview.connections as Record<string, number>,
    judged: {
      preview: stays(preview.connections),
      changes: preview.traffic_changes,
      planned: stays(planned.connections ?? preview.connections),
      one: { ...cut, stays: kept + blocked },
      readiness: [
        readiness.readiness_score,
        readiness.traffic_analysis,
        readiness.remote_apps,
        readiness.uncovered_flows,
      ],
      coverage: [coverage.total_allowed, coverage.inbound.by_decision, coverage.outbound.by_decision, coverage.intra],
    },
  }
}

const isOwn = ({ hosts }: HandMadeEstate, name: string) => {
  const labels = String(hosts?.[name]?.labels ?? '').split(/[ ,]/)
  return labels.includes('app=pay') && labels.includes('env=prod')
}

/** The verdicts of explain-flow on the traffic of the application, with its connections. */
async function explain({ ok }: Bench, estate: HandMadeEstate) {
  const verdicts: { verdict: string; connections: number }[] = []
  for (const { from, to, port = 443, proto = 6, connections = 1 } of estate.flows ?? []) {
    if (!isOwn(estate, from) && !isOwn(estate, to)) continue
    const name = PROTOCOLS[proto]
    const args = { source: from, destination: to, port, proto: name, lookback_days: 0 }
    const verdict = name === undefined || from === to ? 'uncertain' : (await ok('explain-flow', args)).active.verdict
    verdicts.push({ verdict, connections })
  }
  return verdicts
}

async function check(t: Test, estate: HandMadeEstate, recorded: readonly string[], to: string): Promise<string[]> {
  // Rows that differ in their decision alone would be two, so equal conversations were decided alike.
  const ids = (estate.flows ?? []).map(({ from, to: other, port, proto }) => `${from} ${other} ${port} ${proto}`)
  const flows = (estate.flows ?? []).map((flow, at) => ({
    ...flow,
    recorded: recorded[ids.indexOf(ids[at]!)] as (typeof POLICY_DECISIONS)[number],
  }))
  const [plain, planted] = [
    await startBench(t, { estate: handMade(estate), budget: 800_000 }),
    await startBench(t, { estate: handMade({ ...estate, flows }), budget: 800_000 }),
  ]
  const wrong: string[] = []
  try {
    const [right, said] = [await judge(plain, to), await judge(planted, to)]
    for (const [tool, expected] of Object.entries(right.judged)) {
      const found = said.judged[tool as keyof typeof said.judged]
      if (JSON.stringify(found) !== JSON.stringify(expected))
        wrong.push(`${tool}: ${JSON.stringify(found)} by the record, ${JSON.stringify(expected)} without`)
    }
    const before = await explain(planted, estate)
    await planted.ok('set-enforcement-mode', { ...PAY, enforcement_mode: to })
    const after = await explain(planted, estate)
    const certain: Record<string, number> = { cut: 0, opened: 0, stays_allowed: 0, stays_blocked: 0 }
    let open = 0
    for (const [at, { verdict: was, connections }] of before.entries()) {
      const is = after[at]!.verdict
      if (was === 'uncertain' || is === 'uncertain' || was === 'split' || is === 'split') open += connections
      else {
        const fate =
          was === 'blocked'
            ? is === 'blocked'
              ? 'stays_blocked'
              : 'opened'
            : is === 'blocked'
              ? 'cut'
              : 'stays_allowed'
        certain[fate]! += connections
      }
    }
    for (const [fate, count] of Object.entries(certain)) {
      const least = said.connections[fate]!
      const possible = fate === 'cut' || fate === 'opened' ? (said.connections[`possibly_${fate}`] ?? 0) : 0
      if (least + possible < count || least > count + open)
        wrong.push(`${fate}: explain-flow ${count} and ${open} open, the preview ${least} and ${possible} possibly`)
    }
    return wrong
  } finally {
    for (const { pce, simulator } of [plain, planted]) {
      pce.close()
      await simulator.close()
    }
  }
}

t.test('the record decides nothing', async (t) => {
  const details = await fc.check(
    fc.asyncProperty(
      randomCase,
      fc.array(fc.constantFrom(...POLICY_DECISIONS), { minLength: 24, maxLength: 24 }),
      fc.constantFrom(...MODES),
      async ({ estate }, recorded, to) => {
        const wrong = await check(t, estate, recorded, to)
        if (wrong.length > 0) throw new Error(wrong.join('\n'))
      },
    ),
    RANDOM,
  )
  t.notOk(
    details.failed,
    `${String(details.errorInstance)} ${fc.defaultReportMessage(details) ?? `held for ${details.numRuns} estates`}`,
  )
})
