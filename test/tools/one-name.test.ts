/** A name names one thing, or is refused: two workloads of one name, whichever of their names it is. */
import t from 'tap'
import { partial } from '../partial.js'
import { handMade } from './hand-made.js'
import { startBench } from './harness.js'
import { startListed } from './listed-pce.js'

/** A managed host without a name of its own, and an unmanaged workload that has the host's name as its own. */
const HOST = '/orgs/1/workloads/00000000-0000-4000-8000-000000000001'
const OTHER = '/orgs/1/workloads/00000000-0000-4000-8000-000000000002'
const made = handMade({
  hosts: {
    'db-1': { ip: '10.1.0.1', labels: 'app=pay env=prod' },
    taken: { ip: '10.1.0.2', managed: false },
    'web-1.corp.test': { ip: '10.1.0.3', labels: 'app=shop env=prod' },
    'web-1': { ip: '10.1.0.4', labels: 'app=shop env=prod' },
  },
  ruleSets: [{ name: 'Pay', scope: 'app=pay env=prod', allow: [{ from: 'ams', to: 'ams' }] }],
})
const estate = {
  ...made,
  workloads: made.workloads.map((workload) => {
    if (workload.href === HOST) return { ...workload, name: null }
    return workload.href === OTHER ? { ...workload, name: 'db-1', hostname: null } : workload
  }),
}

t.test('the name of one workload and of the host of another is refused with what tells them apart', async (t) => {
  const bench = await startBench(t, { estate })
  const { candidates } = await bench.fails('update-workload', { name: 'db-1', description: 'x' }, 'ambiguous_name')
  t.same(candidates, [
    { href: OTHER, name: 'db-1', managed: false, addresses: ['10.1.0.2'] },
    { href: HOST, name: null, hostname: 'db-1', managed: true, addresses: ['10.1.0.1'] },
  ])
})

t.test('labels are never put on one of two by the short form of a host name', async (t) => {
  const bench = await startBench(t, { estate })
  const error = await bench.fails('label-workloads', { workloads: ['web-1'], set: ['env=prod'] }, 'ambiguous_name')
  t.same(
    error.candidates.map(({ hostname }: { hostname: string }) => hostname),
    ['web-1.corp.test', 'web-1'],
  )
  await bench.fails('label-workloads', { csv: 'name,env\nweb-1,prod\n' }, 'invalid_argument')
  partial(t, await bench.ok('label-workloads', { csv: 'name,hostname,env\nweb-1,web-1,prod\n', dry_run: true }), {
    matched: 1,
    already: 1,
  })
  const alone = { ...estate, workloads: estate.workloads.filter(({ hostname }) => hostname !== 'web-1') }
  const other = await startBench(t, { estate: alone })
  partial(t, await other.ok('label-workloads', { workloads: ['web-1'], set: ['env=prod'], dry_run: true }), {
    matched: 1,
  })
})

t.test('a host and a Kubernetes workload of one name are both hits for find-rules and explain-flow', async (t) => {
  const pod = {
    href: '/orgs/1/kubernetes_workloads/web-1',
    name: 'web-1',
    namespace: 'shop',
    kind: 'Deployment',
    container_cluster: { href: '/orgs/1/container_clusters/1', name: 'k1' },
    labels: [],
    enforcement_mode: 'full',
    private_ip_addresses: ['10.9.0.1'],
  }
  const host = { href: HOST, name: 'web-1', hostname: 'web-1.corp.test', managed: true, labels: [], interfaces: [] }
  const twin = { ...host, href: OTHER, managed: false, interfaces: [null, { address: '10.1.0.2' }] }
  const bench = await startListed(t, { lists: { kubernetes_workloads: [pod], workloads: [host] } })
  for (const [name, args] of [
    ['find-rules', { applies_to: 'web-1' }],
    ['explain-flow', { source: 'web-1', destination: '10.1.0.1', port: 1, proto: 'tcp' }],
  ] as const) {
    const { candidates } = await bench.fails(name, args, 'ambiguous_name')
    t.same(
      candidates,
      [
        { href: HOST, name: 'web-1', hostname: 'web-1.corp.test', managed: true },
        { href: pod.href, name: 'web-1', namespace: 'shop', cluster: 'k1' },
      ],
      name,
    )
  }
  const twins = await startListed(t, { lists: { kubernetes_workloads: [pod], workloads: [host, twin] } })
  t.same(
    (await twins.fails('find-rules', { applies_to: 'web-1' }, 'ambiguous_name')).candidates,
    [
      { href: HOST, name: 'web-1', hostname: 'web-1.corp.test', managed: true },
      { href: OTHER, name: 'web-1', hostname: 'web-1.corp.test', managed: false, addresses: ['10.1.0.2'] },
      { href: pod.href, name: 'web-1', namespace: 'shop', cluster: 'k1' },
    ],
    'with what tells the hosts apart',
  )
})
