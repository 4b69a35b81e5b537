import t, { type Test } from 'tap'
import { SMALL } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { startPce } from './start-pce.js'

/** Parsed JSON, as it came. */
type Found = ReturnType<JSON['parse']>
type Org = Awaited<ReturnType<typeof startPce>>['org']

const generated = (more = {}) => ({ estate: undefined, seed: 5, workloads: 80, flows: 50, ...more })
const token = (answer: { body: { token: string }[] }) => answer.body?.[0]?.token
const encoded = (value: unknown) => encodeURIComponent(JSON.stringify(value))
const list = async (org: Org, path: string) => (await org('GET', path)).body as Found[]
const names = async (org: Org, path: string) => (await list(org, path)).map(({ name }) => name)
const refuses = async (org: Org, t: Test, cases: readonly (readonly [string, string, unknown, string])[]) => {
  for (const [verb, path, body, expected] of cases) {
    const answer = await org(verb, path, body)
    t.equal(answer.status, 406, `${verb} ${path} ${JSON.stringify(body)}`)
    t.equal(token(answer), expected)
  }
}

t.test(
  'a container cluster: shows its token once, comes with a default profile, and takes everything along when deleted',
  async (t) => {
    const { org } = await startPce(t)
    const made = await org('POST', '/container_clusters', { name: 'k8s-a', description: 'first' })
    t.equal(made.status, 201)
    t.match(made.body.container_cluster_token, /^\d+_[0-9a-f]{64}$/)
    const { body: cluster } = await org('GET', made.body.href)
    t.notOk('container_cluster_token' in cluster, 'a secret appears once')
    partial(t, cluster, {
      name: 'k8s-a',
      online: false,
      nodes: [],
      errors: [],
      cluster_mode: 'legacy',
      kubelink_version: null,
    })
    const [event] = await list(org, '/events')
    partial(t, event, { event_type: 'container_cluster.create', resource_changes: [{ change_type: 'create' }] })
    t.notMatch(JSON.stringify(event), made.body.container_cluster_token, 'nor does an event tell it')
    await refuses(org, t, [
      ['POST', '/container_clusters', { name: 'k8s-a' }, 'name_must_be_unique'],
      ['POST', '/container_clusters', { name: 'x', nodes: [] }, 'input_validation_error'],
      ['PUT', cluster.href, { online: true }, 'input_validation_error'],
    ])
    t.equal((await org('PUT', cluster.href, { name: 'k8s-b' })).status, 204)
    t.same(await names(org, '/container_clusters?name=S-B&clas_mode=false'), ['k8s-b'])
    t.same(await names(org, '/container_clusters?clas_mode=true'), [])

    const profiles = `${cluster.href}/container_workload_profiles`
    const [born] = await list(org, profiles)
    partial(t, born, { name: 'Default Profile', namespace: null, linked: false, enforcement_mode: 'idle', labels: [] })
    t.equal((await org('DELETE', born!.href)).status, 406, 'it stays')
    t.equal((await org('GET', '/container_clusters/none/container_workload_profiles')).status, 404)
    t.equal((await org('POST', '/container_clusters/none/container_workload_profiles', { name: 'x' })).status, 404)
    t.equal((await org('DELETE', cluster.href)).status, 204)
    t.equal((await org('GET', born!.href)).status, 404)
    t.equal((await org('GET', profiles)).status, 404)
  },
)

t.test('container workload profiles: labels per key, fixed or a choice, only where managed', async (t) => {
  const { org } = await startPce(t)
  const { body: cluster } = await org('POST', '/container_clusters', { name: 'k8s' })
  const { body: other } = await org('POST', '/container_clusters', { name: 'other' })
  const path = `${cluster.href}/container_workload_profiles`
  const labels = [
    { key: 'app', assignment: { href: SMALL.payments } },
    { key: 'env', restriction: [{ href: SMALL.prod }, { href: SMALL.dev }] },
  ]
  const { body: profile, status } = await org('POST', path, { name: 'shop', labels, enforcement_mode: 'full' })
  t.equal(status, 201)
  t.same(profile.labels, [
    { key: 'app', assignment: { href: SMALL.payments, value: 'payments' } },
    {
      key: 'env',
      restriction: [
        { href: SMALL.prod, value: 'prod' },
        { href: SMALL.dev, value: 'dev' },
      ],
    },
  ])
  t.same(profile.assign_labels, [{ href: SMALL.payments }])
  const unmanaged = 'unmanaged_container_workload_profile_labels'
  await refuses(org, t, [
    ['POST', path, { description: 'no name' }, 'input_validation_error'],
    ['POST', path, { name: 'x', namespace: 'y' }, 'input_validation_error'],
    ['POST', path, { name: 'x', managed: false, labels }, unmanaged],
    ['PUT', profile.href, { managed: false }, unmanaged],
    ['PUT', profile.href, { labels: [{ key: 'env', assignment: { href: SMALL.payments } }] }, 'input_validation_error'],
    ['PUT', profile.href, { labels: [labels[0], labels[0]] }, 'input_validation_error'],
    ['PUT', profile.href, { labels: [{ key: 'app', assignment: { href: '/orgs/1/labels/99' } }] }, 'invalid_uri'],
    ['PUT', `${path}/update`, { container_workload_profiles: [{ href: `${path}/none` }] }, 'invalid_uri'],
    ['PUT', `${path}/update`, { container_workload_profiles: [], name: 'x' }, 'input_validation_error'],
  ])
  await org('PUT', profile.href, { assign_labels: [{ href: SMALL.dev }] })
  partial(
    t,
    (await org('GET', profile.href)).body.labels,
    [{ key: 'env', assignment: { value: 'dev' } }],
    'the old form',
  )
  t.same(await names(org, `${path}?assign_labels=${encoded([SMALL.dev])}`), ['shop'])
  t.same(await names(org, `${path}?enforcement_mode=idle`), ['Default Profile'])
  t.same(await names(org, `${path}?name=SHO&managed=true&linked=false&visibility_level=flow_summary`), ['shop'])

  const both = (await list(org, path)).map(({ href }) => ({ href }))
  const several = { container_workload_profiles: both, enforcement_mode: 'selective', labels: [labels[0]] }
  t.equal((await org('PUT', `${path}/update`, several)).status, 204)
  for (const one of await list(org, path)) {
    partial(t, one, { enforcement_mode: 'selective', labels: [{ key: 'app', assignment: { value: 'payments' } }] })
  }
  const [foreign] = await list(org, `${other.href}/container_workload_profiles`)
  const mixed = { container_workload_profiles: [...both, { href: foreign!.href }], enforcement_mode: 'idle' }
  t.equal((await org('PUT', `${path}/update`, mixed)).status, 406, 'one of another cluster')
  partial(t, await list(org, path), Array(2).fill({ enforcement_mode: 'selective' }), 'all or none')
  t.equal((await org('DELETE', profile.href)).status, 204)
  t.equal((await org('GET', profile.href)).status, 404)
})

t.test("Kubernetes workloads follow their namespace's profile; some back the cluster's services", async (t) => {
  const { org } = await startPce(t, generated())
  const all = await list(org, '/kubernetes_workloads')
  const clusters = await list(org, '/container_clusters')
  const clas = clusters.find(({ cluster_mode }) => cluster_mode === 'clas')!
  partial(t, all[0], {
    container_cluster: { href: clas.href, name: clas.name },
    container_workload_profile: { linked: true },
  })
  for (const verb of ['POST', 'DELETE', 'PUT']) {
    const path = verb === 'POST' ? '/kubernetes_workloads' : all[0]!.href
    t.equal((await org(verb, path, {})).status, 405, `${verb}: read only`)
  }
  const count = async (query: string, wanted: (one: Found) => boolean) => {
    const found = await list(org, `/kubernetes_workloads?${query}`)
    t.same(found, all.filter(wanted), `${query}: ${found.length} of ${all.length}`)
  }
  const bears = (href: string) => (one: Found) => (one.labels as Found[]).some((label) => label.href === href)
  const label = (all[0]!.labels as Found[])[0]!.href
  await count('namespace=pay', ({ namespace }) => namespace === 'payments')
  await count('kind=DaemonSet', ({ kind }) => kind === 'DaemonSet')
  await count(`labels=${encoded([label])}`, bears(label))
  await count('no_labels=true', () => false)
  await count('enforcement_mode=visibility_only', () => true)
  await count(`container_clusters=${encoded([clas.href])}`, () => true)
  await count(`container_clusters=${encoded([clusters.find(({ href }) => href !== clas.href)!.href])}`, () => false)
  await count('security_policy_sync_state=syncing', () => false)
  await count('security_policy_applied_at[gte]=2026-01-11T00:00:00Z', () => false)
  await count('security_policy_applied_at[lte]=2026-01-11T00:00:00Z', () => true)

  const profile = all[0]!.container_workload_profile.href
  await org('PUT', profile, { enforcement_mode: 'full', labels: [] })
  const [first] = await list(org, '/kubernetes_workloads')
  partial(t, first, { enforcement_mode: 'full', labels: [] }, 'a change of the profile shows at once')

  const { body: backends } = await org('GET', `${clas.href}/service_backends`)
  t.ok(backends.length > 0)
  for (const { name, namespace, kind, virtual_services } of backends) {
    t.ok(all.some((one) => one.name === name && one.namespace === namespace && one.kind === kind))
    t.equal((await org('GET', virtual_services.href)).body.name, virtual_services.name)
  }
  t.equal((await org('GET', '/container_clusters/none/service_backends')).status, 404)
  await org('DELETE', clas.href)
  t.same(await list(org, '/kubernetes_workloads'), [])
})
