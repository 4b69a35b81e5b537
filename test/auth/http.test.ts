/**
 * What the door is on the wire: challenge, metadata, limits, order (S7, S10, RFC 6750, 9728, D44, D43).
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import {
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  selectResourceURL,
} from '@modelcontextprotocol/sdk/client/auth.js'
import { freePort } from '../free-port.js'
import { claimsFor, forgeKey } from '../identity/forge.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import { startKeyServer } from '../identity/key-server.js'
import { partial } from '../partial.js'
import { authApp, METADATA_URL, parseChallenge, PUBLIC_URL, type AuthAppOptions } from './auth-app.js'

const key = forgeKey('ES256', { kid: 'ec' })
const RESOURCE = '/.well-known/oauth-protected-resource'
const SERVER = '/.well-known/oauth-authorization-server'

async function door(t: Test, options: AuthAppOptions = {}, issuer = 'https://idp.example.test/') {
  const keys = await startKeyServer(t, key)
  const oauth = {
    issuer,
    jwksUrl: keys.url,
    audience: 'https://mcp.example.test',
    requiredScope: 'svc-mcp.use',
    groupsClaims: ['groups'],
  }
  const app = await authApp(t, oauth, options)
  const good = await key.sign(claimsFor(oauth))
  /** Tokens that nobody can tell from our provider's until their signature is looked at. */
  const stranger = forgeKey(key.alg, { kid: key.kid })
  const bad = (sub = 'x') => stranger.sign(claimsFor(oauth, { sub }))
  const old = (sub = 'x') => key.sign(claimsFor(oauth, { sub }, Date.now() - 3_600_000))
  return { ...app, oauth, good, bad, old }
}

/** Sends bytes over a socket of its own and reads until `enough` or the end. */
async function converse(port: number, bytes: string | Buffer, enough: (text: string) => boolean = () => false) {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
    if (enough(text)) socket.destroy()
  })
  socket.on('error', () => {})
  socket.write(bytes)
  await once(socket, 'close')
  return text
}

t.test('the metadata of the protected resource', async (t) => {
  const { app } = await door(t)
  const expected = {
    resource: PUBLIC_URL,
    authorization_servers: ['https://idp.example.test/'],
    scopes_supported: ['svc-mcp.use'],
    bearer_methods_supported: ['header'],
    resource_name: 'Policy engine',
  }
  for (const url of [RESOURCE, `${RESOURCE}/mcp`, `${RESOURCE}/mcp/`]) {
    for (const headers of [
      {},
      { host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' },
    ]) {
      const answer = await app.inject({ url, headers })
      t.equal(answer.statusCode, 200, url)
      t.same(answer.json(), expected, url)
      partial(t, answer.headers, { 'content-type': /^application\/json/, 'cache-control': 'public, max-age=300' }, url)
    }
    const head = await app.inject({ method: 'HEAD', url })
    t.same([head.statusCode, head.body], [200, ''], `HEAD ${url}`)
    t.equal(head.headers['cache-control'], 'public, max-age=300')
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
      const refused = await app.inject({ method, url, payload: { a: 1 } })
      t.same([refused.statusCode, refused.headers.allow], [405, 'GET, HEAD'], `${method} ${url}`)
      partial(t, refused.json(), { error: 'method_not_allowed' })
    }
    t.equal(
      (await app.inject({ url, headers: { authorization: 'Bearer rubbish' } })).statusCode,
      200,
      'a bad token does not matter here',
    )
  }
})

t.test('requests the scope by its request name and checks tokens for its own', async (t) => {
  const keys = await startKeyServer(t, key)
  const asked = 'api://svc-mcp/svc-mcp.use'
  const oauth = {
    issuer: 'https://login.example/tenant/v2.0',
    jwksUrl: keys.url,
    audience: '0b7c1f9d-client-id',
    requiredScope: 'svc-mcp.use',
    requestedScope: asked,
    groupsClaims: ['groups'],
  }
  const { app, send, bearer, refusals } = await authApp(t, oauth)
  t.same((await app.inject(RESOURCE)).json().scopes_supported, [asked])
  const tokenWith = (scp: string) => key.sign(claimsFor(oauth, { scope: undefined, scp }))
  t.equal((await bearer(await tokenWith('svc-mcp.use'))).statusCode, 200, 'a token has its own name')
  const refused = await bearer(await tokenWith(asked))
  t.equal(refused.statusCode, 401)
  t.equal(refusals().at(-1)?.reason, 'missing required scope')
  for (const [what, answer] of Object.entries({ 'no token': await send(), 'no scope': refused })) {
    const { parameters } = parseChallenge(String(answer.headers['www-authenticate']))
    t.equal(Object.fromEntries(parameters).scope, asked, what)
  }
})

t.test('requests several scopes where it is told to', async (t) => {
  const keys = await startKeyServer(t, key)
  const { app, send } = await authApp(t, {
    issuer: 'https://login.example',
    jwksUrl: keys.url,
    audience: '0b7c1f9d-client-id',
    requiredScope: 'svc-mcp.use',
    requestedScope: 'openid svc-mcp.use offline_access',
    groupsClaims: ['groups'],
  })
  t.same((await app.inject(RESOURCE)).json().scopes_supported, ['openid', 'svc-mcp.use', 'offline_access'])
  const { parameters } = parseChallenge(String((await send()).headers['www-authenticate']))
  t.equal(Object.fromEntries(parameters).scope, 'openid svc-mcp.use offline_access')
})

t.test('metadata gives the public URL with its path and without a trailing slash', async (t) => {
  for (const [publicUrl, resource] of [
    ['https://mcp.example.test/', 'https://mcp.example.test'],
    ['https://example.test/policy/', 'https://example.test/policy'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ]) {
    const { app, send } = await door(t, { publicUrl })
    t.equal((await app.inject(RESOURCE)).json().resource, resource)
    const [first] = parseChallenge(String((await send()).headers['www-authenticate'])).parameters
    t.same(first, ['resource_metadata', `${resource}${RESOURCE}`])
  }
})

t.test('redirects clients that take this server for the authorization server', async (t) => {
  for (const [issuer, location] of [
    ['https://idp.example.test/', 'https://idp.example.test/.well-known/openid-configuration'],
    ['https://login.example/tenant/v2.0', 'https://login.example/tenant/v2.0/.well-known/openid-configuration'],
  ]) {
    const { app } = await door(t, {}, issuer)
    const answer = await app.inject(SERVER)
    t.same([answer.statusCode, answer.headers.location, answer.body], [302, location, ''])
    t.equal((await app.inject({ method: 'POST', url: SERVER })).statusCode, 405)
  }
  const { app } = await door(t)
  const missing = await app.inject('/.well-known/openid-configuration')
  t.equal(missing.statusCode, 404)
  t.match(missing.headers['content-type'], /json/, 'never a page of HTML')
})

t.test("the SDK's client discovers everything from a bare 401", async (t) => {
  for (const vendor of ['plain', 'entra', 'auth0', 'adfs'] as const) {
    const idp = await startIdentityProvider(t, { vendor })
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const { app } = await authApp(t, idp.oauth(), { publicUrl: url })
    await app.listen({ port, host: '127.0.0.1' })
    const bare = await fetch(`${url}/secured`, { method: 'POST' })
    const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(bare)
    const asked = vendor === 'entra' ? 'https://mcp.example.test/svc-mcp.use' : 'svc-mcp.use'
    t.same([resourceMetadataUrl?.href, scope, error], [`${url}${RESOURCE}`, asked, undefined], vendor)
    for (const target of [url, `${url}/mcp`]) {
      for (const options of [{ resourceMetadataUrl }, {}]) {
        const metadata = await discoverOAuthProtectedResourceMetadata(target, options)
        const client = {} as Parameters<typeof selectResourceURL>[1]
        t.equal((await selectResourceURL(target, client, metadata))?.href, `${url}/`, `${vendor}: ${target} is ours`)
        const server = await discoverAuthorizationServerMetadata(metadata.authorization_servers![0]!)
        partial(t, server, { issuer: idp.issuer, token_endpoint: /^http/, registration_endpoint: /^http/ }, vendor)
      }
    }
    const led = (await (await fetch(`${url}${SERVER}`)).json()) as { issuer: string }
    t.equal(led.issuer, idp.issuer, `${vendor}: a client of March 2025 that follows redirects`)
    t.equal(
      await discoverAuthorizationServerMetadata(url),
      undefined,
      `${vendor}: and one that does not goes on without`,
    )
  }
})

t.test('Authorization headers over a raw socket', async (t) => {
  const { app, good, handled } = await door(t)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as { port: number }
  const post = (...lines: string[]) =>
    converse(
      port,
      `POST /secured HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`,
    )
  const status = async (...lines: string[]) => Number((await post(...lines)).split(' ')[1])

  t.equal(await status(`Authorization: Bearer ${good}`), 200)
  t.equal(await status(`authorization:   Bearer ${good}   `), 200, 'blanks around a value are no part of it')
  t.equal(await status(`Authorization: Bearer ${good}`, `Authorization: Bearer ${good}`), 401, 'two headers')
  t.equal(await status(`Authorization: Bearer ${good}`, 'AUTHORIZATION: Basic abc'), 401, 'of two schemes')
  t.equal(await status('Authorization: Basic abc', `Authorization: Bearer ${good}`), 401, 'in either order')
  t.equal(await status(`Authorization: Bearer ${good}\u0000`), 400, 'NUL')
  t.equal(await status(`Authorization: Bearer ${good}\u0080`), 401, 'a byte beyond ASCII')
  t.equal(await status(`Authorization: Bearer ${'a'.repeat(17_000)}`), 431, 'more than 16 KiB')
  t.equal(handled.count, 2)
})

t.test('does not read a body sent without a token', async (t) => {
  const { app, handled } = await door(t)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as { port: number }
  const head = 'POST /secured HTTP/1.1\r\nHost: x\r\nX-Request-Id: large-1\r\nContent-Type: application/json\r\n'
  for (const length of ['Content-Length: 10485760', 'Transfer-Encoding: chunked']) {
    const answer = await converse(port, `${head}${length}\r\n\r\n`, (text) => text.includes('unauthorized'))
    t.match(answer, /^HTTP\/1\.1 401 /, `${length}: answered before the body`)
    t.match(answer.toLowerCase(), /\r\nx-request-id: large-1\r\n/)
    t.match(answer.toLowerCase(), /\r\ncache-control: no-store\r\n/)
    t.match(answer.toLowerCase(), /\r\nx-content-type-options: nosniff\r\n/)
  }
  const junk = await app.inject({
    method: 'POST',
    url: '/secured',
    headers: { 'content-type': 'x/y' },
    payload: 'x'.repeat(2_000_000),
  })
  t.equal(junk.statusCode, 401, 'neither its type nor its size is looked at')
  t.equal(handled.count, 0)
})

t.test('every refusal carries a request id', async (t) => {
  const { send, refusals } = await door(t)
  const given = await send('Bearer x', { headers: { 'x-request-id': 'proxy-7' } })
  t.equal(given.headers['x-request-id'], 'proxy-7')
  const made = await send('Bearer x', { headers: { 'x-request-id': 'a b' } })
  t.match(made.headers['x-request-id'], /^[0-9a-f-]{36}$/)
  t.same(
    refusals().map(({ id }) => id),
    ['proxy-7', made.headers['x-request-id']],
  )
})

t.test('limits refused tokens per address', async (t) => {
  const { bearer, send, bad, old, good, refusals } = await door(t, { refused: 3 })
  const from = (remoteAddress: string, headers = {}) => ({ remoteAddress, headers })
  const statuses = async (times: number, more: object) => {
    const seen: number[] = []
    for (let time = 0; time < times; time++) seen.push((await bearer(await bad(String(time)), more)).statusCode)
    return seen
  }

  for (let time = 0; time < 5; time++)
    t.equal((await bearer(await old(), from('203.0.113.7'))).statusCode, 401, 'tokens that were good once do not count')
  t.same(await statuses(5, from('203.0.113.7')), [401, 401, 401, 429, 429])
  const limited = await bearer(await bad(), from('203.0.113.7'))
  partial(t, limited.json(), { error: 'rate_limited', request_id: String, retry_after: Number })
  const wait = Number(limited.headers['retry-after'])
  t.ok(wait >= 1 && wait <= 60, `Retry-After: ${wait}`)
  t.match(
    limited.headers['www-authenticate'],
    /^Bearer resource_metadata=/,
    'the way to a good one is shown all the same',
  )
  t.equal(refusals().length, 11, 'each has its line in the log all the same')

  t.equal((await bearer(good, from('203.0.113.7'))).statusCode, 200, 'good tokens from there go on')
  t.equal((await send(undefined, from('203.0.113.7'))).statusCode, 401, 'and who brings none is told where to log in')
  t.same(await statuses(2, from('203.0.113.8')), [401, 401], 'another address has its own count')
  t.same(
    await statuses(2, from('203.0.113.7', { 'x-forwarded-for': '198.51.100.1' })),
    [429, 429],
    'by the socket, whatever a header says',
  )

  t.same(await statuses(2, from('2001:db8:1:2::a')), [401, 401])
  t.same(await statuses(2, from('2001:db8:1:2:ffff:ffff:ffff:ffff')), [401, 429], 'one /64 counts as one')
  t.same(await statuses(1, from('2001:db8:1:3::a')), [401], 'another as another')
  t.same(await statuses(1, from('2001:db8::2:0:0:0:a')), [401])
  t.same(await statuses(2, from('::ffff:203.0.113.8')), [401, 429], 'an IPv4 address is the same in IPv6 clothes')
  t.same(await statuses(4, from('fe80::1%eth0')), [401, 401, 401, 429])
  t.same(await statuses(1, from('::1')), [401])

  const missing: number[] = []
  for (let time = 0; time < 10; time++) missing.push((await send(undefined, from('203.0.113.9'))).statusCode)
  t.same(new Set(missing), new Set([401]), 'no token is no refused token')

  const unlimited = await door(t, { refused: 0 })
  for (let time = 0; time < 100; time++) await unlimited.bearer('x', from('203.0.113.7'))
  t.equal((await unlimited.bearer('x', from('203.0.113.7'))).statusCode, 401, '0 is no limit')
})

t.test('what the plugin exposes to others', async (t) => {
  const { good, bad, oauth } = await door(t)
  const seen: Record<string, unknown> = {}
  const open: AuthAppOptions['open'] = (app) =>
    app.get('/open', async (request, reply) => {
      seen.identity = request.identity
      seen.bearer = app.readBearer(request)
      seen.challenge = app.challenge()
      seen.verified = await app.verifyToken(good, request)
      seen.refused = await app.verifyToken(await bad(), request).catch((error: unknown) => error)
      seen.authenticated = await app.authenticate(request, reply)
      return {}
    })
  const { app: other } = await authApp(t, oauth, { open })
  const answer = await other.inject({ url: '/open', headers: { authorization: `Bearer ${good}` } })
  t.equal(answer.statusCode, 200)
  const identity = { iss: oauth.issuer, sub: 'alice' }
  partial(t, seen, {
    identity: null,
    bearer: good,
    verified: identity,
    authenticated: identity,
    refused: { name: 'ToolError', code: 'unauthorized', details: { reason: 'signature mismatch' } },
  })
  const { groups } = seen.verified as { groups: string[] }
  t.throws(() => groups.push('admins'), 'who is remembered cannot be given groups')
  t.same(parseChallenge(String(seen.challenge)).parameters[0], ['resource_metadata', METADATA_URL])
  t.equal((await other.inject({ url: '/open', headers: { authorization: 'Bearer a b' } })).json().error, 'unauthorized')
  t.equal((await other.inject('/open')).statusCode, 401)
})
