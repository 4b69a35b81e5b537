/** A client of the SDK that knows nothing but the address of the server: from a bare 401 to a confirmed change. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { freePort } from '../free-port.js'
import { startIdentityProvider, type IdentityProvider } from '../identity/identity-provider.js'
import { ADFS_TRUST, AUTH0_GROUPS, type VendorName } from '../identity/vendors.js'
import { contains, partial } from '../partial.js'
import { DEFAULT_NAMES } from '../surface/contract.js'
import { createWorld, GROUP_OF, untilReady } from './support/authenticated-world.js'
import { callTool, confirm, type Json } from './support/call-tool.js'
import { connectAs, createPerson } from './support/oauth-client.js'
import { startProgram } from './support/start-program.js'

const ROBOT = { clientId: 'robot', clientSecret: 'robot-secret-of-the-tests' }

/** A process in per_user mode at the address that it is known by, in front of this provider. */
async function serve(t: Test, idp: IdentityProvider, env: Record<string, string> = {}, at?: number) {
  const port = at ?? (await freePort())
  const base = `http://127.0.0.1:${port}`
  const world = await createWorld(t, { publicUrl: base, idp })
  const program = startProgram(t, {
    args: ['--port', String(port)],
    env: { ...world.env, MCP_AUDIT_LOG_PATH: world.auditPath, ...env },
  })
  await program.listening
  const target = { origin: base }
  await untilReady(target)
  return { ...world, base, target }
}

const valueOf = (result: unknown): Json => {
  const { structuredContent, content } = result as CallToolResult
  return structuredContent ?? JSON.parse((content[0] as { text: string }).text)
}

t.test('a client gets from nothing to a confirmed change', async (t) => {
  const idp = await startIdentityProvider(t, { people: { alice: { groups: [GROUP_OF.admin] } } })
  const { base, pce, target, auditEntries } = await serve(t, idp)
  const person = createPerson(idp, 'alice')
  const { client } = await connectAs(`${base}/mcp`, person)

  const discovery = [
    'GET /.well-known/oauth-protected-resource 200',
    'GET idp/.well-known/oauth-authorization-server 200',
  ]
  t.same(
    person.seen
      .map(({ method, url, status }) => `${method} ${url.replace(base, '').replace(idp.origin, 'idp')} ${status}`)
      // The client asks for a standing stream when it likes.
      .filter((line) => line !== 'GET /mcp 405'),
    [
      ...['POST /mcp 401', ...discovery, 'POST idp/reg 201'],
      ...[...discovery, 'POST idp/token 200'],
      ...['POST /mcp 200', 'POST /mcp 202'],
    ],
    'refused, led to the provider, registered there, logged in, and in',
  )
  const [login] = person.logins
  t.equal(login!.searchParams.get('code_challenge_method'), 'S256')
  t.equal(login!.searchParams.get('resource'), base)
  t.equal(login!.searchParams.get('scope'), 'svc-mcp.use')
  t.equal(client.getServerVersion()?.name, 'svc-mcp')

  const { tools } = await client.listTools()
  t.equal(tools.length, DEFAULT_NAMES.length)
  const call = async (name: string, args: object = {}, meta?: object) =>
    valueOf(await client.callTool({ name, arguments: { ...args }, ...(meta && { _meta: { ...meta } }) }))
  partial(t, await call('get-labels'), { error: 'no_pce_credentials' })
  partial(t, await call('register-pce-credentials', pce.registration), { status: 'ok', connection: { ok: true } })
  const made = await call('create-iplist', { name: 'From nothing', ip_ranges: [{ from_ip: '10.0.0.0/8' }] })
  contains(t, made.href, '/ip_lists/')
  const before = pce.simulator.state.policyVersion

  const asked = await call('provision-policy', { change_description: 'as agreed' })
  partial(t, asked, {
    error: 'confirm_required',
    reason: 'missing',
    summary: /From nothing/,
    params_hash: /^[0-9a-f]{64}$/,
  })
  t.equal(asked.confirm.url, `${base}/confirm`)
  t.equal(pce.simulator.state.policyVersion, before, 'nothing has happened yet')
  const token = person.held.tokens!.access_token
  const { status, json } = await confirm(target, token, asked.confirm.body)
  t.same([status, json.expires_in], [200, 120])
  const confirmed = { confirm_token: json.confirm_token }
  const done = await call('provision-policy', { change_description: 'as agreed' }, confirmed)
  partial(t, done, { version: before + 1, commit_message: 'as agreed', provisioned_hrefs: [made.href] })
  t.equal(pce.simulator.state.policyVersion, before + 1)
  partial(t, await call('provision-policy', { change_description: 'as agreed' }, confirmed), {
    error: 'confirm_token_replay',
  })
  t.equal(pce.simulator.state.policyVersion, before + 1)

  t.same(
    auditEntries()
      .filter(({ tool, phase }) => tool === 'provision-policy' && phase === 'decision')
      .map(({ route, decision, reason, sub, iss, role }) => [route, decision, reason, sub, iss === idp.issuer, role]),
    [
      ['/mcp', 'denied', 'confirm_required', 'alice', true, 'admin'],
      ['/confirm', 'allowed', undefined, 'alice', true, 'admin'],
      ['/mcp', 'allowed', undefined, 'alice', true, 'admin'],
      ['/mcp', 'denied', 'confirm_token_replay', 'alice', true, 'admin'],
    ],
    'the audit log tells it all, by name',
  )
  const schemes = new Set(pce.simulator.requests.map(({ scheme }) => scheme))
  t.same(
    [...schemes].filter((scheme) => scheme !== null),
    ['Basic'],
    'the PCE has seen API keys, never a token',
  )

  await t.test('when the token expires midway, it logs in again and continues', async (t) => {
    idp.people.alice = { groups: [GROUP_OF.admin], claims: { exp: Math.floor(Date.now() / 1000) - 60 } }
    const stale = await idp.tokensFor('alice', { resource: base })
    idp.people.alice = { groups: [GROUP_OF.admin] }
    const { client, orLogIn } = await connectAs(`${base}/mcp`, person)
    t.equal(person.logins.length, 1, 'the token from before still serves')
    person.held.tokens = { access_token: stale.accessToken, token_type: 'Bearer' }
    const labels = await orLogIn(() => client.callTool({ name: 'get-labels', arguments: { key: 'env' } }))
    t.ok(valueOf(labels).labels.length > 0)
    t.equal(person.logins.length, 2, 'one login more')
    t.not(person.held.tokens.access_token, stale.accessToken)
  })

  await t.test('a token without the scope is refused, and the client does not loop', async (t) => {
    idp.people.bob = { groups: [GROUP_OF.admin], claims: { scope: 'openid' } }
    const bob = createPerson(idp, 'bob')
    await t.rejects(connectAs(`${base}/mcp`, bob))
    t.ok(bob.logins.length >= 1 && bob.logins.length <= 2, `${bob.logins.length} logins`)
    const posts = bob.seen.filter(({ url, method }) => url === `${base}/mcp` && method === 'POST')
    t.ok(posts.length <= 3 && posts.every(({ status }) => status === 401), `${posts.length} requests`)
    const { accessToken } = await idp.tokensFor('bob', { resource: base })
    const refused = await fetch(`${base}/mcp`, { method: 'POST', headers: { authorization: `Bearer ${accessToken}` } })
    t.match(refused.headers.get('www-authenticate'), /^Bearer resource_metadata="[^"]+", error="insufficient_scope"/)
    t.match(refused.headers.get('www-authenticate'), /scope="svc-mcp\.use"/)
  })

  await t.test('a service client logs in by itself', async (t) => {
    idp.people.robot = { groups: [GROUP_OF.operator] }
    const transport = new StreamableHTTPClientTransport(new URL(`${base}/mcp`), {
      authProvider: new ClientCredentialsProvider({ ...ROBOT, scope: 'svc-mcp.use', expectedIssuer: idp.issuer }),
    })
    const client = new Client({ name: 'robot', version: '1.0.0' })
    await client.connect(transport)
    t.equal((await client.listTools()).tools.length, DEFAULT_NAMES.length)
    const callRobot = async (name: string, args: object) =>
      valueOf(await client.callTool({ name, arguments: { ...args } }))
    partial(
      t,
      await callRobot('get-labels', {}),
      { error: 'no_pce_credentials' },
      "nobody else's credentials are its own",
    )
    await callRobot('register-pce-credentials', pce.registration)
    partial(t, await callRobot('create-label', { key: 'app', value: 'by-robot' }), { label: { href: /labels/ } })
    partial(t, await callRobot('provision-policy', {}), { error: 'forbidden' })
    partial(
      t,
      auditEntries().findLast(({ sub }) => sub === 'robot'),
      { role: 'operator', reason: 'forbidden' },
    )
  })
})

const VENDORS: [VendorName, Record<string, string>][] = [
  ['entra', {}],
  ['okta', {}],
  ['auth0', { MCP_OAUTH_GROUPS_CLAIM: AUTH0_GROUPS }],
  ['keycloak', { MCP_OAUTH_GROUPS_CLAIM: 'realm_access.roles' }],
  ['pingone', {}],
  ['pingfederate', {}],
  ['adfs', { MCP_OAUTH_GROUPS_CLAIM: 'group', MCP_OAUTH_TOKEN_ISSUER: ADFS_TRUST }],
]
for (const [vendor, env] of VENDORS) {
  t.test(`tokens as issued by ${vendor}`, async (t) => {
    const slash = vendor === 'keycloak' ? '/' : ''
    const hasRoles = vendor === 'entra' || vendor === 'keycloak'
    const port = await freePort()
    const appIdUri = `http://127.0.0.1:${port}`
    const idp = await startIdentityProvider(t, {
      vendor,
      appIdUri,
      people: {
        reader: { groups: ['g-read', 'other'] },
        operator: { groups: ['g-read', 'g-operate'] },
        admin: { groups: ['g-operate', 'g-admin', 'g-read'] },
        // What is like a group that counts is none.
        nobody: { groups: ['G-ADMIN', 'g-admin '] },
        ...(hasRoles && { app: { roles: [`${slash}g-admin`] } }),
      },
    })
    const { base, target, auditEntries } = await serve(
      t,
      idp,
      {
        ...env,
        ...(vendor === 'entra' && { MCP_OAUTH_REQUEST_SCOPE: `${appIdUri}/svc-mcp.use` }),
        MCP_ROLE_GROUPS_READER: `${slash}g-read`,
        MCP_ROLE_GROUPS_OPERATOR: `${slash}g-operate`,
        MCP_ROLE_GROUPS_ADMIN: `${slash}g-admin`,
      },
      port,
    )
    const person = createPerson(idp, 'admin')
    const { client } = await connectAs(`${base}/mcp`, person)
    await client.callTool({ name: 'check-pce-credentials-status', arguments: {} })
    t.equal(auditEntries().at(-1)?.role, 'admin', 'discovered, logged in, and admin')

    const expected: Record<string, string | null> = {
      reader: 'reader',
      operator: 'operator',
      admin: 'admin',
      nobody: null,
    }
    if (hasRoles) expected.app = 'admin'
    for (const [login, role] of Object.entries(expected)) {
      const { accessToken } = await idp.tokensFor(login, { resource: base })
      const answer = await callTool(target, accessToken, 'create-label', { key: 'app', value: 'x' })
      t.equal(auditEntries().at(-1)?.role, role, `${login}: ${role}`)
      const reason = { reader: 'forbidden', operator: 'no_pce_credentials', admin: 'no_pce_credentials' }[role ?? '']
      t.equal(answer.error, reason ?? 'forbidden_no_role')
    }
  })
}
