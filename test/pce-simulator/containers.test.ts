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

t.test(
  'network devices are created below their node, reveal no password, and take their endpoints along',
  async (t) => {
    const { org } = await startPce(t, generated())
    const [node] = await list(org, '/network_enforcement_nodes')
    const body = {
      name: 'switch-9',
      device_type: 'switch',
      manufacturer: 'Cisco',
      model: '9000',
      credentials: { type: 'cli', username: 'u', password: 'hush-hush' },
    }
    const made = await org('POST', `${node!.href}/network_devices`, body)
    t.equal(made.status, 201)
    t.match(made.body.href, /^\/orgs\/1\/network_devices\/[0-9a-f-]{36}$/, 'an object of its own')
    partial(t, made.body, { supported_endpoint_type: 'switch_port', network_enforcement_node: { href: node!.href } })
    const device = made.body.href as string
    await org('PUT', device, { description: 'd', credentials: { type: 'api', password: 'hush-hush' } })
    const { text, body: read } = await org('GET', device)
    partial(
      t,
      read.config,
      { name: 'switch-9', description: 'd', credentials: { type: 'api' } },
      'the rest of it stays',
    )
    t.notMatch(text + (await org('GET', '/events')).text, 'hush-hush')
    t.ok(((await org('GET', node!.href)).body.network_devices as Found[]).some(({ href }) => href === device))
    t.same(
      (await list(org, '/network_devices?name=switch-9&model=9000')).map(({ href }) => href),
      [device],
    )
    t.same(await list(org, '/network_devices?manufacturer=Nobody'), [])
    t.equal((await org('POST', '/network_devices', body)).status, 405)
    t.equal((await org('POST', '/network_enforcement_nodes/none/network_devices', body)).status, 404)
    t.equal((await org('PUT', node!.href, { target_pce_fqdn: 'b.example.com' })).status, 204)
    t.equal((await org('GET', node!.href)).body.target_pce_fqdn, 'b.example.com')
    const nodes = async (query: string) => (await list(org, `/network_enforcement_nodes?${query}`)).length
    t.same([await nodes('device_type=slb'), await nodes('manufacturer=Cisco'), await nodes('model=7000')], [1, 1, 1])
    t.same([await nodes('device_type=oven'), await nodes('health=healthy'), await nodes('health=error')], [0, 1, 0])

    const workload = (await list(org, '/workloads?max_results=1'))[0]!.href
    const port = { config: { name: 'eth1/9', endpoint_type: 'switch_port' }, workloads: [{ href: workload }] }
    const { body: endpoint, status } = await org('POST', `${device}/network_endpoints`, port)
    t.equal(status, 201)
    partial(t, endpoint, { ...port, workload_discovery: false, network_device: { href: device } })
    t.same((await org('GET', device)).body.network_endpoints, [{ href: endpoint.href }])
    await refuses(org, t, [
      ['POST', `${device}/network_endpoints`, { workloads: [] }, 'input_validation_error'],
      ['PUT', endpoint.href, { status: 'x' }, 'input_validation_error'],
      ['PUT', endpoint.href, { workloads: [{ href: SMALL.scanner }] }, 'invalid_uri'],
      ['PUT', device, { rules_format: 'xml' }, 'input_validation_error'],
      ['PUT', node!.href, { name: 'x' }, 'input_validation_error'],
    ])
    t.equal((await org('GET', '/network_devices/none/network_endpoints')).status, 404)
    t.equal((await org('DELETE', device)).status, 204)
    t.equal((await org('GET', endpoint.href)).status, 404)
  },
)

t.test('enforcement instructions: requested, written by a job, fetched, confirmed', async (t) => {
  const { org, simulator } = await startPce(t, generated({ pollsUntilDone: 2 }))
  const [one, two] = (await list(org, '/network_devices')).map(({ href }) => href) as [string, string]
  const state = async (href: string) => {
    const { body } = await org('GET', href)
    return [
      body.enforcement_instructions_generation_in_progress,
      body.enforcement_instructions_data_href,
      body.enforcement_instructions_ack_href,
    ] as [boolean, string | undefined, string | undefined]
  }
  t.same(await state(one), [false, undefined, undefined])
  const asked = await org('POST', `${one}/enforcement_instructions_request`, {})
  t.same([asked.status, asked.text], [202, ''])
  t.same(await state(one), [true, undefined, undefined])
  const [, data] = await state(one)
  t.match(data, /^\/orgs\/1\/datafiles\//)
  partial(
    t,
    (await org('GET', data!)).body,
    Array(2).fill({ network_endpoint: { href: new RegExp(one) }, workloads: [] }),
  )
  await refuses(org, t, [
    ['POST', `${one}/enforcement_instructions_request`, { x: 1 }, 'input_validation_error'],
    [
      'POST',
      `${one}/enforcement_instructions_applied`,
      { enforcement_instructions_data_href: '/orgs/1/x' },
      'invalid_uri',
    ],
    ['POST', '/network_devices/multi_enforcement_instructions_request', {}, 'input_validation_error'],
    [
      'POST',
      '/network_devices/multi_enforcement_instructions_applied',
      { network_devices: [{ href: '/x' }] },
      'invalid_uri',
    ],
  ])
  const applied = { enforcement_instructions_data_href: data }
  t.equal((await org('POST', `${one}/enforcement_instructions_applied`, applied)).status, 204)
  t.same(await state(one), [false, data, data])
  t.equal((await org('POST', '/network_devices/none/enforcement_instructions_request', {})).status, 404)

  const several = '/network_devices/multi_enforcement_instructions'
  t.equal((await org('POST', `${several}_request`, { network_devices: [{ href: two }] })).status, 202)
  t.same((await state(one))[0], false, 'not asked for')
  for (const busy of [true, false]) t.same((await state(two))[0], busy)
  t.equal((await org('POST', `${several}_applied`, { all_devices: true })).status, 204)
  const [busy, made, confirmed] = await state(two)
  t.same([busy, confirmed], [false, made])
  t.ok(made)

  simulator.faults.add({ kind: 'job-stuck', path: `/orgs/1${several}_request`, times: 1 })
  await org('POST', `${several}_request`, { all_devices: true })
  for (let polls = 0; polls < 5; polls += 1) t.same((await state(one))[0], true, 'never done')
})

t.test(
  'load balancers hide their passwords, and their virtual servers go with them unless policy uses these',
  async (t) => {
    const { org } = await startPce(t, generated())
    const [node] = await list(org, '/network_enforcement_nodes')
    const [seeded] = await list(org, '/slbs')
    const config = { host: '192.0.2.1', port: 443, credential_type: 'password', username: 'u', credential: 'hush-hush' }
    const body = {
      name: 'lb',
      device_type: 'f5',
      devices: [{ config }],
      network_enforcement_node: { href: node!.href },
    }
    const made = await org('POST', '/slbs', body)
    t.equal(made.status, 201)
    const [device] = made.body.devices
    partial(t, device, { href: /./, config: { host: '192.0.2.1', username: 'u' }, status: { status: 'pending' } })
    const change = { devices: [{ href: device.href, config: { host: '192.0.2.2', credential: 'hush-hush' } }] }
    t.equal((await org('PUT', made.body.href, change)).status, 204)
    const { text, body: read } = await org('GET', made.body.href)
    partial(t, read, { name: 'lb', description: '', devices: [{ config: { host: '192.0.2.2', port: 443 } }] })
    t.notMatch(made.text + text + (await org('GET', '/events')).text, 'hush-hush')
    await refuses(org, t, [
      ['POST', '/slbs', { ...body, devices: [] }, 'input_validation_error'],
      ['POST', '/slbs', { ...body, network_enforcement_node: { href: '/x' } }, 'invalid_uri'],
      ['PUT', made.body.href, { devices: [{ href: '/x' }] }, 'invalid_uri'],
      ['PUT', made.body.href, { status: 'x' }, 'input_validation_error'],
    ])
    t.same(await names(org, '/slbs?num_devices=1'), ['lb'])
    t.same(await names(org, '/slbs?status=pending&device_type=f5'), ['lb'])
    t.same(await names(org, '/slbs?description=shop'), [seeded!.name])

    const served = await list(org, `/discovered_virtual_servers?slb=${encodeURIComponent(seeded!.href)}`)
    t.ok(served.length > 1)
    const [target] = served as [Found]
    const { vip, port } = target.vip_port as { vip: string; port: string }
    t.equal((await org('POST', '/discovered_virtual_servers', {})).status, 405)
    t.same(await names(org, `/discovered_virtual_servers?vip=${vip}`), [target.name])
    t.same((await names(org, '/discovered_virtual_servers?vip=10.40.*&vip_proto=6')).length, served.length)
    t.same(
      await names(org, `/discovered_virtual_servers?vip_port=${port}`),
      served.filter((one) => (one.vip_port as { port: string }).port === port).map(({ name }) => name),
    )
    t.equal(
      (await names(org, '/discovered_virtual_servers?network_enforcement_node.hostname=nen-1.example.com')).length,
      served.length,
    )
    t.same(await names(org, '/discovered_virtual_servers?network_enforcement_node.hostname=none'), [])

    const [label] = await list(org, '/labels?key=app&max_results=1')
    const [service] = await list(org, '/sec_policy/draft/services?max_results=1')
    const virtual = await org('POST', '/sec_policy/draft/virtual_servers', {
      name: 'vs',
      mode: 'enforced',
      labels: [{ href: label!.href }],
      service: { href: service!.href },
      providers: [],
      discovered_virtual_server: { href: target.href },
    })
    t.equal(virtual.status, 201)
    partial(t, (await org('GET', target.href)).body.virtual_server, {
      href: virtual.body.href,
      update_type: 'create',
      mode: 'enforced',
      labels: [{ value: label!.value }],
    })
    for (const query of [
      'has_virtual_server=true',
      'virtual_server_mode=enforced',
      `virtual_server=${encodeURIComponent(virtual.body.href)}`,
      `virtual_server_labels=${encoded([[label!.href]])}`,
    ])
      t.same(await names(org, `/discovered_virtual_servers?${query}`), [target.name], query)
    t.equal((await names(org, '/discovered_virtual_servers?has_virtual_server=false')).length, served.length - 1)
    t.same(await names(org, '/slbs?has_virtual_server=true'), [seeded!.name])
    t.equal((await org('DELETE', seeded!.href)).status, 406, 'policy is written for what it serves')
    await org('DELETE', virtual.body.href)
    t.equal((await org('DELETE', seeded!.href)).status, 204)
    t.same(await list(org, '/discovered_virtual_servers'), [])
  },
)
