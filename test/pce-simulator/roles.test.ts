/** What users of each role may write (P72): the rest is refused with 403, and reading is not. */
import t from 'tap'
import { SMALL, SMALL_QUERY } from '../../pce-simulator/small-estate.js'
import type { GivenRole } from '../../pce-simulator/index.js'
import { createCaller, type PceAnswer } from './call-pce.js'
import { startPce } from './start-pce.js'

/** A simulator, and a caller with the key of each of these users. */
async function start(test: Parameters<typeof startPce>[0], ...users: GivenRole[]) {
  const { simulator, org } = await startPce(test, { users })
  const callers = simulator.keys.map(({ key, secret }) => {
    const call = createCaller({ url: simulator.url, credentials: { key, secret } })
    return (method: string, path: string, json?: unknown) =>
      call(method, path.startsWith('/orgs/') || path.startsWith('/users') ? path : `/orgs/1${path}`, json)
  })
  return { simulator, owner: org, callers }
}

const refusal = ({ status, body }: PceAnswer) => (status === 403 ? [403, body[0].token] : status)
const FORBIDDEN = [403, 'forbidden_error']
const DRAFT = '/sec_policy/draft'
const RULE = {
  providers: [{ actors: 'ams' }],
  consumers: [{ actors: 'ams' }],
  ingress_services: [{ href: SMALL.postgres }],
  resolve_labels_as: { providers: ['workloads'], consumers: ['workloads'] },
  enabled: true,
}
const scopeOf = (...labels: string[]) => [labels.map((href) => ({ label: { href } }))]

t.test('read_only reads everything and writes nothing', async (t) => {
  const { simulator, callers, owner } = await start(t, { role: 'read_only' })
  const [reader] = callers as [typeof owner]
  const before = (await owner('GET', '/labels')).text
  for (const [method, path, body] of [
    ['POST', '/labels', { key: 'app', value: 'x' }],
    ['PUT', SMALL.web, { value: 'x' }],
    ['DELETE', SMALL.dev],
    ['PUT', '/workloads/bulk_create', [{ name: 'x' }]],
    ['POST', `${DRAFT}/rule_sets`, { name: 'x', scopes: [[]] }],
    ['POST', `${SMALL.paymentsRules}/sec_rules`, RULE],
    ['PUT', `${DRAFT}/firewall_settings`, { ike_authentication_type: 'psk' }],
    ['POST', '/sec_policy', { update_description: 'x' }],
    ['PUT', '/sec_policy/delete', {}],
    ['POST', '/service_accounts', { name: 'x' }],
    ['PUT', '/workloads/unpair', { workloads: [{ href: SMALL.paymentsDb }] }],
    ['POST', '/labels', undefined],
  ] as const)
    t.same(refusal(await reader(method, path, body)), FORBIDDEN, `${method} ${path}`)
  t.equal((await owner('GET', '/labels')).text, before, 'nothing was written')
  t.same(simulator.state.pendingHrefs(), [])

  for (const path of ['/labels', '/workloads', `${DRAFT}/rule_sets`, '/sec_policy/pending', '/events'])
    t.equal((await reader('GET', path)).status, 200, path)
  const query = await reader('POST', '/traffic_flows/async_queries', SMALL_QUERY)
  t.equal(query.status, 202, 'a query changes nothing')
  t.equal((await reader('DELETE', query.body.href)).status, 204)
  t.equal((await reader('POST', `${DRAFT}/rule_search`, {})).status, 200)
  const [refused] = (await owner('GET', '/events?event_type=label.create')).body
  t.same([refused.status, refused.created_by.user.username], ['failure', 'read_only-2@example.com'])
})

t.test('admin writes all but who may come in', async (t) => {
  const { callers } = await start(t, { role: 'admin' })
  const [admin] = callers as [(typeof callers)[0]]
  t.equal((await admin('POST', '/labels', { key: 'app', value: 'x' })).status, 201)
  t.equal((await admin('POST', `${DRAFT}/rule_sets`, { name: 'x', scopes: [[]] })).status, 201)
  t.equal((await admin('POST', '/sec_policy', { update_description: 'x' })).status, 201)
  t.same(refusal(await admin('POST', '/users', { username: 'x@example.com', type: 'local' })), FORBIDDEN)
  t.same(refusal(await admin('POST', '/users/1/api_keys', { name: 'x' })), FORBIDDEN)
  t.equal((await admin('POST', '/users/2/api_keys', { name: 'x' })).status, 201, 'a key of their own')
})

t.test('ruleset_manager writes the rule sets of its scope and does not provision', async (t) => {
  const { callers, owner } = await start(
    t,
    { role: 'ruleset_manager', scope: { app: 'payments' } },
    { role: 'limited_ruleset_manager', scope: { app: 'payments' } },
    { role: 'ruleset_manager' },
  )
  const [manager, limited, everywhere] = callers as [typeof owner, typeof owner, typeof owner]
  const create = (who: typeof owner, name: string, scopes: unknown) =>
    who('POST', `${DRAFT}/rule_sets`, { name, scopes })
  const own = await create(manager, 'own', scopeOf(SMALL.payments, SMALL.dev))
  t.equal(own.status, 201)
  t.same(refusal(await create(manager, 'other', scopeOf(SMALL.ordering))), FORBIDDEN)
  t.same(refusal(await create(manager, 'both', [...scopeOf(SMALL.payments), ...scopeOf(SMALL.ordering)])), FORBIDDEN)
  t.same(refusal(await create(manager, 'all', [[]])), FORBIDDEN)
  t.same(refusal(await create(manager, 'none', [])), FORBIDDEN)
  t.equal((await create(everywhere, 'all', [[]])).status, 201)

  t.equal((await manager('PUT', own.body.href, { description: 'x' })).status, 204)
  t.same(refusal(await manager('PUT', own.body.href, { scopes: [[]] })), FORBIDDEN, 'not out of its scope')
  t.equal((await manager('POST', `${SMALL.paymentsRules}/sec_rules`, RULE)).status, 201)
  const unscoped = { ...RULE, unscoped_consumers: true }
  t.equal((await manager('POST', `${own.body.href}/sec_rules`, unscoped)).status, 201, 'sources of any scope')
  t.same(refusal(await limited('POST', `${own.body.href}/sec_rules`, unscoped)), FORBIDDEN)
  t.equal((await limited('POST', `${own.body.href}/sec_rules`, RULE)).status, 201)
  const other = await create(owner, 'other', scopeOf(SMALL.ordering))
  t.same(refusal(await manager('POST', `${other.body.href}/sec_rules`, RULE)), FORBIDDEN)
  t.same(refusal(await manager('DELETE', other.body.href)), FORBIDDEN)
  t.equal((await manager('DELETE', own.body.href)).status, 204)
  t.same(refusal(await manager('POST', '/sec_policy', { update_description: 'x' })), FORBIDDEN)
  t.same(refusal(await manager('POST', '/labels', { key: 'app', value: 'x' })), FORBIDDEN)
})

t.test('provisioners provision what is theirs and write nothing', async (t) => {
  const { callers, owner } = await start(
    t,
    { role: 'ruleset_provisioner', scope: { app: 'payments', env: 'prod' } },
    { role: 'global_object_provisioner' },
  )
  const [rules, objects] = callers as [typeof owner, typeof owner]
  await owner('PUT', SMALL.paymentsRules, { description: 'x' })
  const { body: list } = await owner('POST', `${DRAFT}/ip_lists`, { name: 'x', ip_ranges: [{ from_ip: '10.0.0.1' }] })
  const provision = (who: typeof owner, change_subset?: object) =>
    who('POST', '/sec_policy', { update_description: 'x', ...(change_subset && { change_subset }) })
  const [ruleSets, lists] = [{ rule_sets: [{ href: SMALL.paymentsRules }] }, { ip_lists: [{ href: list.href }] }]
  t.same(refusal(await provision(rules)), FORBIDDEN, 'everything pending is more than its own')
  t.same(refusal(await provision(rules, lists)), FORBIDDEN)
  t.same(refusal(await provision(objects, ruleSets)), FORBIDDEN)
  t.equal((await provision(rules, ruleSets)).status, 201)
  t.equal((await provision(objects)).status, 201, 'only the list is left')
  t.same(refusal(await rules('PUT', SMALL.paymentsRules, { description: 'y' })), FORBIDDEN)
  t.same(refusal(await objects('DELETE', list.href)), FORBIDDEN)
})

t.test('workload_manager writes the workloads of its scope', async (t) => {
  const { callers } = await start(t, { role: 'workload_manager', scope: { app: 'payments' } })
  const [manager] = callers as [(typeof callers)[0]]
  const labels = (...hrefs: string[]) => hrefs.map((href) => ({ href }))
  t.equal((await manager('PUT', SMALL.paymentsDb, { description: 'x' })).status, 204)
  t.same(refusal(await manager('PUT', SMALL.paymentsDb, { labels: labels(SMALL.ordering) })), FORBIDDEN)
  t.same(refusal(await manager('PUT', SMALL.orderingWeb, { description: 'x' })), FORBIDDEN)
  t.same(refusal(await manager('DELETE', SMALL.scanner)), FORBIDDEN, 'without labels')
  const interfaces = [{ name: 'eth0', link_state: 'up', address: '10.9.0.1' }]
  t.equal((await manager('POST', '/workloads', { name: 'x', interfaces, labels: labels(SMALL.payments) })).status, 201)
  t.same(refusal(await manager('POST', '/workloads', { name: 'y' })), FORBIDDEN)
  const bulk = [{ href: SMALL.paymentsDb, description: 'y' }]
  t.equal((await manager('PUT', '/workloads/bulk_update', bulk)).status, 200)
  const mixed = [...bulk, { href: SMALL.orderingWeb, description: 'y' }]
  t.same(refusal(await manager('PUT', '/workloads/bulk_update', mixed)), FORBIDDEN)
  t.same(refusal(await manager('POST', `${DRAFT}/rule_sets`, { name: 'x', scopes: [[]] })), FORBIDDEN)
})

t.test('permissions given later count at once', async (t) => {
  const { owner, simulator } = await start(t)
  const account = await owner('POST', '/service_accounts', {
    name: 'robot',
    permissions: [{ role: { href: '/orgs/1/roles/ruleset_viewer' }, scope: [] }],
    api_key: { expires_in_seconds: 3600 },
  })
  const { auth_username: key, secret } = account.body.api_key
  const robot = createCaller({ url: simulator.url, credentials: { key, secret } })
  const create = () => robot('POST', '/orgs/1/labels', { key: 'app', value: 'x' })
  t.same(refusal(await create()), FORBIDDEN)
  const permissions = [{ role: { href: '/orgs/1/roles/admin' }, scope: [] }]
  await owner('PUT', account.body.href, { permissions })
  t.equal((await create()).status, 201)
})

t.test('a role or a label that does not exist stops the start', async (t) => {
  await t.rejects(startPce(t, { users: [{ role: 'king' }] }), {
    message: /^There is no role king; the roles are owner, /,
  })
  await t.rejects(startPce(t, { users: [{ role: 'ruleset_manager', scope: { app: 'none' } }] }), {
    message: 'The estate has no label app=none',
  })
})
