/** What the PCE recorded is no evidence of what its policy decides now: rules and modes do, and answers count where both differ. */
import t, { type Test } from 'tap'
import { contains, partial } from '../partial.js'
import type { Estate } from '../../pce-simulator/model.js'
import { handMade, ipTablesRule, type HandMadeEstate } from './hand-made.js'
import { startBench, type Json } from './harness.js'

/** No rule lets a1 reach b1, though it was recorded so; a rule lets c1 reach a1, though it was recorded as blocked. */
const ESTATE: HandMadeEstate = {
  hosts: {
    a1: { ip: '10.0.0.1', labels: 'app=A env=prod' },
    b1: { ip: '10.0.0.2', labels: 'app=B env=prod', mode: 'selective' },
    c1: { ip: '10.0.0.3', labels: 'app=C env=prod' },
  },
  flows: [
    { from: 'a1', to: 'b1', port: 5432, connections: 7, recorded: 'allowed' },
    { from: 'c1', to: 'a1', port: 443, connections: 5, recorded: 'blocked' },
    { from: 'c1', to: 'a1', port: 22, connections: 3 },
  ],
  ruleSets: [
    {
      name: 'A',
      scope: 'app=A env=prod',
      allow: [{ from: 'app=C', to: 'app=A', extra: true, services: [{ port: 443, proto: 6 }] }],
    },
  ],
}
const RECORDED = { allowed_without_rule: 7, stopped_despite_rule: 5 }
const WHY =
  'recorded_otherwise: rules or modes changed since, selective mode let pass what no rule allows, or the PCE has an essential rule.'

const start = (t: Test, estate = ESTATE) => startBench(t, { estate: handMade(estate) })
const A = { app_name: 'A', env_name: 'prod' }
const FULL = { enforcement_mode: 'full' }

t.test('a change of mode is judged by the rules', async (t) => {
  const bench = await start(t)
  const connections = {
    cut: 10,
    opened: 0,
    possibly_cut: 0,
    possibly_opened: 0,
    stays_allowed: 5,
    stays_blocked: 0,
  }
  for (const [tool, args] of [
    ['preview-enforcement-change', {}],
    ['set-enforcement-mode', { dry_run: true }],
  ] as const) {
    const answer = await bench.ok(tool, { ...A, ...FULL, ...args })
    t.same(answer.connections, connections, tool)
    t.same(answer.recorded_otherwise, RECORDED, tool)
    t.ok(answer.notes.includes(WHY), tool)
  }
  const { effect } = await bench.ok('update-workload', { name: 'a1', ...FULL, dry_run: true })
  t.same(effect.traffic.connections, { cut: 10, possibly_cut: 0, kept: 5, blocked: 0 })
  t.same(effect.traffic.recorded_otherwise, RECORDED)
  t.ok(effect.note.includes(WHY))
})

t.test('covered is what rules allow', async (t) => {
  const bench = await start(t)
  const { traffic_analysis: traffic, ...readiness } = await bench.ok('enforcement-readiness', A)
  t.same(traffic.policy_decisions, { allowed: 1, potentially_blocked: 2, blocked: 0, unknown: 0 })
  t.same([traffic.coverage_percentage, traffic.connection_coverage_percentage], [33.3, 33.3])
  t.same(
    readiness.uncovered_flows.map(({ path, remote, port }: Json) => `${path} ${remote} ${port}`),
    ['outbound B (prod) 5432', 'inbound C (prod) 22'],
  )
  t.same(readiness.remote_apps.partially_covered, [{ app: 'C', env: 'prod' }])
  t.same(readiness.recorded_otherwise, RECORDED)
  t.ok(readiness.recommendations.includes(WHY))
  const coverage = await bench.ok('get-policy-coverage-report', A)
  partial(t, coverage, { total_allowed: 1, overall_coverage_percentage: 33.3, outbound: { coverage_percentage: 0 } })
  t.same(coverage.recorded_otherwise, RECORDED)
  t.ok(coverage.recommendation.includes(WHY))
})

t.test('compliance is what rules allow', async (t) => {
  const { ok } = await start(t)
  const { findings, ...answer } = await ok('compliance-check', A)
  const of = (id: string) => findings.find((one: Json) => one.id === id)
  partial(t, of('SEG-4'), {
    status: 'FAIL',
    evidence: { counts: { allowed: 1, potentially_blocked: 2, blocked: 0 } },
  })
  partial(t, of('SEG-3'), { status: 'WARNING', evidence: { counts: { passing_unenforced: 1, blocked: 0 } } })
  t.same(answer.recorded_otherwise, RECORDED)
  t.ok(answer.recommendation.endsWith(WHY))
})

t.test('it does not tell either what stays where an end that does not change is undecided', async (t) => {
  for (const recorded of ['allowed', 'blocked'] as const) {
    const plain = handMade({
      hosts: { ...ESTATE.hosts, b1: { ...ESTATE.hosts!.b1!, mode: 'full' } },
      flows: [{ ...ESTATE.flows![0]!, recorded }],
      ruleSets: [{ name: 'B', scope: 'app=B', allow: [{ from: 'app=A', to: 'app=B', extra: true }] }],
    })
    const ruleSets = [{ ...plain.ruleSets[0]!, ip_tables_rules: [ipTablesRule('-j DROP')] }]
    const { ok } = await startBench(t, { estate: { ...plain, ruleSets } as Estate })
    const { connections, notes, assumes } = await ok('preview-enforcement-change', { ...A, ...FULL })
    const none = { cut: 0, opened: 0, possibly_cut: 0, possibly_opened: 0, stays_allowed: 0, stays_blocked: 0 }
    t.same(connections, { ...none, stays_undecided: 7 }, recorded)
    t.ok(notes.includes('stays_undecided: because of rules in the words of iptables.'))
    t.same(assumes, ['P19'])
    const { effect } = await ok('update-workload', { name: 'a1', ...FULL, dry_run: true })
    t.same(effect.traffic.connections, { cut: 0, possibly_cut: 0, kept: 0, blocked: 0, undecided: 7 }, recorded)
    contains(
      t,
      effect.note,
      'unaffected by the mode change; whether they pass depends on rules in the words of iptables',
    )
  }
})

t.test('and without the policy nothing is known to stay', async (t) => {
  const bench = await start(t)
  const path = /\/sec_policy\/active\/rule_sets$/
  bench.simulator.faults.add({ kind: 'status', path, status: 403, times: 9, body: [] })
  const answer = await bench.ok('preview-enforcement-change', { ...A, ...FULL })
  partial(t, answer.connections, { cut: 0, possibly_cut: 15, stays_allowed: 0, stays_blocked: 0 })
  t.equal(answer.recorded_otherwise, undefined)
  bench.simulator.faults.clear()
  bench.simulator.faults.add({ kind: 'status', path: /active\/services$/, status: 403, times: 9, body: [] })
  const readiness = await bench.ok('enforcement-readiness', A)
  partial(t, readiness, {
    readiness_score: null,
    readiness_level: 'unknown',
    traffic_analysis: { total_flows: 3, coverage_percentage: null, policy_decisions: { allowed: 0, undecided: 3 } },
  })
  contains(
    t,
    readiness.recommendations[0],
    'No score: Of 3 rows of traffic all are undecided because of a policy that could not be read.',
  )
})
