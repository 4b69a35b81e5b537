/** What a list asks of the PCE: what the PCE can filter or count is neither downloaded nor asked for twice (D132). */
import t from 'tap'
import { startBench, type Bench, type Json } from './harness.js'

/** The request that counts the Kubernetes workloads, which a list of workloads leaves out. */
const PODS = 'kubernetes_workloads 1'

/** Paths of the requests that a call makes, sorted, with the number of objects that each asks for. Some are sent side by side. */
async function cost(bench: Bench, tool: string, args: object): Promise<{ answer: Json; asked: string[] }> {
  bench.simulator.clearRequests()
  const answer = await bench.ok(tool, args)
  const asked = bench.simulator.requests.map(({ path, query }) => {
    const most = query.max_results === undefined ? '' : ` ${query.max_results}`
    return `${path.replace(/^\/api\/v2\/orgs\/1\/(?:sec_policy\/draft\/)?/, '').replace(/\/[0-9a-f-]{36}/, '/:id')}${most}`
  })
  return { answer, asked: asked.sort() }
}

t.test(
  'a first page without a filter is one request, with the count of pods beside workloads, and one for each kind that its rows name',
  async (t) => {
    const bench = await startBench(t, { workloads: 120, flows: 0 })
    const asked = async (tool: string, args: object = {}) => (await cost(bench, tool, args)).asked
    const page = { max_results: 7 }
    t.same(await asked('get-workloads', page), [PODS, 'workloads 8'])
    t.same(await asked('get-events', page), ['events 8'])
    t.same(await asked('get-iplists', page), ['ip_lists 8'])
    t.same(await asked('get-services', page), ['services 8'])
    t.same(await asked('get-labels', page), ['labels 8'])
    t.same(await asked('get-pairing-profiles', page), ['pairing_profiles 8'])
    t.same(await asked('get-container-clusters', page), ['container_clusters 8'])
    t.same(await asked('get-kubernetes-workloads', page), ['kubernetes_workloads 8'])
    bench.advance(61_000)
    t.same(await asked('get-rulesets', page), ['ip_lists 10000', 'labels 10000', 'rule_sets 8', 'services 10000'])
    t.same(await asked('get-rulesets', { ...page, fields: ['name', 'enabled'] }), ['rule_sets 8'])
  },
)

t.test('a filter of the PCE costs no more where it says how many match', async (t) => {
  const counted = await startBench(t, { workloads: 120, flows: 0, totalCount: 'all' })
  const managed = (await counted.pce.workloads.getAll('draft', null, { params: { managed: true } })).length
  const args = { managed: true, max_results: 5 }
  const one = await cost(counted, 'get-workloads', args)
  t.same([one.answer.total, one.answer.returned, one.asked], [managed, 5, [PODS, 'workloads 6']])
  const silent = await startBench(t, { workloads: 120, flows: 0, totalCount: 'matched' })
  const other = await cost(silent, 'get-workloads', args)
  t.same(
    [other.answer.total, other.answer.returned, other.asked],
    [managed, 5, [PODS, 'workloads 10000', 'workloads 6']],
  )
})

t.test('what only we can compare is read once', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0 })
  const { asked } = await cost(bench, 'get-rulesets', { enabled: true, max_results: 1, fields: ['name'] })
  t.same(asked, ['rule_sets 10000'])
})

t.test('the PCE is asked for the namespace and the managed profiles alone', async (t) => {
  const bench = await startBench(t, { workloads: 120, flows: 0 })
  const [{ href }] = (await bench.ok('get-container-clusters', { max_results: 1 })).container_clusters
  const [, { namespace }] = (await bench.ok('get-container-workload-profiles', { cluster_href: href })).profiles
  await cost(bench, 'get-container-workload-profiles', { cluster_href: href, namespace, managed: true })
  const sent = bench.simulator.requests.find(({ path }) => path.endsWith('/container_workload_profiles'))
  t.same(sent?.query, { namespace, managed: 'true', max_results: '10000' })
})
