/**
 * complete: true on every tool that analyses traffic: a PCE that gives few rows at once must lead to the answer of one that gives all.
 * `test/tools/complete-traffic.long.ts` has the same for millions of rows.
 */
import fc from 'fast-check'
import t from 'tap'
import { createFlowEncoder, emptyRow } from '../../domain/traffic/encode-flow.js'
import { createSeenRows } from '../../domain/traffic/hold-rows.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import type { TrafficQuery } from '../../schemas/pce/traffic.js'
import { tools } from '../../tools/index.js'
import { partial } from '../partial.js'
import { handMade, type HandMadeEstate, type HandMadeFlow } from './hand-made.js'
import { startBench, WEEK, type Bench, type Json } from './harness.js'

const APPLICATION = { app_name: 'payments', env_name: 'prod' }
const COMPLETE = { complete: true }

/** Every tool that analyses traffic; the two that change something do it in the dry run of another mode. */
const CALLS: Record<string, (bench: Bench) => Promise<object> | object> = {
  'get-traffic-flows': () => ({ ...WEEK, group_by: ['source', 'destination', 'port', 'process_name', 'state'] }),
  'get-traffic-flows-summary': () => WEEK,
  'find-unmanaged-traffic': () => ({}),
  'compare-traffic': () => ({}),
  'identity-reach': () => ({}),
  'discover-process-egress': () => ({}),
  'exposure-report': () => ({ services: ['SMB', 'SSH'] }),
  'identify-infrastructure-services': () => ({}),
  'detect-lateral-movement-paths': () => APPLICATION,
  'create-ringfence': () => ({ ...APPLICATION, dry_run: true }),
  'plan-port-closure': () => ({ services: ['SMB', 'SSH'], dry_run: true }),
  'ringfence-batch': () => ({ apps: [APPLICATION], auto_order: true, dry_run: true }),
  'compliance-check': () => ({}),
  'enforcement-readiness': () => APPLICATION,
  'get-policy-coverage-report': () => APPLICATION,
  'preview-enforcement-change': () => ({ ...APPLICATION, enforcement_mode: 'full' }),
  'set-enforcement-mode': () => ({ ...APPLICATION, enforcement_mode: 'full', dry_run: true }),
  'update-workload': async ({ pce }) => {
    const all = await pce.workloads.getAll()
    const { href } = all.find(({ enforcement_mode: mode, managed }) => managed === true && mode === 'visibility_only')!
    return { href, enforcement_mode: 'full', dry_run: true }
  },
  'update-container-workload-profile': async ({ pce }) => {
    const [cluster] = await pce.containerClusters.getAll()
    const all = await pce.containerWorkloadProfiles.getAll('draft', cluster!.href)
    const { href } = all.find(({ labels }) => (labels ?? []).length > 0)!
    return { profile_href: href, enforcement_mode: 'full', managed: true, dry_run: true }
  },
}

/** Those that read the traffic of one application, workload or service alone. */
const FEW_ROWS = new Set([
  'exposure-report',
  'plan-port-closure',
  'enforcement-readiness',
  'get-policy-coverage-report',
  'preview-enforcement-change',
  'set-enforcement-mode',
  'update-workload',
  'update-container-workload-profile',
])

/** Everywhere in an answer: how many parts it was read in, and what says that it is cut. */
function* fieldsNamed(answer: Json, names: readonly string[]): Generator<Json> {
  for (const [name, value] of Object.entries(answer ?? {})) {
    if (names.includes(name)) yield value
    if (typeof value === 'object') yield* fieldsNamed(value, names)
  }
}
const partsOf = (answer: Json): number[] => [...fieldsNamed(answer, ['parts'])]
const isCut = (answer: Json): boolean =>
  [...fieldsNamed(answer, ['flows_truncated']), answer.totals?.truncated].includes(true)
/** What tells how an answer was asked for; a cursor is bound to the arguments. */
const HOW = ['parts', 'row_limit', 'next_cursor']
const withoutParts = (answer: Json): Json =>
  JSON.parse(JSON.stringify(answer, (name, value) => (HOW.includes(name) ? undefined : value)))

const queriesOf = ({ simulator }: Bench): (TrafficQuery & { query_name: string })[] =>
  simulator.requests
    .filter(({ method, path }) => method === 'POST' && /async_queries$/.test(path))
    .map(({ body }) => body as TrafficQuery & { query_name: string })

t.test('every tool: the answer is that of a PCE without a limit', async (t) => {
  const estate = { seed: 7, workloads: 60, flows: 300, pollsUntilDone: 1 }
  const whole = await startBench(t, estate)
  const ofEstate = await startBench(t, { ...estate, trafficRows: 150 })
  const ofFew = await startBench(t, { ...estate, trafficRows: 10 })
  const tight = await startBench(t, { ...estate, trafficRows: 10, maxParts: 2 })
  const taking = tools.filter(({ input }) => 'complete' in input.properties).map(({ name }) => name)
  t.same(Object.keys(CALLS).sort(), taking.sort(), 'each of them')
  for (const [name, argumentsOf] of Object.entries(CALLS))
    await t.test(name, async (t) => {
      const args = await argumentsOf(whole)
      const asked = queriesOf(whole).length
      const wanted = await whole.ok(name, args)
      const queries = queriesOf(whole).length - asked
      t.same(partsOf(wanted), [], 'parts are told where they were asked for')
      const narrow = FEW_ROWS.has(name) ? ofFew : ofEstate
      const before = queriesOf(narrow).length
      const complete = await narrow.ok(name, { ...args, ...COMPLETE })
      t.ok(queriesOf(narrow).length - before > queries, 'more queries than without a limit')
      t.notOk(isCut(complete), 'nothing is cut')
      t.strictSame(withoutParts(complete), withoutParts(wanted))
      t.ok(
        partsOf(complete).some((parts) => parts > 1),
        'it says how many parts there were',
      )
      const cut = await tight.ok(name, args)
      t.ok(isCut(cut), 'a PCE with that limit cuts')
      t.ok(JSON.stringify(cut).includes('complete: true'), 'and the answer says what reads the rest')
      const bounded = await tight.ok(name, { ...args, ...COMPLETE })
      t.ok(isCut(bounded), 'what would take more parts than are allowed is cut as well')
    })
})

const DAYS = 7
/** A host for every day with two flows of its own, and `daily` of them with one that goes on all week. */
const week = (daily: number): HandMadeEstate => ({
  hosts: Object.fromEntries(
    ['hub', ...Array.from({ length: 2 * DAYS }, (_, at) => `host-${at}`)].map((name, at) => [
      name,
      { ip: `10.0.0.${at + 1}`, labels: `app=${name} env=prod` },
    ]),
  ),
  flows: Array.from({ length: DAYS }, (_, day): HandMadeFlow[] => [
    { from: `host-${2 * day}`, to: 'hub', port: 443, connections: 10 + day, daysAgo: day + 1 },
    { from: `host-${2 * day + 1}`, to: 'hub', port: 22, connections: 20 + day, daysAgo: day + 1 },
    ...Array.from({ length: daily }, (_, at): HandMadeFlow => ({
      from: `host-${at}`,
      to: 'hub',
      port: 8443,
      connections: 1,
      daysAgo: day + 1,
    })),
  ]).flat(),
})
const windowsOf = (bench: Bench): string[] =>
  queriesOf(bench)
    .filter(({ max_results: rows }) => rows === 200_000)
    .map(({ start_date: start, end_date: end }) => `${start} ${end}`)

t.test('by time: parts that meet at midnight and share nothing', async (t) => {
  const bench = await startBench(t, { estate: handMade(week(1)), trafficRows: 4 })
  const answer = await bench.ok('get-traffic-flows', { ...WEEK, ...COMPLETE, group_by: ['port'] })
  t.same(windowsOf(bench), [
    '2026-06-08T00:00:00Z 2026-06-14T23:59:59Z',
    '2026-06-14T00:00:00Z 2026-06-14T23:59:59Z',
    ...['13', '12', '11', '10', '09', '08'].map((day) => `2026-06-${day}T00:00:00Z 2026-06-${day}T23:59:59.999Z`),
  ])
  partial(t, answer, {
    parts: 7,
    flows_truncated: false,
    total_pce_flows: 15,
    rows_analysed: 15,
    columns: ['port', 'num_connections', 'bytes_in', 'bytes_out', 'first_detected', 'last_detected'],
    data: [
      [22, 161, 700, 1400, '2026-06-08T01:00:00Z', '2026-06-14T01:00:00Z'],
      [443, 91, 700, 1400, '2026-06-08T01:00:00Z', '2026-06-14T01:00:00Z'],
      [8443, 7, 700, 1400, '2026-06-08T01:00:00Z', '2026-06-14T01:00:00Z'],
    ],
  })
  partial(
    t,
    await bench.ok('get-traffic-flows', { ...WEEK, ...COMPLETE, include_sources: ['10.0.0.4/30'] }),
    { total_pce_flows: 15, rows_analysed: 4, parts: 7 },
    'rows that a filter leaves out here count once as well',
  )
  const messages = bench.progress.map(({ message = '' }) => message)
  t.same(
    [1, 7].map((part) => messages.filter((text) => text.startsWith(`Part ${part}, 2026-06-`)).length > 1),
    [true, true],
    'progress names the part',
  )
})

t.test('what goes on every day is divided by filters, not day by day', async (t) => {
  const bench = await startBench(t, { estate: handMade(week(12)), trafficRows: 9 })
  const { totals } = await bench.ok('get-traffic-flows-summary', { ...WEEK, ...COMPLETE })
  partial(t, totals, { rows: 26, connections: 91 + 161 + 12 * 7, pce_flows: 26, truncated: false })
  t.ok(
    windowsOf(bench).some((text) => text.startsWith('2026-06-14')),
    'after a day of it proved full',
  )
})

t.test('the bound: the parts are told, and what is cut', async (t) => {
  const bench = await startBench(t, { estate: handMade(week(1)), trafficRows: 4, maxParts: 3 })
  const { totals } = await bench.ok('get-traffic-flows-summary', { ...WEEK, ...COMPLETE })
  partial(t, totals, {
    parts: 3,
    truncated: true,
    coverage_note:
      'The row limit was reached in 1 of 3 parts, so all counts are lower bounds; narrow the window or the filters.',
  })
  const one = await startBench(t, { estate: handMade(week(1)), trafficRows: 100, maxParts: 1 })
  partial(
    t,
    (await one.ok('get-traffic-flows-summary', { ...WEEK, ...COMPLETE })).totals,
    { parts: 1, truncated: false, rows: 15 },
    'what is whole needs no more than one',
  )
  t.equal(queriesOf(one).length, 1)
})

t.test('rows that reach over a cut are not cut: a PCE may add up first (P85)', async (t) => {
  const { conversations, ...rest } = handMade(week(0))
  const [first] = conversations
  const daily = { ...first!, firstDay: first!.firstDay - 20, lastDay: null, service: { port: 8443, proto: 6 } }
  const estate = { estate: { ...rest, conversations: [...conversations, daily] }, addUpBeforeCutting: true }
  const whole = await startBench(t, estate)
  const wanted = await whole.ok('get-traffic-flows-summary', WEEK)
  const bench = await startBench(t, { ...estate, trafficRows: 4 })
  const answer = await bench.ok('get-traffic-flows-summary', { ...WEEK, ...COMPLETE })
  t.strictSame(withoutParts(answer), withoutParts(wanted))
  t.same(
    [...new Set(windowsOf(bench).slice(2))],
    ['2026-06-08T00:00:00Z 2026-06-14T23:59:59Z'],
    'one part showed it, and no other is of a shorter window',
  )
})

t.test('filters of the caller hold in every part', async (t) => {
  const estate = { seed: 7, workloads: 60, flows: 300, pollsUntilDone: 1 }
  const [whole, bench] = [await startBench(t, estate), await startBench(t, { ...estate, trafficRows: 25 })]
  for (const filters of [
    { include_services: [{ port: 443 }, { process_name: 'java' }, { port: 8000, to_port: 9000, proto: 'tcp' }] },
    { exclude_services: [{ port: 443, proto: 'tcp' }], policy_decisions: ['allowed', 'potentially_blocked'] },
    { include_sources: ['env=prod'], exclude_destinations: ['app=payments'] },
    { include_destinations: ['10.0.0.0/9'], include_sources: [['app=payments'], ['app=ordering', 'env=prod']] },
  ]) {
    const args = { ...WEEK, ...filters, group_by: ['source', 'destination', 'service', 'process_name'] }
    const wanted = await whole.ok('get-traffic-flows', args)
    const answer = await bench.ok('get-traffic-flows', { ...args, ...COMPLETE })
    t.ok(answer.parts > 1 && wanted.total_rows > 10, `${answer.parts} parts for ${JSON.stringify(filters)}`)
    t.strictSame(withoutParts(answer), withoutParts(wanted), JSON.stringify(filters))
  }
})

t.test('a cancelled call ends in a part and between them', async (t) => {
  const bench = await startBench(t, { estate: handMade(week(1)), trafficRows: 4, pollsUntilDone: 3 })
  const deleted = () => bench.simulator.requests.filter(({ method }) => method === 'DELETE').length
  const args = { ...WEEK, ...COMPLETE }
  for (const [when, asked, gone] of [
    [/^Part 3, .*(queued|working)/, 4, 1],
    [/^Part 3, .*Starting/, 3, 0],
  ] as const) {
    bench.simulator.clearRequests()
    const error = await bench.cancelled('get-traffic-flows-summary', args, ({ message = '' }) => when.test(message))
    t.equal(error['error'], 'cancelled')
    t.same([queriesOf(bench).length, deleted()], [asked, gone], 'queries, and those deleted at the PCE')
  }
})

t.test('all parts together have the time of one query', async (t) => {
  const bench = await startBench(t, { estate: handMade(week(1)), trafficRows: 4 })
  const window = { start: '2026-06-08T00:00:00Z', end: '2026-06-14T23:59:59Z' }
  let now = 0
  const ctx = {
    pce: bench.pce,
    progress: () => undefined,
    signal: new AbortController().signal,
    limits: { responseBudgetBytes: 80_000, trafficQueryTimeoutSeconds: 30, trafficMaxParts: 64 },
    now: () => now,
  }
  const rows: number[] = []
  const read = createFlowReader(
    ctx,
    createFlowEncoder(null),
    true,
  )({ name: 'slow', window }, (row) => {
    rows.push(row.connections)
    now += 4000
  })
  await t.rejects(read, {
    code: 'traffic_query_timeout',
    message: 'the traffic queries were given up after 30 s and 3 parts',
  })
  t.equal(rows.length, 9)
})

t.test('rows of earlier parts count once, rows of one part as often as it has them', async (t) => {
  const rows = fc.array(fc.record({ src: fc.nat(3), port: fc.nat(2), process: fc.nat(1), state: fc.nat(3) }), {
    maxLength: 12,
  })
  fc.assert(
    fc.property(fc.array(rows, { maxLength: 5 }), (parts) => {
      const seen = createSeenRows()
      const most = new Map<string, number>()
      const states = new Map<string, number>()
      let counted = 0
      for (const [at, part] of parts.entries()) {
        const here = new Map<string, number>()
        for (const { state, ...fields } of part) {
          const row = { ...emptyRow(), ...fields, state }
          seen.mark(row, at + 1)
          counted += row.count
          const times = (here.get(JSON.stringify(fields)) ?? 0) + 1
          here.set(JSON.stringify(fields), times)
          const id = `${JSON.stringify(fields)} ${times}`
          if (!states.has(id)) states.set(id, state)
          if (row.state !== states.get(id)) return false
        }
        for (const [id, times] of here) most.set(id, Math.max(times, most.get(id) ?? 0))
      }
      return counted === [...most.values()].reduce((sum, times) => sum + times, 0)
    }),
  )
  const seen = createSeenRows()
  let counted = 0
  for (const part of [1, 2])
    for (let at = 0; at < 50_000; at++) {
      const row = { ...emptyRow(), src: at % 500, dst: Math.floor(at / 500), port: 443 }
      seen.mark(row, part)
      counted += row.count
    }
  t.equal(counted, 50_000, 'however many there are')
})
