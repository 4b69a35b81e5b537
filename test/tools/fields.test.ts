/** `fields` of every tool that answers rows: these columns and no others, more of them to a page, and no unknown name. */
import t from 'tap'
import { tools } from '../../tools/index.js'
import { partial } from '../partial.js'
import { startBench, type Json } from './harness.js'

/** Tools that answer rows, where these stand in the answer, and two of their fields. */
const LISTS: Record<string, { rows: (answer: Json) => Json[]; fields: [string, string]; args?: object }> = {
  'compare-draft-active': { rows: ({ changes }) => Object.values<Json[]>(changes).flat(), fields: ['name', 'effect'] },
  'compare-policy-versions': {
    rows: ({ changes }) => changes,
    fields: ['name', 'effect'],
    args: { from: 1, to: 'draft' },
  },
  'find-rules': { rows: (answer) => answer.rules, fields: ['href', 'rule'] },
  'find-unlabelled-workloads': { rows: (answer) => answer.workloads, fields: ['name', 'missing'] },
  'get-container-clusters': { rows: (answer) => answer.container_clusters, fields: ['name', 'node_count'] },
  'get-container-workload-profiles': { rows: (answer) => answer.profiles, fields: ['namespace', 'managed'] },
  'get-events': { rows: (answer) => answer.events, fields: ['timestamp', 'event_type'] },
  'get-iplists': { rows: (answer) => answer.ip_lists, fields: ['name', 'ip_ranges'] },
  'get-kubernetes-workloads': { rows: (answer) => answer.kubernetes_workloads, fields: ['name', 'labels'] },
  'get-label-groups': { rows: (answer) => answer.label_groups, fields: ['name', 'used_by'] },
  'get-labels': { rows: (answer) => answer.labels, fields: ['href', 'value'] },
  'get-pairing-profiles': { rows: (answer) => answer.pairing_profiles, fields: ['href', 'enabled'] },
  'get-rulesets': { rows: (answer) => answer.rulesets, fields: ['name', 'rules'] },
  'get-services': { rows: (answer) => answer.services, fields: ['name', 'service_ports'] },
  'get-vens': { rows: (answer) => answer.vens, fields: ['hostname', 'health'] },
  'get-workload-enforcement-status': { rows: (answer) => answer.app_groups, fields: ['app', 'workload_count'] },
  'get-workloads': {
    rows: (answer) => answer.workloads,
    fields: ['hostname', 'labels'],
    args: { detail_level: 'full' },
  },
  'list-policy-versions': { rows: ({ versions }) => versions, fields: ['version', 'commit_message'] },
  'who-changed': { rows: ({ changes }) => changes, fields: ['at', 'by'], args: { kind: 'ip_list', name: 'Branch' } },
}

t.test('every tool that answers a page of rows takes fields', async (t) => {
  const takes = (argument: string) => tools.filter(({ input }) => argument in input.properties).map(({ name }) => name)
  t.same(takes('fields'), Object.keys(LISTS))
  t.same(
    takes('cursor').filter((name) => !(name in LISTS)),
    [],
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
    tool === 'get-container-workload-profiles' ? { cluster_href: cluster.href } : (LISTS[tool]!.args ?? {})

  for (const [tool, { rows, fields }] of Object.entries(LISTS))
    await t.test(`${tool}: rows have those that were asked for, as they are without the argument`, async (t) => {
      const most = tool === 'get-workload-enforcement-status' ? {} : { max_results: 10 }
      const args = { ...argsOf(tool), ...most }
      const [whole, chosen] = [await bench.ok(tool, args), await bench.ok(tool, { ...args, fields })]
      const only = (row: Json) => Object.fromEntries(Object.entries(row).filter(([name]) => fields.includes(name)))
      t.ok(rows(whole).length > 0)
      t.same(rows(chosen), rows(whole).map(only))
      t.equal(chosen.total_count, whole.total_count)
    })

  await t.test('a name that no row has is refused with those there are, before the PCE is asked', async (t) => {
    simulator.clearRequests()
    for (const tool of Object.keys(LISTS).filter((name) => name !== 'get-workloads')) {
      const error = await bench.fails(tool, { ...argsOf(tool), fields: ['nmae', 'hostnam'] }, 'invalid_argument')
      partial(t, error, { argument: 'fields', unknown_fields: ['nmae', 'hostnam'] }, tool)
      t.ok(error.known_fields.includes(LISTS[tool]!.fields[0]), tool)
      t.ok(error.message.endsWith(`Fields: ${error.known_fields.join(', ')}.`), error.message)
      const none = await bench.fails(tool, { ...argsOf(tool), fields: [] }, 'invalid_argument')
      partial(t, none, { argument: 'fields', known_fields: error.known_fields }, tool)
    }
    t.same(simulator.requests, [])
    const { message } = await bench.fails('get-labels', { fields: ['vlaue'] }, 'invalid_argument')
    t.equal(
      message,
      'No row has the field vlaue. Did you mean value? Fields: href, key, value, deleted, usage, external_data_set, external_data_reference, created_at, updated_at.',
    )
  })

  await t.test('columns of get-workloads come in the order asked for; a label key is one', async (t) => {
    const args = { max_results: 5 }
    const whole = await bench.ok('get-workloads', args)
    const at = (name: string) => whole.columns.indexOf(name)
    const fields = ['app', 'name', 'loc']
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
      message: /Did you mean name\?/,
    })
  })

  await t.test('the word columns is taken for it where there is no group_by', async (t) => {
    const { labels } = await bench.ok('get-labels', { columns: ['value'], max_results: 1 })
    t.same(Object.keys(labels[0]), ['value'])
  })
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
