import t, { type Test } from 'tap'
import { SMALL, smallEstate } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { START_OF_TEST, startPce } from './start-pce.js'

/** Parsed JSON, as it came. */
type Found = ReturnType<JSON['parse']>
type Org = Awaited<ReturnType<typeof startPce>>['org']

const VEN = SMALL.paymentsDb.replace('/workloads/', '/vens/')
const OTHER_VEN = SMALL.orderingWeb.replace('/workloads/', '/vens/')
const NO_VEN = '/orgs/1/vens/00000000-0000-4000-8000-00000000dead'
const token = (answer: { body: { token: string }[] }) => answer.body?.[0]?.token
const encoded = (value: unknown) => encodeURIComponent(JSON.stringify(value))
const hrefs = async (org: Org, path: string) =>
  ((await org('GET', path)).body as { href: string }[]).map(({ href }) => href)
const refuses = async (org: Org, t: Test, cases: readonly (readonly [string, string, unknown, string])[]) => {
  for (const [verb, path, body, expected] of cases) {
    const answer = await org(verb, path, body)
    t.equal(answer.status, 406, `${verb} ${path} ${JSON.stringify(body)}`)
    t.equal(token(answer), expected)
  }
}
const generated = (more = {}) => ({ estate: undefined, seed: 5, workloads: 80, flows: 50, ...more })

t.test('a VEN mirrors its workload', async (t) => {
  const { org } = await startPce(t)
  t.same(await hrefs(org, '/vens'), [VEN, OTHER_VEN], 'one for each managed workload, none for the scanner')
  const { body: ven } = await org('GET', VEN)
  partial(t, ven, {
    hostname: 'payments-db-1.example.com',
    status: 'active',
    os_platform: 'linux',
    golden_image: false,
  })
  t.same(ven.workloads, [{ href: SMALL.paymentsDb }], 'what the workload has is read there')
  partial(t, ven.interfaces, [{ name: 'eth0', address: '10.1.0.1', cidr_block: 24, link_state: null }])
  t.same(ven.labels[0], { href: SMALL.db })

  await org('PUT', SMALL.paymentsDb, { labels: [{ href: SMALL.dev }], enforcement_mode: 'full' })
  t.same((await org('GET', VEN)).body.labels, [{ href: SMALL.dev }])

  const change = {
    name: 'the database',
    description: 'd',
    status: 'suspended',
    golden_image: true,
    target_pce_fqdn: 'b',
  }
  t.equal((await org('PUT', VEN, change)).status, 204)
  partial(t, (await org('GET', VEN)).body, change)
  partial(t, (await org('GET', SMALL.paymentsDb)).body.ven, { name: 'the database', status: 'suspended' })
  const [event] = (await org('GET', '/events')).body
  partial(t, event, { event_type: 'ven.update', status: 'success', resource_changes: [{ change_type: 'update' }] })
  await org('PUT', SMALL.paymentsDb, { agent: { status: { status: 'active' } } })
  t.equal((await org('GET', VEN)).body.status, 'active', 'and back by way of the workload')

  await refuses(org, t, [
    ['PUT', VEN, { hostname: 'x' }, 'input_validation_error'],
    ['PUT', VEN, { status: 'uninstalled' }, 'input_validation_error'],
  ])
  t.equal((await org('GET', NO_VEN)).status, 404)
  t.equal((await org('GET', SMALL.scanner.replace('/workloads/', '/vens/'))).status, 404, 'the scanner has no VEN')
  for (const verb of ['POST', 'DELETE']) t.equal((await org(verb, '/vens', {})).status, 405)
})

t.test('VENs are found by what they report', async (t) => {
  const estate = smallEstate()
  const [db, web] = estate.workloads as [Found, Found, Found]
  const agent = (version: string, at: string) => ({
    href: '/orgs/1/agents/1',
    active_pce_fqdn: 'pce.example.com',
    status: { agent_version: version, last_heartbeat_on: at, agent_health: [] },
  })
  const cluster = '/orgs/1/container_clusters/00000000-0000-4000-8000-0000000000c1'
  Object.assign(db, { agent: agent('24.5.0-72', '2026-02-01T00:00:00Z'), online: false, description: 'x' })
  Object.assign(web, {
    agent: { ...agent('25.2.10-101', '2026-03-01T11:00:00Z'), active_pce_fqdn: null },
    container_cluster: { href: cluster, name: 'k8s' },
    ven: { ...web.ven, status: 'suspended', ven_type: 'endpoint' },
  })
  const { org } = await startPce(t, { estate })
  const finds = async (query: string, ...expected: string[]) =>
    t.same(await hrefs(org, `/vens?${query}`), expected, query)
  await finds('hostname=ordering', OTHER_VEN)
  await finds('ip_address=10.1.', VEN)
  await finds('os=ubuntu', VEN, OTHER_VEN)
  await finds('status=suspended', OTHER_VEN)
  await finds('health=warning', VEN)
  await finds('health=unhealthy', VEN)
  await finds('health=healthy', OTHER_VEN)
  await finds('health=error')
  await finds('condition=agent.missed_heartbeats', VEN)
  await finds('ven_type=endpoint', OTHER_VEN)
  await finds(`labels=${encoded([[SMALL.payments], [SMALL.web, SMALL.ordering]])}`, VEN, OTHER_VEN)
  await finds(`labels=${encoded([[SMALL.payments, SMALL.web]])}`)
  await finds(`container_clusters=${encoded([cluster])}`, OTHER_VEN)
  await finds('active_pce_fqdn=pce.example.com', VEN)
  await finds('version[gte]=25.2.9-200', OTHER_VEN)
  await finds('version[lte]=25.2.9-200', VEN)
  await finds('last_heartbeat_at[gte]=2026-02-15T00:00:00Z', OTHER_VEN)
  await finds('last_heartbeat_at[lte]=2026-02-15T00:00:00Z', VEN)
  await finds('last_goodbye_at[gte]=2026-01-01T00:00:00Z')
  await finds('disconnected_before=2026-02-15T00:00:00Z', VEN)
  await finds('disconnected_before=2026-01-15T00:00:00Z')
  await finds('max_results=1&hostname=example', VEN)
  for (const query of ['labels=x', 'container_clusters=x', 'disconnected_before=2026-02-15', 'upgrade_pending=1']) {
    t.equal((await org('GET', `/vens?${query}`)).status, 406, query)
  }
})

t.test('VENs are unpaired, upgraded, restarted and recovered; refusals come with a reason', async (t) => {
  const clock = { now: START_OF_TEST }
  const { org } = await startPce(t, { now: () => clock.now })
  const both = [{ href: VEN }, { href: OTHER_VEN }]

  const upgrade = { release: '25.2.20-118', vens: [...both, { href: NO_VEN }], upgrade_timeout_seconds: 900 }
  const upgraded = await org('PUT', '/vens/upgrade', upgrade)
  t.equal(upgraded.status, 200)
  t.same(upgraded.body, { errors: [{ token: 'not_found_error', message: 'Not found', hrefs: [NO_VEN] }] })
  partial(t, (await org('GET', VEN)).body, {
    upgrade_target_version: '25.2.20-118',
    upgrade_expires_at: '2026-03-01T12:15:00.000Z',
  })
  t.same(await hrefs(org, '/vens?upgrade_pending=true'), [VEN, OTHER_VEN])
  clock.now += 901_000
  t.same(await hrefs(org, '/vens?upgrade_pending=true'), [], 'an upgrade that never came is forgotten')
  const { body: downgraded } = await org('PUT', '/vens/upgrade', { release: '24.5.0-72', vens: both })
  t.same(
    downgraded.errors.map((error: { hrefs: string[] }) => error.hrefs),
    [[VEN, OTHER_VEN]],
    'one reason for both',
  )

  const recovery = { vens: [{ href: VEN }], recovery_enabled: true, recovery_duration_seconds: 3600 }
  t.same((await org('PUT', '/vens/authentication_recovery', recovery)).body, { errors: [] })
  t.same(await hrefs(org, '/vens?authentication_recovery=true'), [VEN])
  clock.now += 3_600_001
  t.same(await hrefs(org, '/vens?authentication_recovery=true'), [], 'for as long as was asked')
  t.same((await org('PUT', '/vens/remote_action', { action: 'restart', vens: [{ href: VEN }] })).body, { errors: [] })

  await refuses(org, t, [
    ['PUT', '/vens/upgrade', { release: '1.0.0-1', vens: both }, 'input_validation_error'],
    ['PUT', '/vens/upgrade', { release: '25.2.20-118', vens: [{ href: SMALL.paymentsDb }] }, 'invalid_uri'],
    ['PUT', '/vens/remote_action', { action: 'restart', vens: both }, 'input_validation_error'],
    ['PUT', '/vens/remote_action', { action: 'stop', vens: [{ href: VEN }] }, 'input_validation_error'],
    ['PUT', '/vens/authentication_recovery', { vens: both }, 'input_validation_error'],
    ['PUT', '/vens/unpair', { vens: [] }, 'input_validation_error'],
    ['PUT', '/vens/unpair', { vens: both, firewall_restore: 'never' }, 'input_validation_error'],
    ['PUT', '/vens/unpair', { vens: [{ href: '/orgs/2/vens/1' }] }, 'invalid_uri'],
  ])

  const unpaired = await org('PUT', '/vens/unpair', { vens: [{ href: VEN }, { href: VEN }], firewall_restore: 'saved' })
  partial(
    t,
    unpaired.body,
    { errors: [{ token: 'not_found_error', hrefs: [VEN] }] },
    'the second mention is one too many',
  )
  const [event] = (await org('GET', '/events')).body
  partial(t, event, {
    event_type: 'vens.unpair',
    resource_changes: [{ change_type: 'delete', resource: { ven: { href: VEN } } }],
  })
  t.same(await hrefs(org, '/vens'), [OTHER_VEN])
  t.equal((await org('GET', VEN)).status, 404)
  t.same(await hrefs(org, '/workloads'), [SMALL.orderingWeb, SMALL.scanner], 'the workload goes with its VEN')
  const gone = ((await org('GET', '/workloads?include_deleted=true')).body as Found[])[0]
  partial(t, gone, { href: SMALL.paymentsDb, deleted: true, managed: false })
})

t.test('VEN statistics count all VENs and those that pass the filters', async (t) => {
  const { org } = await startPce(t, generated())
  const vens = (await org('GET', '/vens?max_results=1000')).body as {
    version: string
    ven_type: string
    health: string
  }[]
  const { body, status } = await org('POST', '/vens/statistics', {
    property_counts: [
      { property: 'version' },
      { property: 'status', values: ['active', 'suspended'] },
      { property: 'version', filters: [{ filter_property: 'ven_type', values: ['endpoint'] }] },
      { property: 'condition' },
    ],
  })
  t.equal(status, 200)
  const [versions, statuses, ofEndpoints, conditions] = body
  const counted = (property: { counts: { value: string; unfiltered_count: number }[] }, value: string) =>
    property.counts.find((count) => count.value === value)?.unfiltered_count
  for (const release of new Set(vens.map(({ version }) => version))) {
    t.equal(counted(versions, release), vens.filter(({ version }) => version === release).length, release)
  }
  t.equal(counted(statuses, 'active'), vens.length)
  t.equal(counted(statuses, 'suspended'), 0, 'asked for, though none has it')
  const endpoints = vens.filter(({ ven_type }) => ven_type === 'endpoint')
  t.ok(endpoints.length > 0 && endpoints.length < vens.length)
  t.equal(ofEndpoints.total_filtered_count, endpoints.length)
  for (const { value, filtered_count, unfiltered_count } of ofEndpoints.counts) {
    t.equal(filtered_count, endpoints.filter(({ version }) => version === value).length)
    t.equal(unfiltered_count, counted(versions, value))
  }
  const late = await hrefs(org, '/vens?condition=agent.missed_heartbeats')
  t.equal(counted(conditions, 'agent.missed_heartbeats') ?? 0, late.length)
  await refuses(org, t, [
    ['POST', '/vens/statistics', { vens: [{ href: VEN }] }, 'input_validation_error'],
    ['POST', '/vens/statistics', { property_counts: [{ property: 'colour' }] }, 'input_validation_error'],
  ])
})

t.test('VEN releases: one default for each type of VEN, which cannot be deleted', async (t) => {
  const { org } = await startPce(t)
  const path = '/software/ven/releases'
  const defaults = async () =>
    ((await org('GET', path)).body as { release: string; default_release_ven_types: string[] }[])
      .filter(({ default_release_ven_types: types }) => types.length > 0)
      .map(({ release, default_release_ven_types: types }) => [release, ...types])
  t.same(await defaults(), [['25.2.10-101', 'server', 'endpoint']])
  t.equal((await org('PUT', `${path}/defaults`, { release: '24.5.0-72', ven_types: ['endpoint'] })).status, 204)
  t.same(await defaults(), [
    ['25.2.10-101', 'server'],
    ['24.5.0-72', 'endpoint'],
  ])
  t.equal((await org('PUT', `${path}/default`, { release: '25.2.20-118' })).status, 204)
  t.same(await defaults(), [['25.2.20-118', 'server', 'endpoint']])
  t.equal((await org('DELETE', `${path}/25.2.20-118`)).status, 406)
  t.equal((await org('DELETE', `${path}/24.5.0-72`)).status, 204)
  t.equal((await org('GET', `${path}/24.5.0-72`)).status, 404)
  t.equal((await org('GET', `${path}/24.5.0-72/images`)).status, 404)
  t.equal((await org('PUT', `${path}/default`, { release: '24.5.0-72' })).status, 406)
  const { body: release } = await org('GET', `${path}/25.2.10-101`)
  partial(t, release, { release: '25.2.10-101', default: false, org_id: 1 })
  t.same((await org('GET', `${path}/25.2.10-101/images`)).body, release.images)
  partial(t, release.images[0], { release: '25.2.10-101', filename: /25\.2\.10-101/ })
  t.equal((await org('GET', `${path}?ven_type=all`)).body.length, 2)
})

t.test('a hand-made estate has no containers, devices or load balancers; a generated one does', async (t) => {
  const small = await startPce(t)
  const large = await startPce(t, generated())
  const kinds = [
    'container_clusters',
    'kubernetes_workloads',
    'network_enforcement_nodes',
    'network_devices',
    'slbs',
    'discovered_virtual_servers',
  ]
  for (const kind of kinds) {
    t.same((await small.org('GET', `/${kind}`)).body, [], kind)
    const { body } = await large.org('GET', `/${kind}`)
    t.ok(body.length > 0, `${body.length} ${kind}`)
    t.same((await large.org('GET', body[0].href)).body, body[0], 'the same by its href')
    t.equal((await large.org('GET', `/${kind}/00000000-0000-4000-8000-00000000dead`)).status, 404)
  }
})

t.test('a pairing key is shown once; the profile only says when it was created', async (t) => {
  const { org } = await startPce(t)
  const { body: profile } = await org('POST', '/pairing_profiles', { name: 'servers', enabled: true })
  t.equal(profile.last_pairing_key_generated_at, null)
  t.equal((await org('PUT', profile.href, { ven_type: 'endpoint' })).status, 406, 'it stays for one type of VEN')
  const { body: key } = await org('POST', `${profile.href}/pairing_key`, {})
  t.match(key.activation_code, /^[0-9a-f]{64}$/)
  const { body: after, text } = await org('GET', profile.href)
  partial(t, after, { last_pairing_key_generated_at: '2026-03-01T12:00:00.000Z', updated_at: profile.updated_at })
  t.notMatch(text + (await org('GET', '/events')).text, key.activation_code)
  t.equal((await org('DELETE', `${profile.href}/pairing_keys`)).status, 204)
  await org('PUT', profile.href, { enabled: false })
  t.equal((await org('POST', `${profile.href}/pairing_key`, {})).status, 406)
  t.equal((await org('DELETE', '/pairing_profiles/99/pairing_keys')).status, 404)
})
