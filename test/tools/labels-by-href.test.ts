/** Labels that a PCE names by href alone: those that GET /labels lists are spelled out, others stay hrefs. */
import t from 'tap'
import { startServer } from '../pce-client/support.js'
import { benchOf, startBench, type Json } from './harness.js'

const KNOWN = { href: '/orgs/1/labels/1', key: 'app', value: 'api' }
const GONE = { href: '/orgs/1/labels/77' }
const labels = [{ href: KNOWN.href }, GONE, { href: '/orgs/1/labels/78', key: 'env', value: null }]
const SHOWN = ['app=api', '/orgs/1/labels/77', '/orgs/1/labels/78']
const FULL = (label: object) => [label, '/orgs/1/labels/77', '/orgs/1/labels/78']

/** Answers every list from `lists`, by the last segment of its path. */
const LISTS: Record<string, Json[]> = {
  labels: [KNOWN],
  pairing_profiles: [{ href: '/orgs/1/pairing_profiles/5', name: 'servers', labels }],
  virtual_services: [{ href: '/orgs/1/sec_policy/draft/virtual_services/v', name: 'v', labels }],
  label_groups: [{ href: '/orgs/1/sec_policy/draft/label_groups/g', name: 'g', key: 'app', labels }],
  kubernetes_workloads: [
    { href: '/orgs/1/kubernetes_workloads/k', name: 'k', namespace: 'n', kind: 'Deployment', labels },
  ],
  container_workload_profiles: [
    { href: '/orgs/1/container_clusters/c/container_workload_profiles/p', namespace: 'n', assign_labels: labels },
  ],
  container_clusters: [{ href: '/orgs/1/container_clusters/c', name: 'c' }],
}

t.test('a label that nobody can spell out is shown as its href', async (t) => {
  const { simulator } = await startBench(t, { workloads: 20, flows: 0 })
  const server = await startServer(t, ({ path }) => {
    const name = path.split('?')[0]!.split('/').at(-1)!
    const body = name === 'c' ? LISTS.container_clusters![0] : (LISTS[name] ?? [])
    return { body, headers: { 'x-total-count': '1' } }
  })
  const bench = benchOf(t, simulator, `http://127.0.0.1:${server.port}`)
  for (const [tool, list, full, args] of [
    ['get-pairing-profiles', 'pairing_profiles', KNOWN, {}],
    ['get-virtual-services', 'virtual_services', KNOWN, {}],
    ['get-label-groups', 'label_groups', KNOWN, {}],
    ['get-kubernetes-workloads', 'kubernetes_workloads', { key: 'app', value: 'api' }, {}],
  ] as const) {
    t.same((await bench.ok(tool, args))[list][0].labels, SHOWN, tool)
    t.same((await bench.ok(tool, { ...args, detail_level: 'full' }))[list][0].labels, FULL(full), `${tool} in full`)
  }
  const profiles = await bench.ok('get-container-workload-profiles', {
    cluster_href: '/orgs/1/container_clusters/c',
  })
  t.same(JSON.stringify(profiles).includes(JSON.stringify(SHOWN)), true, 'get-container-workload-profiles')
})
