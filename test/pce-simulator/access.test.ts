import t from 'tap'
import type { PceEvent } from '../../schemas/pce/event.js'
import { createCaller, type PceAnswer } from './call-pce.js'
import { SMALL, smallEstate } from '../../pce-simulator/small-estate.js'
import { partial } from '../partial.js'
import { START_OF_TEST, startPce } from './start-pce.js'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const token = (answer: PceAnswer) => answer.body?.[0]?.token
const basic = (name: string, secret: string) => ({ authorization: `Basic ${btoa(`${name}:${secret}`)}` })
const role = (name: string) => ({ href: `/orgs/1/roles/${name}` })
const ROOT_SCOPE: object[] = []

/** A simulator whose clock moves when told, and callers with other credentials than its first API key. */
async function start(test: Parameters<typeof startPce>[0]) {
  const clock = { now: START_OF_TEST }
  const pce = await startPce(test, { now: () => clock.now, password: 'a pass:word' })
  const { simulator, call } = pce
  const as = (key: string, secret: string) => createCaller({ url: simulator.url, credentials: { key, secret } })
  const logIn = async (password = 'a pass:word') =>
    call('POST', '/login_users/authenticate?pce_fqdn=pce.example.com', undefined, basic('admin@example.com', password))
  const exchange = (authToken: string) =>
    call('GET', '/users/login', undefined, { authorization: `Token token=${authToken}` })
  const openSession = async () => {
    const { auth_username, session_token } = (await exchange((await logIn()).body.auth_token)).body
    return as(auth_username, session_token)
  }
  const events = async () => (await call('GET', '/orgs/1/events?max_results=10000')).body as PceEvent[]
  return { ...pce, clock, as, logIn, exchange, openSession, events }
}

t.test('a login: name and password for a token, the token for a session', async (t) => {
  const { simulator, call, clock, as, logIn, exchange, openSession, events } = await start(t)
  t.same(simulator.login, { username: 'admin@example.com', password: 'a pass:word' })

  for (const headers of [
    basic('admin@example.com', 'wrong'),
    basic('nobody@example.com', 'a pass:word'),
    basic(simulator.credentials.key, simulator.credentials.secret),
    { authorization: '' },
  ]) {
    const refused = await call('POST', '/login_users/authenticate', undefined, headers)
    t.same([refused.status, refused.text], [401, ''], 'no JSON body')
  }
  t.equal((await events())[0]!.event_type, 'request.authentication_failed')

  const login = await logIn()
  t.same([login.status, Object.keys(login.body)], [200, ['auth_token']], 'a session comes later')
  const asNull = await call('POST', '/login_users/authenticate', 'null', basic('admin@example.com', 'a pass:word'))
  t.ok(asNull.body.auth_token, 'the documented body')
  t.equal(
    (await as('admin@example.com', 'a pass:word')('GET', '/orgs/1/labels')).status,
    401,
    'a password opens no more',
  )

  const session = (await exchange(login.body.auth_token)).body
  partial(t, session, {
    href: '/users/1',
    auth_username: 'user_1',
    inactivity_expiration_minutes: 10,
    full_name: 'Ada Admin',
    type: 'local',
    last_login_on: null,
    orgs: [{ href: '/orgs/1', permissions: [{ role: role('owner') }] }],
    product_version: { product_name: 'PCE' },
  })
  for (const authorization of ['Token token=wrong', 'Token', basic('user_1', session.session_token).authorization]) {
    t.equal((await call('GET', '/users/login', undefined, { authorization })).status, 401, authorization.slice(0, 12))
  }
  const user = as(session.auth_username, session.session_token)
  const label = await user('POST', '/orgs/1/labels', { key: 'app', value: 'by session' })
  t.same([label.status, label.body.created_by], [201, { href: '/users/1' }])
  t.equal((await user('GET', '/orgs/2/labels')).status, 403, 'of another organisation')
  t.equal((await as('user_2', session.session_token)('GET', '/noop')).status, 401, 'of another user')
  partial(t, (await call('GET', '/users/1')).body, { login_count: 1, presence_status: 'online' })

  const late = (await logIn()).body.auth_token
  clock.now += 29_999
  t.equal((await exchange(late)).status, 200, 'in time')
  clock.now += 1
  t.equal((await exchange(late)).status, 401, 'a token is valid for 30 seconds')

  const idle = await openSession()
  for (let uses = 0; uses < 3; uses++) {
    clock.now += 10 * MINUTE - 1
    t.equal((await idle('GET', '/noop')).status, 204, 'in use')
  }
  clock.now += 10 * MINUTE
  t.equal((await idle('GET', '/noop')).status, 401, 'idle for too long')
  t.equal((await call('GET', '/users/1')).body.presence_status, 'offline')
  await call('PUT', '/authentication_settings/password_policy', { session_timeout_minutes: 20 })
  const patient = await openSession()
  clock.now += 15 * MINUTE
  t.equal((await patient('GET', '/noop')).status, 204, 'the policy says how long is too long')

  const [leaving, staying] = [await openSession(), await openSession()]
  t.equal((await leaving('PUT', '/users/1/logout')).status, 406, 'a PUT has a body')
  t.equal((await leaving('PUT', '/users/1/logout', {})).status, 204)
  t.equal((await leaving('GET', '/noop')).status, 401)
  t.equal((await staying('GET', '/noop')).status, 204, 'the other session goes on')
  t.equal((await call('PUT', '/users/1/logout', {})).status, 204)
  t.equal((await staying('GET', '/noop')).status, 401, 'an API key ends them all')
  t.equal((await call('PUT', '/users/9/logout', {})).status, 404)

  await call('PUT', '/users/1', { locked: true })
  t.equal((await logIn()).status, 401, 'a locked user')
  await call('PUT', '/users/1', { locked: false })
  await call('DELETE', '/users/1/local_profile')
  t.equal((await logIn()).status, 401, 'a user without a local profile')

  const seen = new Set((await events()).map(({ event_type }) => event_type))
  for (const type of ['user.login', 'user.create_session', 'user.logout', 'user.update']) t.ok(seen.has(type), type)
})

t.test('a login whose name and password come as JSON gets a session at once', async (t) => {
  const { simulator, call, as, exchange } = await start(t)
  const path = '/login_users/authenticate'
  const login = await call(
    'POST',
    path,
    { username: 'admin@example.com', password: 'a pass:word' },
    { authorization: '' },
  )
  t.equal(login.status, 200)
  t.equal((await as(login.body.auth_username, login.body.session_token)('GET', '/noop')).status, 204)
  t.equal((await exchange(login.body.auth_token)).status, 200, 'its token can be exchanged all the same')
  t.equal((await call('POST', path, { username: 'admin@example.com', password: 'x' }, {})).status, 401)
  await call('POST', '/authentication_settings/ldap_configs', {
    address: 'a',
    bind_password: { nested: ['a pass:word'] },
  })

  t.notMatch(JSON.stringify(simulator.requests), 'a pass:word', 'no password is on record')
  t.same(simulator.requests[0]!.body, { username: 'admin@example.com', password: '[redacted]' })
  t.notMatch(JSON.stringify((await call('GET', '/orgs/1/events')).body), 'a pass:word', 'nor in an event')
})

t.test('an API key of a user: its secret is shown once, and it works until it is deleted or expires', async (t) => {
  const { simulator, call, clock, as } = await start(t)
  t.equal(token(await call('POST', '/users/1/api_keys', {})), 'input_validation_error', 'a key has a name')
  t.equal((await call('POST', '/users/9/api_keys', { name: 'x' })).status, 404)
  t.equal((await call('GET', '/users/9/api_keys')).status, 404)

  await call('PUT', '/orgs/1/settings', { max_api_key_expiration_in_seconds: 3600 })
  const made = await call('POST', '/users/1/api_keys', { name: 'Laptop', description: 'At home' })
  const { key_id, auth_username, secret, href } = made.body
  t.equal(made.status, 201)
  partial(t, made.body, {
    auth_username: `api_${key_id}`,
    href: `/users/1/api_keys/${key_id}`,
    expires_in_seconds: 3600,
  })
  const user = as(auth_username, secret)
  t.equal((await user('GET', '/orgs/1/labels')).status, 200)
  t.equal((await user('GET', '/orgs/2/labels')).status, 403)
  t.equal((await as(auth_username, `${secret}x`)('GET', '/noop')).status, 401)

  const [first, listed] = (await call('GET', '/users/1/api_keys')).body
  t.equal(first.auth_username, simulator.credentials.key, 'the first key is one like any other')
  const created_at = new Date(START_OF_TEST).toISOString()
  t.same(listed, { href, key_id, auth_username, name: 'Laptop', description: 'At home', created_at }, 'no secret')
  t.equal((await call('PUT', href, { name: 'Desktop' })).status, 204)
  t.equal((await call('GET', href)).body.name, 'Desktop')
  t.equal((await call('PUT', href, { secret: 'mine' })).status, 406)
  t.notMatch(JSON.stringify((await call('GET', '/orgs/1/events')).body), secret)

  clock.now += 3600_000 - 1
  t.equal((await user('GET', '/noop')).status, 204)
  clock.now += 1
  t.equal((await user('GET', '/noop')).status, 401, 'expired')
  t.equal((await call('GET', '/noop')).status, 204, 'one that never expires')

  const second = (await call('POST', '/users/1/api_keys', { name: 'Second' })).body
  t.not(second.secret, secret)
  t.equal((await call('DELETE', second.href)).status, 204)
  t.equal((await as(second.auth_username, second.secret)('GET', '/noop')).status, 401, 'deleted')
  t.equal((await call('DELETE', second.href)).status, 404)
})

t.test('a service account: permissions, keys, and writes in its own name', async (t) => {
  const { call, org, clock, as, events } = await start(t)
  const body = {
    name: 'Deployment',
    permissions: [{ role: role('ruleset_manager'), scope: [{ label: { href: SMALL.payments } }] }],
    api_key: { expires_in_seconds: 86_400 },
  }
  for (const [wrong, expected] of [
    [{ ...body, api_key: {} }, 'input_validation_error'],
    [{ ...body, api_key: undefined }, 'input_validation_error'],
    [{ ...body, api_key: { expires_in_seconds: 'soon' } }, 'input_validation_error'],
    [{ ...body, created_at: 'x' }, 'input_validation_error'],
    [{ ...body, permissions: [{ role: role('emperor'), scope: [] }] }, 'invalid_uri'],
    [
      { ...body, permissions: [{ role: role('owner'), scope: [{ label: { href: '/orgs/1/labels/99' } }] }] },
      'invalid_uri',
    ],
  ] as const) {
    t.equal(token(await org('POST', '/service_accounts', wrong)), expected, JSON.stringify(wrong))
  }
  t.equal((await org('GET', '/service_accounts')).body.length, 0, 'nothing was left behind')

  const made = await org('POST', '/service_accounts', body)
  t.equal(made.status, 201)
  const { href, api_key } = made.body
  partial(t, href.split('/').at(-1), UUID)
  const read = (await org('GET', href)).body
  t.notOk('api_key' in read)
  t.notMatch(JSON.stringify(read), /secret/)
  partial(t, read, {
    name: 'Deployment',
    access_restriction: null,
    permissions: [{ role: role('ruleset_manager'), scope: [{ label: { href: SMALL.payments, value: 'payments' } }] }],
    api_keys: [{ key_id: api_key.key_id, state: 'active', expires_in_seconds: 86_400, last_login_on: null }],
  })

  const account = as(api_key.auth_username, api_key.secret)
  const scopes = [[{ label: { href: SMALL.payments } }]]
  const own = (await account('POST', '/orgs/1/sec_policy/draft/rule_sets', { name: 'deployed', scopes })).body
  t.same(own.created_by, { href }, 'it is the author of what it writes')
  partial(t, (await events())[0]!.created_by, { service_account: { href, name: 'Deployment' } })
  t.same((await org('POST', '/labels', { key: 'app', value: 'mine' })).body.created_by, { href: '/users/1' })
  t.equal((await org('GET', href)).body.api_keys[0].last_login_on, new Date(START_OF_TEST).toISOString())

  t.equal(token(await org('POST', `${href}/api_keys`, {})), 'input_validation_error')
  t.equal((await org('POST', `${href.slice(0, -1)}/api_keys`, { expires_in_seconds: -1 })).status, 404)
  const forever = (await org('POST', `${href}/api_keys`, { expires_in_seconds: -1 })).body
  const usual = (await org('POST', `${href}/api_keys`, { expires_in_seconds: 'default' })).body
  t.equal(usual.expires_in_seconds, 90 * 86_400)
  clock.now += DAY
  t.equal((await account('GET', '/noop')).status, 401, 'expired')
  t.equal((await org('GET', href)).body.api_keys[0].state, 'expired')
  clock.now += 10_000 * DAY
  t.equal((await as(forever.auth_username, forever.secret)('GET', '/noop')).status, 204)
  t.equal((await org('DELETE', forever.href)).status, 204)
  t.equal((await as(forever.auth_username, forever.secret)('GET', '/noop')).status, 401, 'deleted')

  const [old] = read.permissions
  const grants = [
    { ...old, role: role('read_only'), scope: ROOT_SCOPE },
    { role: role('workload_manager'), scope: ROOT_SCOPE },
  ]
  t.equal((await org('PUT', href, { name: 'Rollout', permissions: grants })).status, 204)
  const [kept, added] = (await org('GET', href)).body.permissions
  t.same([kept.href, kept.role, added.role], [old.href, role('read_only'), role('workload_manager')])
  t.equal((await org('GET', added.href)).status, 200, 'a permission like any other')
  t.equal((await org('GET', '/auth_security_principals?name=Rollout')).body[0].type, 'service_account')
  t.equal(token(await org('PUT', href, { permissions: [{ ...old, href: '/orgs/1/permissions/x' }] })), 'invalid_uri')
  t.equal((await org('GET', '/service_accounts?role=workload_manager')).body.length, 1)
  t.equal((await org('GET', '/service_accounts?role=owner')).body.length, 0)
  t.equal((await org('GET', '/service_accounts?name=Roll')).body.length, 0, 'the whole name')

  await org('PUT', href, { permissions: [added] })
  t.same((await org('GET', href)).body.permissions, [added], 'the list replaces the one there was')

  t.equal((await org('DELETE', href)).status, 204)
  for (const gone of [href, added.href, usual.href.replace(/\/api_keys.*/, '')]) {
    t.equal((await org('GET', gone)).status, 404, gone)
  }
  t.equal((await call('GET', '/orgs/1/api_keys?type=service_account')).body.length, 0, 'its keys went with it')
})

t.test('the API keys of an organisation', async (t) => {
  const { call, org, clock, as, simulator } = await start(t)
  const account = (
    await org('POST', '/service_accounts', {
      name: 'Backup',
      permissions: [{ role: role('read_only'), scope: ROOT_SCOPE }],
      api_key: { expires_in_seconds: 60 },
    })
  ).body
  await org('POST', `${account.href}/api_keys`, { expires_in_seconds: -1 })
  for (const query of ['', '?type=robot', '?state=active']) {
    t.equal(token(await org('GET', `/api_keys${query}`)), 'input_validation_error', `type is required: ${query}`)
  }
  const list = (await org('GET', '/api_keys?type=service_account')).body
  t.equal(list.length, 2)
  partial(t, list[0], {
    key_id: account.api_key.key_id,
    state: 'active',
    account: {
      href: account.href,
      type: 'service_account',
      name: 'Backup',
      permissions: [{ role: role('read_only') }],
    },
  })
  t.notMatch(JSON.stringify(list), /secret/)
  clock.now += MINUTE
  const count = async (query: string) => (await org('GET', `/api_keys?type=${query}`)).body.length
  t.equal(await count('service_account&state=expired'), 1)
  t.equal(await count('service_account&state=active'), 1)
  t.equal(await count('service_account&max_results=1'), 1)
  t.equal(await count('user&username=admin@example.com'), 1)
  t.equal(await count('user&username=admin'), 0)
  t.equal(await count('user&role=owner'), 1)
  t.equal(await count('user&role=read_only'), 0)
  t.equal(await count('user&name=Default%20key'), 1)

  const { key, secret } = simulator.credentials
  const second = (await call('POST', '/users/1/api_keys', { name: 'Second' })).body
  const other = as(second.auth_username, second.secret)
  t.equal((await other('DELETE', `/orgs/1/api_keys/${key.replace('api_', '')}`)).status, 204)
  t.equal((await as(key, secret)('GET', '/noop')).status, 401, 'even the first one')
  t.equal((await other('DELETE', '/orgs/1/api_keys/none')).status, 404)
})

t.test('roles, principals and permissions', async (t) => {
  const { org } = await start(t)
  const roles = (await org('GET', '/roles')).body
  t.ok(roles.some(({ href }: { href: string }) => href === '/orgs/1/roles/ruleset_provisioner'))
  t.same((await org('GET', '/roles/owner')).body, role('owner'))
  t.equal((await org('GET', '/roles/emperor')).status, 404)

  const group = (await org('POST', '/auth_security_principals', { type: 'group', name: 'auditors' })).body
  const principals = async (query: string) =>
    (await org('GET', `/auth_security_principals?${query}`)).body.map(({ name }: { name: string }) => name)
  t.same(await principals('name=udit'), ['auditors'])
  await org('PUT', group.href, { display_name: 'Auditors' })
  partial(t, (await org('GET', group.href)).body, { type: 'group', name: 'auditors', display_name: 'Auditors' })

  const labels = (await org('POST', '/sec_policy/draft/label_groups', { name: 'Apps', key: 'app', labels: [] })).body
  const scope = [{ label: { href: SMALL.payments } }, { label_group: { href: labels.href } }]
  const body = { role: role('ruleset_manager'), scope, auth_security_principal: { href: group.href } }
  for (const wrong of [
    { ...body, role: role('emperor') },
    { ...body, auth_security_principal: { href: '/orgs/1/auth_security_principals/none' } },
    { ...body, scope: [{ label: { href: '/orgs/1/labels/99' } }] },
    { ...body, scope: [{ label_group: { href: '/orgs/1/sec_policy/draft/label_groups/none' } }] },
  ]) {
    t.equal(token(await org('POST', '/permissions', wrong)), 'invalid_uri')
  }
  t.equal(token(await org('POST', '/permissions', { ...body, scope: [{ ip_list: {} }] })), 'input_validation_error')
  const permission = (await org('POST', '/permissions', body)).body
  t.same(permission, {
    href: permission.href,
    role: body.role,
    scope: [
      { label: { href: SMALL.payments, key: 'app', value: 'payments' } },
      { label_group: { href: labels.href, key: 'app', name: 'Apps' } },
    ],
    auth_security_principal: { href: group.href },
  })
  const found = async (query: string, value: unknown) => {
    const answer = await org('GET', `/permissions?${query}=${encodeURIComponent(JSON.stringify(value))}`)
    return answer.body.map(({ href }: { href: string }) => href)
  }
  t.same(await found('role', '/orgs/1/roles/ruleset_manager'), [permission.href])
  t.same(await found('auth_security_principal', { href: group.href }), [permission.href])
  t.same(await found('scope', scope.toReversed()), [permission.href])
  t.same((await found('scope', ROOT_SCOPE)).length, 1, 'of everything: the owner')
  for (const query of ['role=/orgs/1/roles/owner', 'role=7', 'scope=%7B%7D']) {
    t.equal(token(await org('GET', `/permissions?${query}`)), 'invalid_uri', query)
  }
  await org('PUT', permission.href, { role: role('ruleset_viewer'), scope: ROOT_SCOPE })
  partial(t, (await org('GET', permission.href)).body, { role: role('ruleset_viewer'), scope: ROOT_SCOPE })
  t.equal((await org('DELETE', permission.href)).status, 204)
  t.equal((await org('GET', permission.href)).status, 404)
})

t.test('users: of the whole PCE, never deleted', async (t) => {
  const { simulator, call, org } = await start(t)
  for (const wrong of [
    { username: 'ben', type: 'local' },
    { username: 'ben@example.com', type: 'external' },
    { username: 'ben@example.com', type: 'local', locked: true },
    { username: 'admin@example.com', type: 'local' },
  ]) {
    t.equal(token(await call('POST', '/users', wrong)), 'input_validation_error', JSON.stringify(wrong))
  }
  const made = await call('POST', '/users', { username: 'ben@example.com', type: 'local', full_name: 'Ben' })
  partial(t, made.body, { href: '/users/2', id: 2, login_count: 0, locked: false, time_zone: 'UTC', permissions: [] })
  t.equal((await call('PUT', '/users/2', { username: 'x@example.com' })).status, 406)
  t.equal((await call('PUT', '/users/2', { time_zone: 'Europe/Berlin', locked: true })).status, 204)
  partial(t, (await call('GET', '/users/2')).body, { time_zone: 'Europe/Berlin', locked: true, full_name: 'Ben' })

  const principal = (await org('POST', '/auth_security_principals', { type: 'user', name: 'ben@example.com' })).body
  const auth_security_principal = { href: principal.href }
  await org('POST', '/permissions', { role: role('read_only'), scope: ROOT_SCOPE, auth_security_principal })
  partial(t, (await call('GET', '/users/2')).body.permissions, [{ role: role('read_only'), auth_security_principal }])
  partial(t, (await call('GET', '/users/2/orgs')).body, [
    { href: '/orgs/1', permissions: [{ role: role('read_only') }] },
  ])
  t.equal((await call('GET', '/users/9/orgs')).status, 404)

  t.equal((await call('POST', '/users/2/local_profile', {})).status, 406)
  t.equal((await call('DELETE', '/users/2/local_profile')).status, 204)
  t.equal((await call('DELETE', '/users/2/local_profile')).status, 406)
  const names = async (type: string) =>
    (await call('GET', `/users?type=${type}`)).body.map(({ username }: { username: string }) => username)
  t.same([await names('local'), await names('external')], [['admin@example.com'], ['ben@example.com']])
  t.equal((await call('POST', '/users/2/local_profile', {})).status, 201)
  t.same((await call('GET', '/users/2')).body.local_profile, {})

  simulator.faults.add({ kind: 'job-failed', path: '/users', method: 'POST', times: 1 })
  const unsent = await call('POST', '/users', { username: 'cleo@example.com', type: 'local' })
  t.equal(unsent.status, 501, 'the invitation was not sent')
  t.ok((await names('local')).includes('cleo@example.com'), 'but the user is there')
})

t.test('an unsupported verb is 405, an unknown object 404', async (t) => {
  const { call } = await start(t)
  for (const [verb, path] of [
    ['DELETE', '/users/1'],
    ['POST', '/users/login'],
    ['GET', '/users/1/logout'],
    ['GET', '/login_users/authenticate'],
    ['POST', '/orgs/1/roles'],
    ['PUT', '/orgs/1/roles/owner'],
    ['POST', '/orgs/1/api_keys'],
    ['GET', '/orgs/1/api_keys/x'],
    ['GET', '/orgs/1/service_accounts/x/api_keys'],
  ] as const) {
    // The login has no credentials to check before its verb.
    t.equal(
      (await call(verb, path, verb === 'GET' || verb === 'DELETE' ? undefined : {})).status,
      405,
      `${verb} ${path}`,
    )
  }
  for (const path of ['permissions/x', 'service_accounts/x']) {
    t.equal((await call('GET', `/orgs/1/${path}`)).status, 404, path)
    t.equal((await call('PUT', `/orgs/1/${path}`, {})).status, 404, path)
    t.equal((await call('DELETE', `/orgs/1/${path}`)).status, 404, path)
  }
})

t.test('every write leaves an event with its author', async (t) => {
  const { call, events } = await start(t)
  const href = async (answer: Promise<PceAnswer>) => (await answer).body.href as string
  const principal = await href(call('POST', '/orgs/1/auth_security_principals', { type: 'group', name: 'x' }))
  const grant = { role: role('owner'), scope: ROOT_SCOPE }
  const permission = await href(
    call('POST', '/orgs/1/permissions', { ...grant, auth_security_principal: { href: principal } }),
  )
  const account = await href(
    call('POST', '/orgs/1/service_accounts', { name: 'x', permissions: [], api_key: { expires_in_seconds: -1 } }),
  )
  const key = await href(call('POST', '/users/1/api_keys', { name: 'x' }))
  for (const [noun, path, change] of [
    ['permission', permission, grant],
    ['service_account', account, { name: 'y' }],
    ['api_key', key, { name: 'y' }],
  ] as const) {
    await call('PUT', path, change)
    partial(t, (await events())[0], {
      event_type: `${noun}.update`,
      status: 'success',
      created_by: { user: { href: '/users/1', username: 'admin@example.com' } },
      resource_changes: [{ resource: { [noun]: { href: path } }, change_type: 'update' }],
    })
    await call('DELETE', path)
    t.equal((await events())[0]!.event_type, `${noun}.delete`)
  }
  const types = (await events()).map(({ event_type }) => event_type)
  for (const noun of ['permission', 'service_account', 'api_key']) {
    t.ok(types.includes(`${noun}.create`), noun)
  }
  await call('PUT', '/users/1', { username: 'x' })
  partial(t, (await events())[0], { event_type: 'user.update', status: 'failure' })
})

t.test('an estate without people still has a user', async (t) => {
  const { simulator, call } = await startPce(t, { estate: { ...smallEstate(), users: [] } })
  t.equal((await call('GET', '/users')).body[0].username, simulator.login.username)
})
