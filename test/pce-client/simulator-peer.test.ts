import t from 'tap'
import { createPceClient } from '../../pce-client/index.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import { partial } from '../partial.js'
import { fakeTimers } from './support.js'

const pce = await createPceSimulator({ seed: 7, workloads: 620, flows: 4000 })
await pce.listen()
t.teardown(() => pce.close())
t.beforeEach(() => {
  pce.faults.clear()
  pce.clearRequests()
})

function connect() {
  const { timers, waits } = fakeTimers()
  const client = createPceClient({ url: pce.url, port: new URL(pce.url).port, orgId: pce.orgId, timers })
  client.setCredentials(pce.credentials.key, pce.credentials.secret)
  return Object.assign(client, { waits })
}

t.test('connects, or says why not', async (t) => {
  const client = connect()
  await client.mustConnect()
  partial(t, await client.getProductVersion(), { version: /^\d+\.\d+/ })
  client.setCredentials(pce.credentials.key, 'wrong')
  await t.rejects(client.mustConnect(), { name: 'PceApiError', status: 401 })
  t.equal(await client.checkConnection(), false)
})

t.test('reads whole collections in every way', async (t) => {
  const client = connect()
  const page = await client.workloads.getPage()
  t.equal(page.items.length, 500, 'the PCE cuts a plain list')
  const total = page.totalCount ?? 0
  t.ok(total > 500)
  pce.clearRequests()
  const all = await client.workloads.getAll()
  t.equal(all.length, total)
  t.equal(pce.requests.length, 2)
  t.equal(new Set(all.map(({ href }) => href)).size, total)
  t.equal((await client.workloads.getAsync()).length, total, 'the asynchronous job has as many')
  const managed = await client.workloads.getAll('draft', null, { params: { managed: true } })
  t.ok(managed.length > 0 && managed.length < total)
  t.ok(managed.every((workload) => workload.managed === true))
})

t.test('writes objects and finds them again', async (t) => {
  const client = connect()
  const label = await client.labels.create({ key: 'app', value: 'Peer Test' })
  partial(t, await client.labels.getByReference(label), { key: 'app', value: 'Peer Test' })
  await t.rejects(client.labels.create({ key: 'app', value: 'Peer Test' }), {
    name: 'PceApiError',
    status: 406,
    errors: [{ token: 'label_key_and_value_must_be_unique' }],
  })
  await client.labels.update(label, { value: 'Peer Test 2' })
  partial(t, await client.labels.getByReference(label.href), { value: 'Peer Test 2' })

  for (const name of ['Peer', 'Peer List'])
    await client.ipLists.create({ name, ip_ranges: [{ from_ip: '192.0.2.0/24' }] })
  partial(t, await client.ipLists.getByName('Peer'), { name: 'Peer', update_type: 'create' })
  t.equal(await client.ipLists.getByName('Peer', 'active'), null, 'drafts are not active yet')

  const created = await client.workloads.bulkCreate([
    { name: 'peer-1', hostname: 'peer-1' },
    { name: 'peer-2', hostname: 'peer-2' },
  ])
  t.ok(created.every(({ errors }) => errors.length === 0))
  t.same(await client.workloads.bulkDelete(created.map(({ href }) => href ?? '')), [])
  partial(t, await client.workloads.bulkDelete([created[0]?.href ?? '']), [{ errors: [{ token: /./ }] }])
  await client.labels.delete(label)
})

t.test('provisions a draft', async (t) => {
  const client = connect()
  const anywhere = await client.getDefaultIpList()
  const everything = await client.getDefaultService()
  const ruleSet = await client.ruleSets.create({ name: 'Peer rules', scopes: [[]] })
  const rule = await client.rules.create(
    {
      enabled: true,
      providers: [{ actors: 'ams' }],
      consumers: [{ ip_list: { href: anywhere.href.replace('/active/', '/draft/') } }],
      ingress_services: [{ href: everything.href.replace('/active/', '/draft/') }],
      resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
    },
    ruleSet,
  )
  partial(t, await client.rules.get('draft', ruleSet), [{ href: rule.href }])
  const pending = await client.getPendingPolicyChanges()
  partial(
    t,
    pending.find(({ href }) => href === ruleSet.href),
    { type: 'rule_sets', update_type: 'create' },
  )
  t.same(await client.getPolicyDependencies([ruleSet.href]), [])
  t.ok((await client.analyzePolicyImpact([ruleSet.href])).num_managed_workloads >= 0)
  const version = await client.provisionPolicyChanges('peer test', [rule.href])
  t.equal(version.version, pce.state.policyVersion)
  partial(t, await client.ruleSets.getByName('Peer rules', 'active'), { rules: [{ enabled: true }] })
  await client.ruleSets.delete(ruleSet.href.replace('/draft/', '/active/'))
  partial(t, await client.ruleSets.getByReference(ruleSet), { update_type: 'delete' }, 'a deletion waits in the draft')
})

t.test('asks for traffic', async (t) => {
  const client = connect()
  const day = 86_400_000
  const iso = (time: number) => new Date(time).toISOString()
  const rows = await client.getTrafficFlowsAsync('peer test', {
    start_date: iso(Date.now() - 7 * day),
    end_date: iso(Date.now()),
    sources: { include: [[]], exclude: [] },
    destinations: { include: [[]], exclude: [] },
    services: { include: [], exclude: [] },
    policy_decisions: [],
    max_results: 100_000,
  })
  t.ok(rows.length > 100)
  partial(t, rows[0], { src: { ip: /./ }, dst: { ip: /./ }, service: { proto: Number }, policy_decision: /./ })
  t.equal(client.waits[0], 1000)
  t.ok(client.waits.length >= 2, 'after several polls')
})

t.test('meets faults', async (t) => {
  const client = connect()
  const path = '/orgs/1/labels'
  pce.faults.add(
    { kind: 'retry-after', path, times: 1, retryAfter: 2 },
    { kind: 'reset', path, times: 1 },
    { kind: 'cut-body', path, times: 1 },
  )
  t.ok((await client.labels.get()).length > 0, 'a read gets through rejections, resets and broken answers')
  t.same(client.waits, [2000, 2000, 4000])

  pce.faults.add({ kind: 'commit-then-drop', path, method: 'POST', times: 1 })
  await t.rejects(client.labels.create({ key: 'app', value: 'Twice?' }), { code: 'outcome_unknown' })
  const found = await client.labels.get('draft', null, { params: { key: 'app', value: 'Twice?' } })
  t.equal(found.length, 1, 'a creation whose answer was lost is not repeated')
  pce.faults.add({ kind: 'commit-then-drop', path, method: 'DELETE', times: 1 })
  await client.labels.delete(found[0]!)
  t.equal(
    (await client.labels.get('draft', null, { params: { key: 'app', value: 'Twice?' } })).length,
    0,
    'a deletion is, and counts as done',
  )
  pce.faults.add({ kind: 'truncate', path, times: 1 })
  await t.rejects(client.labels.get(), { code: 'invalid_response' })
  pce.faults.add({ kind: 'html', path, times: 6 })
  await t.rejects(client.labels.get(), { status: 502, message: /502 Bad Gateway$/ })
})
