/** The first page of a list (D254): what a person reads, how all matches divide, and no column that repeats the question. */
import t from 'tap'
import type { Label } from '../../schemas/pce/label.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { handMade } from './hand-made.js'
import { startBench, WEEK, type Bench, type Json } from './harness.js'

/** Counts values by itself, as the totals of an answer have them: most first, then by name. */
function countsOf(values: readonly (string | null)[]): { all: [string, number][]; none: number } {
  const counts = new Map<string, number>()
  for (const value of values) if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1)
  const all = [...counts].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
  return { all, none: values.filter((value) => value === null).length }
}

/** The total of one property as an answer shows it, from all its values. */
function totalOf(by: string, values: readonly (string | null)[]): Json {
  const { all, none } = countsOf(values)
  const further = all.slice(8)
  return {
    by,
    values: all.slice(0, 8),
    ...(none > 0 && { none }),
    ...(further.length > 0 && {
      others: further.reduce((sum, [, count]) => sum + count, 0),
      other_values: further.length,
    }),
  }
}

const valueOf = (workload: Workload, key: string, labels: ReadonlyMap<string, Label>): string | null =>
  (workload.labels ?? []).map(({ href }) => labels.get(href)).find((label) => label?.key === key)?.value ?? null

async function inventoryOf({ pce }: Bench) {
  const workloads = await pce.workloads.getAll()
  const labels = new Map((await pce.labels.getAll()).map((label) => [label.href, label]))
  return { workloads, labels }
}

const modeOf = ({ managed, ven, agent, enforcement_mode: mode }: Workload): string | null =>
  (managed ?? Boolean(ven?.href ?? agent?.href)) ? (mode ?? null) : 'unmanaged'

t.test('a page of workloads has 25, the totals are of all, and the cursors lead to each once', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0 })
  const { workloads, labels } = await inventoryOf(bench)
  const first = await bench.ok('get-workloads')
  t.same([first.total, first.returned, first.data.length, first.truncated], [workloads.length, 25, 25, true])
  t.same(first.totals[0], totalOf('enforcement_mode', workloads.map(modeOf)))
  const keys: string[] = first.totals.slice(1).map(({ by }: Json) => by)
  t.same(keys.toSorted(), ['app', 'env', 'loc', 'role'])
  for (const total of first.totals.slice(1)) {
    const values = workloads.map((workload) => valueOf(workload, total.by, labels))
    t.same(total, totalOf(total.by, values), total.by)
  }
  t.notOk('totals_of' in first, 'all were counted')

  const seen: string[] = first.data.map(([href]: string[]) => href)
  let page = first
  while (page.next_cursor !== undefined) {
    page = await bench.ok('get-workloads', { cursor: page.next_cursor })
    t.notOk('totals' in page, 'totals stand on the first page')
    seen.push(...page.data.map(([href]: string[]) => href))
  }
  t.same(
    seen,
    workloads.map(({ href }) => href),
  )
})

t.test('the four label keys that divide the list best are shown, best first', async (t) => {
  const hosts = Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => {
      const labels = [
        `half=${at % 2}`,
        `third=${at % 3}`,
        `quarter=${at % 4}`,
        `fifth=${at % 5}`,
        `single=all`,
        ...(at === 0 ? ['rare=one'] : []),
        `each=${at}`,
      ]
      return [`host-${at}`, { ip: `10.0.0.${at + 1}`, labels: labels.join(' ') }]
    }),
  )
  const bench = await startBench(t, { estate: handMade({ hosts, flows: [] }) })
  const { totals } = await bench.ok('get-workloads')
  // Of `each`, 32 values are others, which an answer does not tell apart.
  t.same(
    totals.map(({ by }: Json) => by),
    ['enforcement_mode', 'fifth', 'quarter', 'third', 'half'],
  )
})

t.test('totals are there where more follow, and where the caller left the size to us', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0 })
  for (const args of [{ max_results: 10 }, { max_results: 10_000 }, { detail_level: 'full' }, { name: 'no-such' }])
    t.notOk('totals' in (await bench.ok('get-workloads', args)), JSON.stringify(args))
  const labels = await bench.pce.labels.getAll()
  const answer = await bench.ok('get-labels')
  t.same([answer.labels.length, answer.total_count], [50, labels.length])
  t.same(answer.totals, [
    totalOf(
      'key',
      labels.map(({ key }) => key),
    ),
  ])
  t.notOk('totals' in (await bench.ok('get-labels', { key: 'env' })), 'all are on the page')
})

t.test('of more than 2,000 matches the totals say how many they count', async (t) => {
  const bench = await startBench(t, { workloads: 2_300, flows: 0 })
  const countIn = (total: Json) =>
    total.values.reduce((sum: number, [, count]: [string, number]) => sum + count, 0) +
    (total.none ?? 0) +
    (total.others ?? 0)
  const answer = await bench.ok('get-workloads')
  t.same([answer.total > 2_000, answer.totals_of], [true, 2_000])
  t.same(answer.totals.map(countIn), [2_000, 2_000, 2_000, 2_000, 2_000])
  const narrow = await bench.ok('get-workloads', { enforcement_mode: 'visibility_only' })
  t.equal(countIn(narrow.totals[0]), narrow.totals_of ?? narrow.total)
})

t.test('a small budget leaves out totals that take more than a quarter of it, and keeps the rows', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0, budget: 1_500 })
  const answer = await bench.ok('get-workloads')
  t.ok(JSON.stringify(answer).length <= 1_500)
  t.ok(JSON.stringify(answer.totals).length <= 1_500 / 4)
  t.ok(answer.returned > 0)
})

t.test('a column that the filters fix is said once, and the caller may ask for it', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0 })
  const { data, columns } = await bench.ok('get-workloads', { max_results: 1 })
  const at = (name: string): string => data[0][columns.indexOf(name)]
  const filters = { labels: [`app=${at('app')}`, `env=${at('env')}`], enforcement_mode: at('enforcement_mode') }
  const answer = await bench.ok('get-workloads', filters)
  t.same(answer.in_every_row, { enforcement_mode: at('enforcement_mode'), app: at('app'), env: at('env') })
  t.same(
    answer.columns,
    columns.filter((name: string) => !['app', 'env', 'enforcement_mode'].includes(name)),
  )
  const fields = ['hostname', 'app']
  const asked = await bench.ok('get-workloads', { ...filters, fields })
  t.same([asked.columns, asked.in_every_row], [fields, undefined])
  const open = await bench.ok('get-workloads', { hostname: data[0][2], exact: true })
  t.notOk('in_every_row' in open, 'one row is no reason, only a filter is')
})

t.test('traffic: what the filters fix is said once on every page, and the totals are of all groups', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 2_000, budget: 800_000 })
  const ask = (args: object) => bench.ok('get-traffic-flows', { ...WEEK, policy_decisions: ['allowed'], ...args })
  const whole = await ask({ max_results: 10_000 })
  t.same([whole.in_every_row, 'totals' in whole], [{ policy_decision: 'allowed' }, false], 'nothing follows')
  const at = (name: string) => whole.columns.indexOf(name)
  const app = whole.data.map((row: Json) => row[at('dst_app')]).find((name: string) => name !== '-')
  const rows = whole.data.filter((row: Json) => row[at('dst_app')] === app)
  const labels = ['dst_app', 'dst_env', 'dst_loc', 'dst_role']
  const alike = labels.filter((name) => new Set(rows.map((row: Json) => row[at(name)])).size === 1)

  const asked = { include_destinations: [`app=${app}`], max_results: 3 }
  const first = await ask(asked)
  const fixed = Object.fromEntries(alike.map((name) => [name, rows[0][at(name)]]))
  t.same(first.in_every_row, { policy_decision: 'allowed', ...fixed })
  t.notOk(first.columns.some((name: string) => name in first.in_every_row))
  t.equal(first.total_rows, rows.length)
  const ofPort = new Map<number, number>()
  for (const row of rows) ofPort.set(row[at('port')], (ofPort.get(row[at('port')]) ?? 0) + row[at('num_connections')])
  const byPort = first.totals.find(({ by }: Json) => by === 'port')
  const named = byPort.values.reduce((all: number, [, count]: [number, number]) => all + count, 0)
  t.equal(
    named + (byPort.others ?? 0),
    [...ofPort.values()].reduce((all, count) => all + count, 0),
  )
  for (const [port, count] of byPort.values) t.equal(count, ofPort.get(port), `port ${port}`)
  const second = await ask({ ...asked, cursor: first.next_cursor })
  t.same([second.columns, second.in_every_row, second.totals], [first.columns, first.in_every_row, undefined])
  const grouped = await ask({ ...asked, group_by: ['dst_app', 'port', 'policy_decision'] })
  t.same([grouped.columns.slice(0, 3), grouped.in_every_row], [['dst_app', 'port', 'policy_decision'], undefined])
})

t.test('traffic: what not all rows have, or no filter is about, stays a column', async (t) => {
  const hosts = {
    'a-1': { ip: '10.1.0.1', labels: 'app=a env=prod loc=here' },
    'b-1': { ip: '10.1.0.2', labels: 'app=b env=prod' },
  }
  const flows = [
    { from: '192.0.2.1', to: 'a-1', port: 443, connections: 3 },
    { from: '192.0.2.2', to: 'b-1', port: 443, connections: 2 },
  ]
  const bench = await startBench(t, { estate: handMade({ hosts, flows }) })
  const fixedBy = async (args: object) => (await bench.ok('get-traffic-flows', { ...WEEK, ...args })).in_every_row
  const prod = { dst_env: 'prod' }
  t.same(await fixedBy({ include_destinations: ['app=a&env=prod', 'app=b&env=prod'] }), prod)
  t.same(await fixedBy({ include_destinations: ['app=a', 'app=b'] }), prod, 'confirmed by the rows')
  t.same(await fixedBy({ include_destinations: ['app=a'] }), { ...prod, dst_app: 'a', dst_loc: 'here' })
  t.same(await fixedBy({ include_services: [{ port: 443, proto: 'tcp' }] }), { port: 443, proto: 'tcp' })
  t.same(await fixedBy({ include_destinations: [['app=a'], ['workload:b-1']] }), prod)
  t.same(await fixedBy({ include_destinations: [['app=a'], ['10.1.0.2']] }), undefined)
  t.same(await fixedBy({ exclude_destinations: ['app=b'] }), undefined)
})

t.test('applications by mode: 25 groups, and as many as are asked for', async (t) => {
  const bench = await startBench(t, { workloads: 300, flows: 0 })
  const first = await bench.ok('get-workload-enforcement-status')
  const whole = await bench.ok('get-workload-enforcement-status', { max_results: 10_000 })
  t.same([first.app_groups.length, first.truncated], [25, true])
  t.same([whole.app_groups.length, whole.truncated], [whole.app_groups_total, false])
  t.same(first.app_groups, whole.app_groups.slice(0, 25))
  t.same([first.mixed_count, first.app_groups_total], [whole.mixed_count, whole.app_groups_total])
})
