import type { Test } from 'tap'
import { partial } from '../../../partial.js'
import { proveOperation, checkResult } from '../prove-operation.js'
import type { ContractPce, Json } from '../start-contract-pce.js'
import { startServer, type Reply, type Seen } from '../../support.js'
import { clientOf } from '../../support.js'

/** API keys and logins (P2, P13). */
export async function accessOperations(t: Test, pce: ContractPce): Promise<void> {
  const { client, ask, connect } = pce
  const account = await ask<{ href: string }>('POST', '/orgs/1/service_accounts', {
    name: 'Operation',
    permissions: [{ role: { href: '/orgs/1/roles/owner' }, scope: [] }],
    api_key: { expires_in_seconds: 86_400 },
  })
  const keys = `${account.href}/api_keys`
  const USER_KEYS = '/users/1/api_keys'
  const ORG_KEYS = '/orgs/1/api_keys'

  /** Whether the PCE takes the key. */
  const opens = async ({ auth_username, secret }: Json) => {
    const other = connect()
    other.setCredentials(auth_username as string, secret as string)
    const connected = await other.checkConnection()
    pce.simulator.clearRequests()
    return connected
  }

  await proveOperation(t, pce, 'create_service_account_api_key', async (t) => {
    const key = (await client.createServiceAccountApiKey(account.href)) as Json
    const wire = { method: 'POST', path: keys, status: 201 }
    pce.wire(t, { ...wire, body: { expires_in_seconds: 'default' } }, 'the default expiry unless told otherwise')
    partial(t, key, { key_id: /./, secret: /./, auth_username: /^api_/ })
    checkResult(t, 'create_service_account_api_key', key)
    t.ok(await opens(key), 'the key opens the PCE')
    await client.createServiceAccountApiKey(account.href, { json: { expires_in_seconds: 3600 } })
    pce.wire(t, { ...wire, body: { expires_in_seconds: 3600 } }, 'told otherwise')
    const attempt = () => client.createServiceAccountApiKey(account.href, { json: { expires_in_seconds: 'soon' } })
    const facts = { status: 406, method: 'POST', path: keys, token: 'input_validation_error' }
    await pce.refused(t, attempt, facts, 'a bad expiry')
  })

  await proveOperation(t, pce, 'delete_service_account_api_key', async (t) => {
    const key = await ask('POST', keys, { expires_in_seconds: -1 })
    t.ok(await opens(key))
    t.equal(await client.deleteServiceAccountApiKey(account.href, String(key.key_id)), undefined)
    const path = `${keys}/${String(key.key_id)}`
    pce.wire(t, { method: 'DELETE', path, status: 204 }, 'by its id')
    t.notOk(await opens(key), 'the key opens nothing any more')
    const attempt = () => client.deleteServiceAccountApiKey(account.href, String(key.key_id))
    await pce.refused(t, attempt, { status: 404, method: 'DELETE', path }, 'a key that is gone')
  })

  await proveOperation(t, pce, 'create_user_api_key', async (t) => {
    const key = (await client.createUserApiKey('1')) as Json
    const body = pce.simulator.requests[0]?.body as Json
    partial(t, body, { name: /./ }, 'has the name the PCE requires')
    pce.wire(t, { method: 'POST', path: USER_KEYS, body, status: 201 }, 'below the user')
    partial(t, key, { key_id: /./, secret: /./, auth_username: /^api_/ })
    checkResult(t, 'create_user_api_key', key)
    t.ok(await opens(key), 'the key opens the PCE')
    const named = { name: 'Laptop', description: 'At home' }
    await client.createUserApiKey('1', { json: named })
    pce.wire(t, { method: 'POST', path: USER_KEYS, body: named, status: 201 }, 'a name of the caller’s choice')
    const facts = { status: 404, method: 'POST', path: '/users/999999/api_keys' }
    await pce.refused(t, () => client.createUserApiKey('999999'), facts, 'an unknown user')
  })

  await proveOperation(t, pce, 'get_user_api_keys', async (t) => {
    const made = await ask('POST', USER_KEYS, { name: 'Listed' })
    const list = (await client.getUserApiKeys('1')) as Json[]
    t.ok(
      pce.look().every(({ line }) => line === `GET ${USER_KEYS}`),
      'below the user',
    )
    const found = list.find(({ key_id }) => key_id === made.key_id)
    partial(t, found, { name: 'Listed', auth_username: made.auth_username })
    t.notOk(found && 'secret' in found, 'without its secret')
    checkResult(t, 'get_user_api_keys', list)
    const facts = { status: 404, method: 'GET', path: '/users/999999/api_keys' }
    await pce.refused(t, () => client.getUserApiKeys('999999'), facts, 'an unknown user')
  })

  await proveOperation(t, pce, 'delete_user_api_key', async (t) => {
    const key = await ask('POST', USER_KEYS, { name: 'Deleted' })
    t.ok(await opens(key))
    t.equal(await client.deleteUserApiKey('1', String(key.key_id)), undefined)
    const path = `${USER_KEYS}/${String(key.key_id)}`
    pce.wire(t, { method: 'DELETE', path, status: 204 }, 'by its id')
    t.notOk(await opens(key), 'the key opens nothing any more')
    const attempt = () => client.deleteUserApiKey('1', String(key.key_id))
    await pce.refused(t, attempt, { status: 404, method: 'DELETE', path }, 'a key that is gone')
  })

  await proveOperation(t, pce, 'get_org_api_keys', async (t) => {
    await client.getOrgApiKeys()
    const types = pce.look().map(({ line, query }) => {
      t.equal(line, `GET ${ORG_KEYS}`)
      return query.type
    })
    t.same([...new Set(types)].sort(), ['service_account', 'user'], 'with the type that the PCE requires, both in turn')
    const params = { type: 'service_account', state: 'active' }
    const list = (await client.getOrgApiKeys({ params })) as Json[]
    const looks = pce.look()
    t.ok(
      looks.every(
        ({ line, query }) => line === `GET ${ORG_KEYS}` && query.type === params.type && query.state === 'active',
      ),
    )
    t.ok(list.length > 0 && list.every(({ state }) => state === 'active'))
    t.notOk(
      list.some((key) => 'secret' in key),
      'no secrets',
    )
    checkResult(t, 'get_org_api_keys', list)
    const attempt = () => client.getOrgApiKeys({ params: { type: 'robot' } })
    await pce.refused(t, attempt, { status: 406, method: 'GET', path: ORG_KEYS }, 'a bad type')
  })

  await proveOperation(t, pce, 'delete_org_api_key', async (t) => {
    const key = await ask('POST', keys, { expires_in_seconds: 'default' })
    t.equal(await client.deleteOrgApiKey(String(key.key_id)), undefined)
    const path = `${ORG_KEYS}/${String(key.key_id)}`
    pce.wire(t, { method: 'DELETE', path, status: 204 }, 'by its id')
    t.notOk(await opens(key), 'the key opens nothing any more')
    const attempt = () => client.deleteOrgApiKey(String(key.key_id))
    await pce.refused(t, attempt, { status: 404, method: 'DELETE', path }, 'a key that is gone')
  })

  await proveOperation(t, pce, 'login_user', (t) => proveLogin(t, pce))

  await proveOperation(t, pce, 'verify_ldap_connection', async (t) => {
    const config = '/authentication_settings/ldap_configs/00000000-0000-4000-8000-000000000001'
    const path = `${config}/verify_connection`
    pce.answerNext('POST', path, { success: true })
    const result = await client.verifyLdapConnection(config)
    pce.wire(t, { method: 'POST', path, body: {} }, 'an empty body')
    t.strictSame(result, { success: true })
    checkResult(t, 'verify_ldap_connection', result)
    const facts = { status: 404, method: 'POST', path }
    await pce.refused(t, () => client.verifyLdapConnection(config), facts, 'an unknown configuration')
  })
}

/** Two requests, each with its own Authorization, which the simulator does not keep: a scripted PCE looks at them. */
async function proveLogin(t: Test, pce: ContractPce): Promise<void> {
  const seen: Seen[] = []
  const session = {
    href: '/users/1',
    auth_username: 'user_1',
    session_token: 'of-a-session',
    inactivity_expiration_minutes: 10,
    full_name: 'Ada Admin',
    type: 'local',
    orgs: [{ href: '/orgs/1' }],
    product_version: { version: '25.2.10', build: 1234, product_name: 'PCE' },
  }
  const server = await startServer(t, (request): Reply => {
    seen.push(request)
    return request.method === 'POST' ? { body: { auth_token: 'of-a-login' } } : { body: session }
  })
  const scripted = clientOf(server)
  const result = (await scripted.loginUser('ada@example.com', 'a:pass wörd')) as Json
  t.strictSame(
    seen.map(({ method, path }) => `${method} ${path.split('?')[0]}`),
    ['POST /login_users/authenticate', 'GET /users/login'],
    'a login is exchanged for a session',
  )
  t.match(new URLSearchParams(seen[0]?.path.split('?')[1]).get('pce_fqdn'), /./, 'with the name of the PCE')
  const basic = Buffer.from('ada@example.com:a:pass wörd').toString('base64')
  t.equal(seen[0]?.headers.authorization, `Basic ${basic}`, 'the credentials go in the header')
  t.notMatch(seen[0]?.body, 'pass', 'and not in the body')
  t.equal(seen[1]?.headers.authorization, 'Token token=of-a-login')
  partial(t, result, { session_token: 'of-a-session', auth_username: 'user_1' })

  const { simulator, client, connect } = pce
  const { username, password } = simulator.login
  simulator.clearRequests()
  const login = await client.loginUser(username, password)
  pce.wire(
    t,
    [
      {
        method: 'POST',
        path: '/login_users/authenticate',
        query: { pce_fqdn: '127.0.0.1' },
        body: {},
        status: [200, 201],
      },
      { method: 'GET', path: '/users/login' },
    ],
    'and so does the simulator see it',
  )
  checkResult(t, 'login_user', login)
  const other = connect()
  other.setCredentials(login.auth_username ?? '', login.session_token)
  t.ok(await other.checkConnection(), 'the session opens the PCE')
  const facts = { status: 401, method: 'POST', path: '/login_users/authenticate' }
  await pce.refused(t, () => client.loginUser(username, 'wrong'), facts, 'bad credentials')
}
