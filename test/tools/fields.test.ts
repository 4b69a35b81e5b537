/** `fields` of every tool that answers rows: these columns and no others, more of them to a page, and no unknown name. */
import t from 'tap'
import { partial } from '../partial.js'
import { CONTRACT, namesTaking } from '../surface/contract.js'
import { handMade } from './hand-made.js'
import { startBench, type Json } from './harness.js'

/** The tools that answer rows, by the contract. */
const LISTS = namesTaking('fields')

/** The rows of an answer, which may be grouped by kind. */
function rowsOf(tool: string, answer: Json): Json[] {
  const rows: Json = answer[CONTRACT[tool]!.rows!.in]
  return Array.isArray(rows) ? rows : Object.values<Json[]>(rows).flat()
}

/** The tools whose pages have findings, which are read whole: what becomes of each line, and who is a twin of whom, what hangs on a VEN. */
const FINDINGS = ['find-duplicate-workloads', 'find-stale-vens', 'import-workloads']

t.test('every tool that answers a page of rows takes fields, or group_by, which chooses its columns', async (t) => {
  t.same(
    namesTaking('cursor').filter((name) => !LISTS.includes(name) && !namesTaking('group_by').includes(name)),
    FINDINGS,
  )
})

t.test('fields', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0 })
  const { pce, simulator } = bench
  for (const name of ['Branch', 'Depot']) {
    const ip_ranges = [{ from_ip: '10.77.0.1' }]
    await bench.ok('create-iplist', { name, ip_ranges })
    await pce.labelGroups.create({ name, key: 'env', labels: [] })
  }
  const [cluster] = (await bench.ok('get-container-clusters', { max_results: 1 })).container_clusters
  const argsOf = (tool: string): object =>
    tool === 'get-container-workload-profiles' ? { cluster_href: cluster.href } : (CONTRACT[tool]!.rows!.with ?? {})

  for (const tool of LISTS)
    await t.test(`${tool}: rows have those that were asked for, as they are without the argument`, async (t) => {
      const { fields } = CONTRACT[tool]!.rows!
      const args = { ...argsOf(tool), max_results: 5 }
      const [whole, chosen] = [await bench.ok(tool, args), await bench.ok(tool, { ...args, fields })]
      const only = (row: Json) => Object.fromEntries(Object.entries(row).filter(([name]) => fields.includes(name)))
      const rows = rowsOf(tool, whole)
      t.ok(rows.length > 0)
      t.same(rowsOf(tool, chosen), rows.map(only))
      t.equal(chosen.total_count, whole.total_count)
    })

  await t.test('a name that no row has is refused with those there are, before the PCE is asked', async (t) => {
    simulator.clearRequests()
    for (const tool of LISTS.filter((name) => name !== 'get-workloads')) {
      const error = await bench.fails(tool, { ...argsOf(tool), fields: ['nmae', 'hostnam'] }, 'invalid_argument')
      partial(t, error, { argument: 'fields', unknown_fields: ['nmae', 'hostnam'] }, tool)
      t.ok(error.known_fields.includes(CONTRACT[tool]!.rows!.fields[0]), tool)
      t.ok(error.message.endsWith(`Fields: ${error.known_fields.join(', ')}.`), error.message)
      const none = await bench.fails(tool, { ...argsOf(tool), fields: [] }, 'invalid_argument')
      partial(t, none, { argument: 'fields', known_fields: error.known_fields }, tool)
    }
    t.same(simulator.requests, [])
    const { message } = await bench.fails('get-labels', { fields: ['vlaue'] }, 'invalid_argument')
    t.equal(
      message,
      'No row has the field "vlaue". Did you mean "value"? Fields: href, key, value, deleted, usage, external_data_set, external_data_reference, created_at, updated_at.',
    )
  })

  await t.test('columns of get-workloads come in the order asked for; a label key is one', async (t) => {
    const args = { max_results: 5 }
    const whole = await bench.ok('get-workloads', args)
    const at = (name: string) => whole.columns.indexOf(name)
    const fields = ['app', 'hostname', 'loc']
    const chosen = await bench.ok('get-workloads', { ...args, fields })
    t.same(chosen.columns, fields)
    t.same(
      chosen.data,
      whole.data.map((row: unknown[]) => fields.map((name) => row[at(name)] ?? null)),
    )
    await pce.labelDimensions.create({ key: 'team', display_name: 'Team' })
    await pce.labels.create({ key: 'team', value: 'blue' })
    bench.advance(1000)
    t.same((await bench.ok('get-workloads', { max_results: 1, fields: ['team'] })).data, [[null]])
    const error = await bench.fails('get-workloads', { fields: ['tier', 'name'] }, 'invalid_argument')
    t.same(error.unknown_fields, ['tier'])
    t.same(error.known_fields.slice(-5), ['app', 'env', 'loc', 'role', 'team'])
    await bench.fails('get-workloads', { fields: [] }, 'invalid_argument')
    const full = { detail_level: 'full', max_results: 1 }
    partial(t, await bench.fails('get-workloads', { ...full, fields: ['nmae'] }, 'invalid_argument'), {
      unknown_fields: ['nmae'],
      message: /Did you mean "name"\?/,
    })
  })

  await t.test('the word columns is taken for it where there is no group_by', async (t) => {
    const { labels } = await bench.ok('get-labels', { columns: ['value'], max_results: 1 })
    t.same(Object.keys(labels[0]), ['value'])
  })
})

t.test('workloads without a name have what identifies them, where names were asked for', async (t) => {
  const estate = handMade({ hosts: { web: { ip: '10.0.0.1' }, bare: { ip: '10.0.0.2' } } })
  const [web, bare] = estate.workloads as unknown as [Json, Json]
  Object.assign(web, { name: null, hostname: 'web.example' })
  Object.assign(bare, { name: '', hostname: '' })
  const bench = await startBench(t, { estate })
  const one = { fields: ['name', 'managed'], hostname: 'web.example', exact: true }
  const { columns, data } = await bench.ok('get-workloads', one)
  t.same([columns, data], [['name', 'managed', 'hostname'], [[null, true, 'web.example']]])
  const { workloads } = await bench.ok('get-workloads', { ...one, detail_level: 'full' })
  t.same(workloads, [{ name: null, managed: true, hostname: 'web.example' }])
  const all = await bench.ok('get-workloads', { fields: ['name'] })
  t.same(
    [all.columns, all.data[1]],
    [
      ['name', 'hostname', 'href'],
      ['', '', bare.href],
    ],
  )
  t.same((await bench.ok('get-workloads', { fields: ['managed'] })).columns, ['managed'])
})

t.test('a page holds more rows of fewer fields, and its cursor goes on with any', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0, budget: 1500 })
  const all = await bench.pce.labels.getAll()
  const values: string[] = []
  let cursor: string | undefined
  const pages: number[] = []
  do {
    const fields = pages.length % 2 === 0 ? ['value'] : undefined
    const page: Json = await bench.ok('get-labels', { fields, cursor })
    pages.push(page.labels.length)
    for (const { value } of page.labels) values.push(value)
    cursor = page.next_cursor
  } while (cursor !== undefined)
  t.same(
    values,
    all.map(({ value }) => value),
  )
  t.ok(pages[0]! > 3 * pages[1]!, pages.join())
})

t.test('what is missing from a row is said whether it was asked for or not', async (t) => {
  const bench = await startBench(t, { workloads: 20, flows: 0, budget: 4000 })
  const ip_ranges = Array.from({ length: 200 }, (_, at) => ({ from_ip: `10.1.${at}.0/24` }))
  const { href } = await bench.ok('create-iplist', { name: 'Large', ip_ranges })
  const rowOf = async (fields: string[]): Promise<Json> =>
    (await bench.ok('get-iplists', { name: 'Large', fields })).ip_lists[0]
  const cut = await rowOf(['ip_ranges'])
  t.same(Object.keys(cut).sort(), ['ip_ranges', 'omitted'])
  t.ok(cut.ip_ranges.length < 200)
  t.same(await rowOf(['href']), { href })
})
