/**
 * What all traffic tools stand on: flows become rows of numbers, rows become groups. Answers of PCEs that no simulator gives are
 * scripted; groupings are compared with plain ones over the same flows.
 */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { endColumn, labelColumn, portColumn, textColumn } from '../../tools/support/flows/columns.js'
import { createFlowEncoder } from '../../tools/support/flows/encode-flow.js'
import { endpointLabel } from '../../tools/support/flows/flow-end.js'
import { groupRows } from '../../tools/support/flows/group-rows.js'
import { startServer, type Reply } from '../pce-client/support.js'
import { createPceSimulator } from '../pce-simulator/index.js'
import { benchOf, startBench, WEEK, type Bench, type Json } from './harness.js'

const SUMMARY = 'get-traffic-flows-summary'
const FLOWS = 'get-traffic-flows'
const QUERY = '/orgs/1/traffic_flows/async_queries/q1'

/** A PCE that answers every traffic query with these rows. */
async function scripted(t: Test, rows: readonly Json[], more: Partial<Json> = {}): Promise<Bench> {
  const simulator = await createPceSimulator({ workloads: 20, flows: 0 })
  t.teardown(() => simulator.close())
  const server = await startServer(t, ({ method, path }): Reply => {
    if (method === 'POST') return { status: 202, body: { href: QUERY, status: 'queued' } }
    if (path === QUERY) return { body: { href: QUERY, status: 'completed', result: `${QUERY}/download`, ...more } }
    if (path.startsWith(QUERY)) return { body: rows }
    return { body: [], headers: { 'x-total-count': '0' } }
  })
  return benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
}

const host = (name: string, ip: string, labels: Record<string, string> = {}, more: Json = {}) => ({
  ip,
  workload: {
    href: `/orgs/1/workloads/${name}`,
    hostname: name,
    managed: true,
    labels: Object.entries(labels).map(([key, value]) => ({ href: `/orgs/1/labels/${key}-${value}`, key, value })),
    ...more,
  },
})
const flow = (src: Json, dst: Json, more: Json = {}): Json => ({
  src,
  dst,
  service: { port: 443, proto: 6 },
  num_connections: 1,
  policy_decision: 'allowed',
  flow_direction: 'outbound',
  timestamp_range: { first_detected: '2026-06-10T00:00:00Z', last_detected: '2026-06-10T00:00:00Z' },
  ...more,
})

t.test('what only other PCEs answer', async (t) => {
  const a = host('a', '10.0.0.1', { app: 'x', env: 'prod' })
  const b = host('b', '10.0.0.2', { app: 'y', env: 'prod' })

  await t.test('rows whose times lie outside the window are counted, and said so', async (t) => {
    const early = { first_detected: '2026-06-01T00:00:00Z', last_detected: '2026-06-10T00:00:00Z' }
    const late = { first_detected: '2026-06-09T00:00:00.250Z', last_detected: '2026-06-20T00:00:00Z' }
    const bench = await scripted(t, [flow(a, b), flow(a, b, { timestamp_range: early })], { matches_count: 17 })
    const answer = await bench.ok(SUMMARY, WEEK)
    t.match(answer.data_span, { first_detected: '2026-06-01T00:00:00Z', last_detected: '2026-06-10T00:00:00Z' })
    t.match(answer.totals, { rows: 2, connections: 2, raw_observations: 17 })
    const other = await scripted(t, [flow(a, b), flow(a, b, { timestamp_range: late })])
    t.match(await other.ok(FLOWS, { ...WEEK, group_by: ['port'] }), {
      data_span: { first_detected: '2026-06-09T00:00:00.250Z', last_detected: '2026-06-20T00:00:00Z' },
    })
    const inside = await scripted(t, [flow(a, b), flow(a, b, { timestamp_range: null })])
    t.notOk('data_span' in (await inside.ok(SUMMARY, WEEK)), 'a row without times says nothing about them')
  })

  await t.test('rows that cannot be read are counted apart, and the note says so', async (t) => {
    const bench = await scripted(t, [flow(a, b), null, 7, { src: {}, dst: null }, { ...flow(a, b), service: null }])
    const { totals } = await bench.ok(SUMMARY, WEEK)
    t.match(totals, { pce_flows: 5, rows: 1, unparseable: 4, coverage_note: /4 rows could not be read/ })
    t.match(await bench.ok(FLOWS, WEEK), { total_pce_flows: 5, rows_analysed: 1, unparseable: 4, total_rows: 1 })
  })

  await t.test('one address under other names, workloads, labels or lists is another end', async (t) => {
    const list = (name: string) => ({ href: `/orgs/1/ip_lists/${name}`, name })
    const ends = [
      { ip: '10.0.0.9' },
      { ip: '10.0.0.9', fqdn: 'f.example.com' },
      { ip: '10.0.0.9', ip_lists: [list('L1')] },
      { ip: '10.0.0.9', ip_lists: [list('L1'), list('L2')] },
      { ip: '10.0.0.9', ip_lists: [{ href: '/orgs/1/ip_lists/nameless' }] },
      host('h', '10.0.0.9'),
      host('h', '10.0.0.9', { app: 'x' }),
      host('h2', '10.0.0.9', { app: 'x' }),
    ]
    const bench = await scripted(
      t,
      ends.flatMap((end, at) => [
        flow(a, end, { num_connections: at + 1 }),
        flow(a, structuredClone(end), { num_connections: 100 }),
      ]),
    )
    const answer = await bench.ok(FLOWS, {
      ...WEEK,
      group_by: ['dst_ip', 'dst_fqdn', 'dst_hostname', 'dst_ip_lists', 'state'],
    })
    const row = (at: number) => answer.data[at]
    t.equal(
      answer.total_rows,
      6,
      'two are told apart by label alone and one by an unnamed list, which were not asked for',
    )
    t.same(row(0).slice(0, 6), ['10.0.0.9', '-', 'h', '-', '-', 213])
    t.same(row(1).slice(0, 6), ['10.0.0.9', '-', '-', '-', '-', 206])
    const apps = await bench.ok(FLOWS, { ...WEEK, group_by: ['dst_app', 'destination'] }).catch((error: Error) => error)
    t.match(String(apps), /unknown_group_by/, 'a key without labels in the PCE is unknown')
  })
})

t.test('a cancelled call stops at the PCE too', async (t) => {
  const bench = await startBench(t, { workloads: 60, flows: 6000, pollsUntilDone: 4 })
  const { simulator } = bench
  const gone = () =>
    simulator.requests.filter(({ method, path }) => method === 'DELETE' && /async_queries\//.test(path))
  const read = () => simulator.requests.filter(({ path }) => path.endsWith('/download'))

  await t.test('while the PCE works on it', async (t) => {
    const error = await bench.cancelled(SUMMARY, WEEK, ({ message = '' }) => /working|queued/.test(message))
    t.equal(error['error'], 'cancelled')
    t.equal(gone().length, 1, 'the query is deleted')
    t.equal(read().length, 0, 'nothing is downloaded')
  })

  await t.test('while its rows are added up', async (t) => {
    const error = await bench.cancelled(SUMMARY, WEEK, ({ message = '' }) => /rows read/.test(message))
    t.equal(error['error'], 'cancelled')
    t.equal(gone().length, 2, 'the query is deleted')
    t.equal(read().length, 1)
    const rows = bench.progress.map(({ message = '' }) => Number(/(\d+) rows read/.exec(message)?.[1] ?? 0))
    t.ok(Math.max(...rows) < (await bench.ok(SUMMARY, WEEK)).totals.rows, 'before the last row')
  })
})

t.test('groups, sums and order agree with a plain count, whatever the rows', async (t) => {
  const ends = [
    host('web', '10.0.0.1', { app: 'a', env: 'p' }),
    host('web2', '10.0.0.2', { app: 'ab', env: 'p' }),
    host('half', '10.0.0.3', { app: 'a' }),
    { ip: '192.0.2.1' },
    { ip: '192.0.2.2', fqdn: 'x.example.com' },
    { ip: 'fd00::1' },
  ]
  const flows = fc.array(
    fc
      .record({
        src: fc.constantFrom(...ends),
        dst: fc.constantFrom(...ends),
        port: fc.constantFrom(0, 22, 443, null),
        process: fc.constantFrom(null, '', ' p ', 'p', 'q'),
        decision: fc.constantFrom('allowed', 'blocked', 'potentially_blocked'),
        connections: fc.constantFrom(0, 1, 2, null),
      })
      .map(({ src, dst, port, process, decision, connections }) =>
        flow(src, dst, {
          service: { port, proto: 6, process_name: process },
          policy_decision: decision,
          num_connections: connections,
        }),
      ),
    { maxLength: 60 },
  )
  const plain = (rows: TrafficFlow[]) => {
    const groups = new Map<string, number>()
    for (const { src, dst, service, num_connections: count } of rows) {
      const name = (end: Json) => end.fqdn ?? end.workload?.hostname ?? end.ip
      const app = (src as Json).workload?.labels.find(({ key }: Json) => key === 'app')?.value ?? null
      const id = JSON.stringify([name(src), name(dst), app, service.port ?? null, service.process_name?.trim() || null])
      groups.set(id, (groups.get(id) ?? 0) + (count ?? 0))
    }
    return groups
  }
  fc.assert(
    fc.property(
      flows,
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: 0, max: 4 }),
      (rows: TrafficFlow[], limit, least) => {
        const encoder = createFlowEncoder(null)
        const grouping = groupRows({
          from: endColumn(encoder, 'src', endpointLabel),
          to: endColumn(encoder, 'dst', endpointLabel),
          app: labelColumn(encoder, 'src', 'app'),
          port: portColumn,
          process: textColumn(encoder, 'process'),
        })
        for (const row of rows) grouping.add(encoder.encode(structuredClone(row)))
        const truth = plain(rows)
        const found = new Map(
          [...grouping].map(({ keys, measures }) => [JSON.stringify(Object.values(keys)), measures.connections]),
        )
        const { total, groups } = grouping.busiest(limit, least)
        const shown = groups.map(
          ({ keys, measures }) => [measures.connections, Object.values(keys).map((key) => key ?? '')] as const,
        )
        const reached = [...truth.values()].filter((count) => count >= least).sort((x, y) => y - x)
        const sorted = [...shown].sort(([x, keysX], [y, keysY]) => y - x || compare(keysX, keysY))
        return (
          JSON.stringify([...found].sort()) === JSON.stringify([...truth].sort()) &&
          total === reached.length &&
          JSON.stringify(shown.map(([count]) => count)) === JSON.stringify(reached.slice(0, limit)) &&
          JSON.stringify(shown) === JSON.stringify(sorted)
        )
      },
    ),
    { numRuns: 300 },
  )
  t.pass('300 estates')
})

function compare(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  for (const [at, one] of a.entries()) {
    const other = b[at]!
    if (typeof one === 'number' && typeof other === 'number' && one !== other) return one - other
    if (String(one) !== String(other)) return String(one) < String(other) ? -1 : 1
  }
  return 0
}
