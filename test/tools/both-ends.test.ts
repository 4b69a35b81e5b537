/** Conversations that both ends reported: shown as the PCE has them, counted once where something is judged. */
import t, { type Test } from 'tap'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate, type HandMadeFlow } from './hand-made.js'
import { startBench, type Json, WEEK } from './harness.js'

const PAY = { app_name: 'pay', env_name: 'prod' }
const HOSTS: HandMadeEstate['hosts'] = {
  'db-1': { ip: '10.0.0.1', labels: 'app=pay env=prod role=db' },
  'web-1': { ip: '10.0.0.2', labels: 'app=pay env=prod role=web' },
  'crm-1': { ip: '10.0.1.1', labels: 'app=crm env=prod' },
}
const ONCE = 'Conversations that both ends reported count once, with the greater number of connections.'
const twice = (connections: number) =>
  `Both ends report: ${connections} connections are in the sums twice, once for each end (flow_direction tells which).`

/** The same conversation as both ends saw it. */
const bothEnds = (flow: HandMadeFlow, source: number, destination: number): HandMadeFlow[] => [
  { ...flow, direction: 'outbound', process: 'curl', connections: source },
  { ...flow, direction: 'inbound', process: 'postgres', connections: destination },
]
const CALL = { from: 'crm-1', to: 'db-1', port: 5432 }
const INSIDE = { from: 'web-1', to: 'db-1', port: 5432 }

const start = (t: Test, flows: HandMadeFlow[], ruleSets: HandMadeEstate['ruleSets'] = []) =>
  startBench(t, { estate: handMade({ hosts: HOSTS, flows, ruleSets }) })

t.test('a preview counts a conversation once, with the greater number', async (t) => {
  const preview = async (flows: HandMadeFlow[]) => {
    const { ok } = await start(t, flows)
    const answer: Json = await ok('preview-enforcement-change', { ...PAY, enforcement_mode: 'full' })
    const at = answer.traffic_change_columns.indexOf('connections')
    const changes = answer.traffic_changes.map((row: Json[]) => row[at])
    t.notOk(answer.notes.includes(ONCE), 'the note stands once')
    return [changes, answer.analysed.pce_flows, answer.analysed.note]
  }
  for (const [what, flows, changes, note] of [
    ['the source saw more', bothEnds(CALL, 9, 8), [9], ONCE],
    ['the destination saw more', bothEnds(CALL, 8, 9).toReversed(), [9], ONCE],
    ['inside the application', bothEnds(INSIDE, 9, 9), [9], ONCE],
    ['a count of zero', bothEnds(CALL, 0, 0), [0], undefined],
    ['one end alone', bothEnds(CALL, 9, 8).slice(0, 1), [9], undefined],
    [
      'two programs of the source',
      [...bothEnds(CALL, 5, 9), { ...CALL, process: 'wget', connections: 4, direction: 'outbound' as const }],
      [9],
      ONCE,
    ],
    ['another port', [bothEnds(CALL, 9, 8)[0]!, { ...bothEnds(CALL, 9, 8)[1]!, port: 5433 }], [9, 8], undefined],
    ['another protocol', [bothEnds(CALL, 9, 8)[0]!, { ...bothEnds(CALL, 9, 8)[1]!, proto: 17 }], [9, 8], undefined],
    ['another day', [bothEnds(CALL, 9, 8)[0]!, { ...bothEnds(CALL, 9, 8)[1]!, daysAgo: 3 }], [17], undefined],
    [
      'the way back',
      [bothEnds(CALL, 9, 8)[0]!, { from: 'db-1', to: 'crm-1', port: 5432, connections: 8 }],
      [9, 8],
      undefined,
    ],
    [
      'an address, which reports nothing',
      [
        { from: '10.9.9.9', to: 'db-1', connections: 9, direction: 'outbound' as const },
        { from: '10.9.9.9', to: 'db-1', connections: 8, direction: 'inbound' as const },
      ],
      [17],
      undefined,
    ],
  ] as [string, HandMadeFlow[], number[], string | undefined][])
    t.same(await preview(flows), [changes, flows.length, note], what)
})

t.test('every judgement counts it once', async (t) => {
  const { ok } = await start(t, [...bothEnds(CALL, 9, 8), ...bothEnds(INSIDE, 3, 4)])
  const analysed = { pce_flows: 4, rows: 4, note: ONCE }
  partial(t, await ok('enforcement-readiness', PAY), {
    traffic_analysis: { total_flows: 2, total_connections: 13 },
    analysed,
  })
  partial(t, await ok('get-policy-coverage-report', PAY), {
    total_flows: 2,
    inbound: { total_flows: 2, uncovered_apps: [{ app: 'crm', env: 'prod', connections: 9 }] },
    analysed,
  })
  partial(t, await ok('identify-infrastructure-services'), { analysed })
  partial(t, await ok('detect-lateral-movement-paths'), { analysed })
  partial(t, await ok('compliance-check', { framework: 'general' }), { analysed })
  const { inbound_remote_apps: apps, ...plan } = await ok('create-ringfence', { ...PAY, dry_run: true })
  t.same(
    apps.map(({ app, connections }: Json) => [app, connections]),
    [['crm', 9]],
  )
  partial(t, plan, { analysed: { note: ONCE } })
})

t.test('explain-flow counts what was observed once, and names the programs of both ends', async (t) => {
  const observed = async (flows: HandMadeFlow[]) => {
    const { ok } = await start(t, flows)
    const { observed } = await ok('explain-flow', { source: 'crm-1', destination: 'db-1', port: 5432, proto: 'tcp' })
    return [observed.connections, observed.programs, observed.note]
  }
  const [out, into] = bothEnds(CALL, 9, 8) as [HandMadeFlow, HandMadeFlow]
  const both = ['curl', 'postgres']
  t.same(await observed([out, into]), [{ potentially_blocked: 9 }, both, ONCE])
  t.same(await observed(bothEnds(CALL, 8, 9)), [{ potentially_blocked: 9 }, both.toReversed(), ONCE])
  t.same(await observed([out]), [{ potentially_blocked: 9 }, ['curl'], undefined], 'one end alone')
  t.same(await observed([out, { ...into, daysAgo: 4 }]), [{ potentially_blocked: 17 }, both, undefined], 'another day')
})

t.test('where the ends decided differently, the stricter decision counts first', async (t) => {
  const { ok, pce, simulator } = await start(t, bothEnds(CALL, 9, 8))
  const everything = { include: [[]], exclude: [] }
  const query = { sources: everything, destinations: everything, services: { include: [], exclude: [] } }
  const recorded = (await pce.getTrafficFlowsAsync('truth', {
    ...query,
    start_date: '2026-06-08T00:00:00Z',
    end_date: '2026-06-15T23:59:59Z',
    policy_decisions: [],
  })) as Json[]
  const answered = async (decisions: [string, string]) => {
    const body = recorded.map((row) => ({
      ...row,
      policy_decision: decisions[row.flow_direction === 'outbound' ? 0 : 1],
    }))
    simulator.faults.add({ kind: 'status', path: /\/download$/, status: 200, times: 1, body })
    simulator.faults.add({ kind: 'status', path: /\/download$/, status: 200, times: 1, body: [] })
    const { inbound, recorded_otherwise: otherwise } = await ok('get-policy-coverage-report', PAY)
    return [inbound.total_flows, otherwise?.allowed_without_rule]
  }
  // No rule allows it, so the report tells where the PCE is taken to have allowed it.
  for (const decisions of [
    ['allowed', 'blocked'],
    ['blocked', 'allowed'],
    ['allowed', 'potentially_blocked'],
    ['potentially_blocked', 'blocked'],
    ['unknown', 'blocked'],
  ] as [string, string][])
    t.same(await answered(decisions), [1, undefined], decisions.join(' and '))
  t.same(await answered(['allowed', 'unknown']), [1, 9])
})

t.test('sums of what the PCE recorded say that both ends report', async (t) => {
  const { ok } = await start(t, [...bothEnds(CALL, 9, 8), ...bothEnds(INSIDE, 3, 3)])
  partial(t, await ok('get-traffic-flows', WEEK), { rows_analysed: 4, coverage_note: twice(11) })
})
