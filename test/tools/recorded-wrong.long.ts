/**
 * On random estates whose recorded decisions and modes are planted, with rules in the words of iptables among others and traffic both
 * ways: what the rows report changes no judgement of preview, dry runs, readiness, coverage and compliance; readiness, coverage and compliance
 * count the same rows; and what explain-flow says before and after the change is what the preview counted.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { POLICY_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench, type Bench, type Json } from './harness.js'
import { randomCase, type RandomCase } from './random-estate.js'
import { reportModes, startTwisted } from './twisted.js'

const MODES = ['idle', 'visibility_only', 'selective', 'full'] as const
const PAY = { app_name: 'pay', env_name: 'prod' }
const PROTOCOLS: Record<number, string> = { 1: 'icmp', 6: 'tcp', 17: 'udp' }
const RANDOM = { numRuns: 14, seed: 20261128, endOnFailure: true }

const WORDS = ['allowed', 'potentially_blocked', 'blocked', 'undecided'] as const

/** Rows by decision of the report of coverage: all of them, of which those inside count both ways; and those across alone. */
const rowsOf = ({ inbound, outbound, intra }: Json, inside = 1) =>
  Object.fromEntries(
    WORDS.map((word) => {
      const [into, out, within] = [inbound, outbound, intra].map(({ by_decision: by }) => by[word] ?? 0)
      return [word, into + out - inside * within]
    }),
  )
const rowsAcross = (coverage: Json) => rowsOf(coverage, 2)

/** What all tools judge. */
async function judge({ ok }: Bench, to: string) {
  const change = { ...PAY, enforcement_mode: to }
  const preview = await ok('preview-enforcement-change', { ...change, detail_level: 'full' })
  const planned = await ok('set-enforcement-mode', { ...change, dry_run: true })
  const one = await ok('update-workload', { name: 'pay-1', enforcement_mode: to, dry_run: true })
  const readiness = await ok('enforcement-readiness', PAY)
  const coverage = await ok('get-policy-coverage-report', PAY)
  const [general, swift] = [
    await ok('compliance-check', PAY),
    await ok('compliance-check', { ...PAY, framework: 'swift-csp' }),
  ]
  const across = rowsAcross(coverage)
  const { counts } = general.findings.find(({ id }: Json) => id === 'SEG-4').evidence
  return {
    connections: preview.connections as Record<string, number>,
    rows: {
      coverage: across,
      compliance: Object.fromEntries(Object.keys(across).map((word) => [word, counts[word] ?? 0])),
      all: { ...across, ...readiness.traffic_analysis.policy_decisions },
      readiness: { ...across, ...rowsOf(coverage) },
    },
    judged: {
      preview: preview.connections,
      changes: preview.traffic_changes,
      planned: planned.connections ?? preview.connections,
      one: one.effect?.traffic.connections,
      readiness: [
        readiness.readiness_score,
        readiness.traffic_analysis,
        readiness.remote_apps,
        readiness.uncovered_flows,
      ],
      coverage: [coverage.total_allowed, coverage.inbound.by_decision, coverage.outbound.by_decision, coverage.intra],
      compliance: [general, swift].map(({ compliance_score: score, findings }) => [score, findings]),
    },
  }
}

const isOwn = ({ hosts }: HandMadeEstate, name: string) => {
  const labels = String(hosts?.[name]?.labels ?? '').split(/[ ,]/)
  return labels.includes('app=pay') && labels.includes('env=prod')
}

/** What explain-flow says becomes of the traffic of the application: it passes, it does not, or that is open. */
async function explain({ ok }: Bench, estate: HandMadeEstate) {
  const fates: { fate: 'passes' | 'blocked' | 'open'; connections: number }[] = []
  for (const { from, to, port = 443, proto = 6, connections = 1 } of estate.flows ?? []) {
    if (!isOwn(estate, from) && !isOwn(estate, to)) continue
    const args = {
      source: from,
      destination: to,
      proto: PROTOCOLS[proto],
      ...(proto !== 1 && { port }),
      lookback_days: 0,
    }
    const { verdict, why } = (await ok('explain-flow', args)).active
    const words = verdict === 'uncertain' ? why.split(':')[0].split(' or ') : [verdict]
    const fate = !words.includes('blocked') ? 'passes' : words.length === 1 ? 'blocked' : 'open'
    fates.push({ fate, connections })
  }
  return fates
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
    await startTwisted(t, { estate: handMade({ ...estate, flows }), budget: 800_000 }),
  ]
  planted.twist(reportModes((mode) => MODES[(MODES.indexOf(mode as 'full') + 1) % MODES.length]))
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
    const counted: Record<string, number> = { cut: 0, opened: 0, stays_allowed: 0, stays_blocked: 0, open: 0 }
    for (const [at, { fate: was, connections }] of before.entries()) {
      const { fate: is } = after[at]!
      const fate =
        was === 'open' || is === 'open'
          ? 'open'
          : was === 'blocked'
            ? is === 'blocked'
              ? 'stays_blocked'
              : 'opened'
            : is === 'blocked'
              ? 'cut'
              : 'stays_allowed'
      counted[fate]! += connections
    }
    const {
      possibly_cut: cut = 0,
      possibly_opened: opened = 0,
      stays_undecided: stays = 0,
      ...certain
    } = said.connections
    const previewed = { ...certain, open: cut + opened + stays }
    for (const [fate, count] of Object.entries(counted))
      if (previewed[fate as 'open'] !== count)
        wrong.push(`${fate}: explain-flow ${count}, the preview ${JSON.stringify(said.connections)}`)
    for (const [one, other] of [
      ['coverage', 'compliance'],
      ['all', 'readiness'],
    ] as const)
      if (WORDS.some((word) => said.rows[one][word] !== said.rows[other][word]))
        wrong.push(`${one}: ${JSON.stringify(said.rows[one])}, but ${other}: ${JSON.stringify(said.rows[other])}`)
    return wrong
  } finally {
    for (const { pce, simulator } of [plain, planted]) {
      pce.close()
      await simulator.close()
    }
  }
}

/** Whom rules in the words of iptables are for; mostly there are none. */
const iptables = fc.option(
  fc.record({
    scope: fc.constantFrom('', 'app=pay', 'env=prod', 'app=crm'),
    who: fc.constantFrom('ams', 'role=web', 'role=db', 'host:pay-1', 'host:crm-1'),
  }),
  { nil: null, freq: 1 },
)

/** The estate with such rules, and with every other flow the other way round. */
function widen({ estate }: RandomCase, tables: { scope: string; who: string } | null): HandMadeEstate {
  const flows = (estate.flows ?? []).flatMap(({ direction, ...flow }, at) => {
    if (flow.from === flow.to) return []
    return at % 2 === 0 ? { ...flow, ...(direction && { direction }) } : { ...flow, from: flow.to, to: flow.from }
  })
  const sets = tables === null ? [] : [{ name: 'tables', scope: tables.scope, iptables: [tables.who] }]
  return { ...estate, flows, ruleSets: [...(estate.ruleSets ?? []), ...sets] }
}

t.test('the record decides nothing', async (t) => {
  const details = await fc.check(
    fc.asyncProperty(
      randomCase,
      fc.array(fc.constantFrom(...POLICY_DECISIONS), { minLength: 24, maxLength: 24 }),
      fc.constantFrom(...MODES),
      iptables,
      async (random, recorded, to, tables) => {
        const wrong = await check(t, widen(random, tables), recorded, to)
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
