/** What the PCE recorded is no evidence of what its policy decides now: rules and modes do, and answers count where both differ. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate } from './hand-made.js'
import { startBench } from './harness.js'

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

t.test('and without the policy nothing is known to stay', async (t) => {
  const bench = await start(t)
  const path = /\/sec_policy\/active\/rule_sets$/
  bench.simulator.faults.add({ kind: 'status', path, status: 403, times: 9, body: [] })
  const answer = await bench.ok('preview-enforcement-change', { ...A, ...FULL })
  partial(t, answer.connections, { cut: 0, possibly_cut: 15, stays_allowed: 0, stays_blocked: 0 })
  t.equal(answer.recorded_otherwise, undefined)
})
