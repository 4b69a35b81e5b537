/** The login of the browser: what is asked of the provider, and every answer that must not let anyone in (D17, D46). */
import type { LightMyRequestResponse } from 'fastify'
import Database from 'libsql'
import t, { type Test } from 'tap'
import { createBrowserLogin } from '../../plugins/pages/login/browser-login.js'
import type { PerUserConfig } from '../../schemas/config.js'
import { contains, partial } from '../partial.js'
import { GROUP_OF, PUBLIC_URL, startService } from './service.js'
import type { Fault, Person } from './pretend-provider.js'
import type { Visitor } from './visitor.js'
import { ON_FILE_ONLY } from '../contract/authenticated-service.js'

type Service = Awaited<ReturnType<typeof startService>>

/** What a request to the token endpoint has in its header Authorization. */
const credentialsOf = (request?: { authorization: string | undefined }) =>
  Buffer.from(request!.authorization!.replace('Basic ', ''), 'base64').toString()

const BOTH_METHODS = { token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'] }

/** Where the requests to the token endpoint since the last call had the secret. */
const methodsOf = ({ provider }: Service) =>
  provider.tokenRequests.splice(0).map(({ authorization }) => (authorization === undefined ? 'post' : 'basic'))

const refuseClient: Fault = (response) =>
  response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}')

/** From the login to the page after the callback; `change` may tamper with what the provider sends back. */
async function logIn(
  { visitor, provider }: Service,
  {
    person,
    change,
    browser = visitor(),
  }: { person?: Person; change?: (query: URLSearchParams) => void; browser?: Visitor } = {},
): Promise<LightMyRequestResponse & { browser: Visitor }> {
  const { headers } = await browser.get('/setup/login')
  const query = provider.comeBack(headers.location as string, person)
  change?.(query)
  return Object.assign(await browser.get(`/setup/callback?${query.toString()}`), { browser })
}

let shared: ReturnType<typeof startService> | undefined
/** One service for the cases that change nothing of the provider that others would notice. */
const sharedService = () => (shared ??= startService(t))

const isLoggedIn = async (browser: Visitor) => (await browser.get('/setup')).statusCode === 200

t.test('the authorization request', async (t) => {
  t.test('of a confidential client', async (t) => {
    const service = await sharedService()
    const { headers } = await service.visitor().get('/setup/login')
    const url = new URL(headers.location as string)
    t.equal(
      `${url.origin}${url.pathname}`,
      `${service.provider.issuer}/authorize`,
      'at the endpoint of its discovery document',
    )
    const random = /^[\w-]{43}$/
    partial(t, Object.fromEntries(url.searchParams), {
      response_type: 'code',
      client_id: 'setup-page',
      redirect_uri: `${PUBLIC_URL}/setup/callback`,
      scope: 'openid svc-mcp.use',
      resource: service.oauth.audience,
      audience: service.oauth.audience,
      state: random,
      nonce: random,
      code_challenge: random,
      code_challenge_method: 'S256',
    })
    const done = await logIn(service)
    t.equal(done.statusCode, 302)
    t.equal(done.headers.location, '/setup')
    t.ok(await isLoggedIn(done.browser))
    const [request] = service.provider.tokenRequests
    partial(t, request!.form, {
      grant_type: 'authorization_code',
      redirect_uri: `${PUBLIC_URL}/setup/callback`,
      resource: service.oauth.audience,
      code_verifier: random,
    })
    t.equal(credentialsOf(request), 'setup-page:client-secret', 'as it is: not every provider decodes it')
    t.equal(request!.form.client_secret, undefined)
  })

  t.test('with what a header cannot carry as it is', async (t) => {
    const service = await startService(t, { login: { clientId: 'setup-page', clientSecret: 'a-b_c.d*e:f g%h+ü~' } })
    t.equal((await logIn(service)).statusCode, 302)
    t.equal(credentialsOf(service.provider.tokenRequests[0]), 'setup-page:a-b_c.d*e%3Af+g%25h%2B%C3%BC%7E')
  })

  t.test('of a public client', async (t) => {
    const service = await startService(t, { login: { clientId: 'setup-page' } })
    t.equal((await logIn(service)).statusCode, 302)
    const [request] = service.provider.tokenRequests
    partial(t, request, { form: { client_id: 'setup-page', code_verifier: /./ }, authorization: undefined })
  })

  t.test('where the provider takes the secret in the body, too', async (t) => {
    const service = await startService(t)
    service.provider.document = BOTH_METHODS
    t.equal((await logIn(service)).statusCode, 302)
    t.same(
      service.provider.tokenRequests.map(({ form, authorization }) => [form.client_secret, authorization]),
      [['client-secret', undefined]],
    )
  })

  t.test('where the provider takes the secret of this client only in the header', async (t) => {
    const service = await startService(t)
    const { provider } = service
    Object.assign(provider, { document: BOTH_METHODS, takes: 'client_secret_basic' })
    t.equal((await logIn(service)).statusCode, 302)
    t.same(methodsOf(service), ['post', 'basic'])
    t.equal((await logIn(service)).statusCode, 302)
    t.same(methodsOf(service), ['basic'], 'which is remembered')
    provider.takes = 'client_secret_post'
    t.equal((await logIn(service)).statusCode, 302)
    t.same(methodsOf(service), ['basic', 'post'], 'but not for ever')
  })

  t.test('where the provider refuses the secret once, and the other way fails otherwise', async (t) => {
    const service = await startService(t)
    const { provider } = service
    provider.document = BOTH_METHODS
    const failures: Record<string, Fault> = {
      'a malformed request': (response) =>
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_request"}'),
      'too many, as JSON': (response) =>
        response.writeHead(429, { 'content-type': 'application/json' }).end('{"error":"slow_down"}'),
      'too many, as a page': (response) => response.writeHead(429, { 'content-type': 'text/html' }).end('<h1>Slow'),
      'a page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>'),
      'a broken connection': (response) => response.socket?.destroy(),
    }
    for (const [what, failure] of Object.entries(failures)) {
      provider.faults.token = (response) => {
        provider.faults.token = failure
        refuseClient(response)
      }
      contains(
        t,
        (await logIn(service)).body,
        'refused the client with which this server logs people in (invalid_client)',
      )
      t.same(methodsOf(service), ['post', 'basic'], what)
      delete provider.faults.token
      t.equal((await logIn(service)).statusCode, 302, 'the next login works')
      t.same(methodsOf(service), ['post'], 'in the first way')
    }
  })

  t.test('where the provider accepts the client in the other way, but not the login', async (t) => {
    const logins: Record<string, (service: Service) => ReturnType<typeof logIn>> = {
      'was already used or took too long': (service) =>
        logIn(service, { change: (query) => query.set('code', 'guessed') }),
      'answer does not belong to this login': (service) => {
        service.provider.idToken = { nonce: 'other' }
        return logIn(service)
      },
    }
    for (const [what, logInBadly] of Object.entries(logins)) {
      const service = await startService(t)
      Object.assign(service.provider, { document: BOTH_METHODS, takes: 'client_secret_basic' })
      contains(t, (await logInBadly(service)).body, what)
      t.same(methodsOf(service), ['post', 'basic'])
      service.provider.idToken = {}
      t.equal((await logIn(service)).statusCode, 302)
      t.same(methodsOf(service), ['basic'], 'the way is remembered')
    }
  })

  t.test('where the provider refuses the secret in both ways', async (t) => {
    const service = await startService(t)
    const { provider, clock } = service
    Object.assign(provider, { document: BOTH_METHODS, faults: { token: refuseClient } })
    for (const expected of [['post', 'basic'], ['post'], ['basic'], ['post']]) {
      contains(
        t,
        (await logIn(service)).body,
        'refused the client with which this server logs people in (invalid_client)',
      )
      t.same(methodsOf(service), expected)
    }
    clock.offset += 60_000
    await logIn(service)
    t.same(methodsOf(service), ['basic', 'post'], 'a minute later')
    Object.assign(provider, { faults: {}, takes: 'client_secret_post' })
    t.same([(await logIn(service)).statusCode, (await logIn(service)).statusCode], [403, 302], 'it heals by itself')
    t.same(methodsOf(service), ['basic', 'post'])
  })

  t.test('for an audience that is not a URI', async (t) => {
    const { visitor } = await startService(t, { oauth: { audience: '7d1c-client-id' } })
    const asked = new URL((await visitor().get('/setup/login')).headers.location as string).searchParams
    t.equal(asked.get('resource'), PUBLIC_URL)
    t.equal(asked.get('audience'), '7d1c-client-id')
  })

  t.test('for a scope that names its API', async (t) => {
    const requestedScope = 'api://svc-mcp/svc-mcp.use'
    const service = await startService(t, { oauth: { audience: '7d1c-client-id', requestedScope } })
    const asked = new URL((await service.visitor().get('/setup/login')).headers.location as string).searchParams
    t.equal(asked.get('scope'), `openid ${requestedScope}`)
    t.equal(asked.get('resource'), null, 'which would have to be the same (Entra ID)')
    await logIn(service)
    t.notOk('resource' in service.provider.tokenRequests[0]!.form)
    const uri = await startService(t, { oauth: { requestedScope } })
    const { headers } = await uri.visitor().get('/setup/login')
    t.equal(new URL(headers.location as string).searchParams.get('resource'), uri.oauth.audience)
  })

  t.test('for several scopes', async (t) => {
    const service = await startService(t, { oauth: { requestedScope: 'openid svc-mcp.use profile offline_access' } })
    const asked = new URL((await service.visitor().get('/setup/login')).headers.location as string).searchParams
    t.equal(asked.get('scope'), 'openid svc-mcp.use profile', 'each once, and none for what a login does not need')
    const requestedScope = 'openid api://svc-mcp/svc-mcp.use'
    const { visitor } = await startService(t, { oauth: { audience: '7d1c-client-id', requestedScope } })
    const { headers } = await visitor().get('/setup/login')
    t.equal(new URL(headers.location as string).searchParams.get('resource'), null)
  })

  t.test('for names, where the provider has them', async (t) => {
    const service = await startService(t)
    service.provider.document = { scopes_supported: ['openid', 'profile', 'email'] }
    const asked = new URL((await service.visitor().get('/setup/login')).headers.location as string).searchParams
    t.equal(asked.get('scope'), 'openid profile svc-mcp.use')
  })

  t.test('to log in as someone else', async (t) => {
    const { visitor } = await sharedService()
    const promptOf = async (path: string) =>
      new URL((await visitor().get(path)).headers.location as string).searchParams.get('prompt')
    t.equal(await promptOf('/setup/login?again=1'), 'login')
    t.equal(await promptOf('/setup/login?again=1&again=1'), null)
    t.equal(await promptOf('/setup/login'), null)
  })
})

t.test('refuses bad answers of the provider', async (t) => {
  const service = await startService(t)
  const { provider, log } = service
  const expectRefusal = async (what: string, answer: LightMyRequestResponse & { browser: Visitor }, status = 403) => {
    t.equal(answer.statusCode, status, what)
    contains(t, answer.headers['content-type'], 'text/html')
    t.match(answer.headers['content-security-policy'], /^default-src 'none'; style-src 'sha256-/)
    t.match(answer.body, /<h1>[^]*request <code>/)
    t.notOk(await isLoggedIn(answer.browser), 'nobody is in')
  }

  const tampered: Record<string, (query: URLSearchParams) => void> = {
    'no state': (query) => query.delete('state'),
    'another state': (query) => query.set('state', 'x'.repeat(43)),
    'two states': (query) => query.append('state', 'x'),
    'no code': (query) => query.delete('code'),
    'another code': (query) => query.set('code', 'guessed'),
    'two codes': (query) => query.append('code', 'x'),
    'of another issuer (RFC 9207)': (query) => query.set('iss', 'https://other.example'),
    'an ID token in the URL': (query) => query.set('id_token', 'x'),
    'a packed response': (query) => query.set('response', 'x.y.z'),
  }
  for (const [what, change] of Object.entries(tampered)) await expectRefusal(what, await logIn(service, { change }))

  const refusals = [
    'access_denied',
    'invalid_scope',
    'login_required',
    '<script>alert(1)</script>',
    '"><img src=x>',
    '',
  ]
  for (const error of refusals) {
    const answer = await logIn(service, {
      change(query) {
        query.delete('code')
        query.set('error', error)
        query.set('error_description', '<script>alert(2)</script> QUERY-CANARY')
        query.set('error_uri', 'https://evil.example/QUERY-CANARY')
      },
    })
    await expectRefusal(`error ${error}`, answer)
    t.notMatch(answer.body, /alert|<img|QUERY-CANARY|evil\.example/, 'nothing of the query is said again')
  }
  for (const error of ['unauthorized_client', 'invalid_client']) {
    const answer = await logIn(service, { change: (query) => query.set('error', error) })
    await expectRefusal(error, answer)
    contains(t, answer.body, `The answer that came back names ${error}: `)
    contains(t, answer.body, 'If every login ends like this, the operator must mend it. MCP_OAUTH_CLIENT_ID and ')
    partial(
      t,
      log.findLast(({ msg }) => msg === 'login failed')!,
      { reason: error, remedy: /^If every login .* MCP_OAUTH_CLIENT_ID and / },
    )
  }
  for (const error of ['server_error', 'temporarily_unavailable']) {
    const answer = await logIn(service, { change: (query) => query.set('error', error) })
    await expectRefusal(error, answer, 503)
    t.match(answer.headers['retry-after'], /^[1-9]/)
  }

  const badTokens: Record<string, Person> = {
    'for another audience': { claims: { aud: 'https://other.example' } },
    'of another issuer': { claims: { iss: 'https://other.example' } },
    'without the scope': { claims: { scope: 'openid' } },
    'that is expired': { claims: { exp: Math.floor(Date.now() / 1000) - 60 } },
    'for nobody': { claims: { sub: undefined } },
  }
  for (const [what, person] of Object.entries(badTokens)) {
    const answer = await logIn(service, { person })
    await expectRefusal(`an access token ${what}`, answer)
    t.match(answer.body, /this server does not accept the access token[^]*Tell the operator: /)
  }

  const answers: Record<string, Partial<Pick<Service['provider'], 'answer' | 'idToken'>>> = {
    'an opaque access token': { answer: { access_token: 'TOKEN-CANARY-opaque' } },
    'no access token': { answer: { access_token: undefined } },
    'an ID token for the access token': { answer: { access_token: 'eyJ.eyJ.x' } },
    'no ID token': { answer: { id_token: undefined } },
    'an ID token of another login': { idToken: { nonce: 'other' } },
    'an ID token without nonce': { idToken: { nonce: undefined } },
    'an ID token for another client': { idToken: { aud: 'other-client' } },
    'an ID token of another issuer': { idToken: { iss: 'https://other.example' } },
    'an ID token that is expired': { idToken: { exp: 1000 } },
  }
  for (const [what, change] of Object.entries(answers)) {
    Object.assign(provider, change)
    await expectRefusal(what, await logIn(service))
    Object.assign(provider, { answer: {}, idToken: {} })
  }
  t.equal((await logIn(service)).statusCode, 302, 'a good one still does')

  const written = JSON.stringify(log)
  for (const { form, authorization } of provider.tokenRequests) {
    for (const secret of [form.code, form.code_verifier, authorization]) t.notOk(written.includes(secret!))
  }
  t.notMatch(written, /TOKEN-CANARY|QUERY-CANARY|client-secret|eyJ/, 'codes, tokens and queries are in no log')
  t.equal(log.filter(({ msg }) => msg === 'login failed').length, 33, 'but every failure is')
})

t.test('a client that the provider refuses is told as that', async (t) => {
  const service = await startService(t)
  const { provider, log } = service
  const json = { 'content-type': 'application/json' }
  const challenge = { 'www-authenticate': 'Basic realm="provider CANARY", error="CANARY"' }
  const refusals: Record<string, [status: number, headers: Record<string, string>, body: string, reason?: string]> = {
    'as RFC 6749 has it': [401, { ...json, ...challenge }, '{"error":"invalid_client"}'],
    'with 400': [400, json, '{"error":"invalid_client","error_description":"<b>CANARY</b>"}'],
    'with 400 and a challenge': [400, { ...json, ...challenge }, '{"error":"invalid_client"}'],
    'with a challenge that nobody can read': [
      401,
      { ...json, 'www-authenticate': '=,"' },
      '{"error":"invalid_client"}',
    ],
    'with a challenge alone': [401, challenge, ''],
    'with a page': [401, { 'content-type': 'text/html', ...challenge }, '<h1>CANARY</h1>'],
    'in the words of Keycloak': [401, json, '{"error":"unauthorized_client"}', 'unauthorized_client'],
    'in the words of Auth0': [401, json, '{"error":"access_denied","error_description":"Unauthorized"}'],
  }
  for (const [what, [status, headers, body, reason = 'invalid_client']] of Object.entries(refusals)) {
    provider.faults.token = (response) => response.writeHead(status, headers).end(body)
    const answer = await logIn(service)
    t.equal(answer.statusCode, 403, what)
    contains(t, answer.body, `refused the client with which this server logs people in (${reason}).`)
    contains(t, answer.body, 'MCP_OAUTH_CLIENT_ID and MCP_OAUTH_CLIENT_SECRET must be those of one client')
    t.notMatch(answer.body, /CANARY|client-secret/)
    partial(
      t,
      log.findLast(({ msg }) => msg === 'login failed')!,
      {
        error: 'login_failed',
        reason,
        remedy: /^MCP_OAUTH_CLIENT_ID and MCP_OAUTH_CLIENT_SECRET must be those of one client/,
      },
    )
    t.notOk(await isLoggedIn(answer.browser))
  }
  for (const status of [400, 401]) {
    provider.faults.token = (response) =>
      response.writeHead(status, { ...json, ...challenge }).end('{"error":"invalid_grant"}')
    contains(t, (await logIn(service)).body, 'This login was already used or took too long.', String(status))
  }
  t.notMatch(JSON.stringify(log), /CANARY|client-secret/)
})

t.test('a login belongs to the browser that started it', async (t) => {
  const service = await startService(t)
  const { visitor, provider, clock } = service

  const mallory = visitor()
  const { headers } = await mallory.get('/setup/login')
  const query = provider.comeBack(headers.location as string, { sub: 'mallory' }).toString()
  const victim = visitor()
  t.equal(
    (await victim.get(`/setup/callback?${query}`)).statusCode,
    403,
    "another one cannot end it: nobody works in an attacker's account",
  )
  await victim.get('/setup/login')
  t.equal((await victim.get(`/setup/callback?${query}`)).statusCode, 403, 'not even while logging in')
  t.notOk(await isLoggedIn(victim))

  const before = mallory.copy()
  t.equal((await mallory.get(`/setup/callback?${query}`)).statusCode, 302)
  t.equal((await mallory.get(`/setup/callback?${query}`)).statusCode, 403, 'it ends once')
  const answer = await before.get(`/setup/callback?${query}`)
  t.equal(answer.statusCode, 403, 'with an older cookie as well: the code is used')

  const guessing = visitor()
  const once = (await guessing.get('/setup/login')).headers.location as string
  const right = provider.comeBack(once)
  await guessing.get(`/setup/callback?code=guessed&state=${right.get('state')}`)
  t.equal((await guessing.get(`/setup/callback?${right.toString()}`)).statusCode, 403, 'and is tried once')

  const slow = visitor()
  const begun = (await slow.get('/setup/login')).headers.location as string
  clock.offset += 10 * 60_000
  const late = await slow.get(`/setup/callback?${provider.comeBack(begun).toString()}`)
  t.equal(late.statusCode, 403, 'it ends within 10 minutes')
  t.match(late.body, /took too long[^]*href="\/setup"/)

  const tabs = visitor()
  const urls = []
  for (let i = 0; i < 4; i++) urls.push((await tabs.get('/setup/login')).headers.location)
  const oldest = await tabs.get(`/setup/callback?${provider.comeBack(urls[0]!).toString()}`)
  t.equal(oldest.statusCode, 403, 'of four tabs the oldest is forgotten')
  t.equal(
    (await tabs.get(`/setup/callback?${provider.comeBack(urls[1]!).toString()}`)).statusCode,
    302,
    'the others work',
  )
})

t.test('a login that cannot be recorded as used is not lost', ON_FILE_ONLY, async (t) => {
  const service = await startService(t)
  const { visitor, provider, log, config } = service
  const file = new Database((config as PerUserConfig).keystore.path)
  t.teardown(() => file.close())
  const browser = visitor()
  const query = provider.comeBack((await browser.get('/setup/login')).headers.location as string).toString()

  const refuse = (table: string) =>
    file.exec(`CREATE TRIGGER refuse_${table} BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  for (const table of ['used_tokens', 'notes']) refuse(table)
  for (let n = 0; n < 2; n++) {
    const answer = await browser.get(`/setup/callback?${query}`)
    t.equal(answer.statusCode, 503)
    t.match(answer.headers['retry-after'], /^[1-9]/)
    t.match(answer.body, /Nobody can log in right now[^]*reload this page[^]*login_unavailable/)
  }
  t.same(provider.tokenRequests, [], 'the provider is not asked')
  partial(
    t,
    log.filter(({ msg }) => msg === 'login failed'),
    [{ error: 'login_unavailable', reason: /^SQLITE_/ }, {}],
  )
  file.exec('DROP TRIGGER refuse_notes')
  service.clock.offset += 1000
  const lost = await browser.get(`/setup/callback?${query}`)
  t.equal(lost.statusCode, 503, 'where only the record itself fails, nobody is logged in')
  t.match(lost.body, /Nobody can log in right now[^]*Log in again in a minute[^]*login_unavailable/)
  t.notOk(await isLoggedIn(browser))
  file.exec('DROP TRIGGER refuse_used_tokens')
  const again = provider.comeBack((await browser.get('/setup/login')).headers.location as string).toString()
  t.equal((await browser.get(`/setup/callback?${again}`)).statusCode, 302)
  t.ok(await isLoggedIn(browser))
})

t.test('a provider that does not answer', async (t) => {
  const faults: Record<string, Fault> = {
    'an error': (response) => response.writeHead(500, { 'content-type': 'application/json' }).end('{}'),
    'a page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>'),
    'half an answer': (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"issuer":'),
    'a redirect': (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    'a broken connection': (response) => response.socket?.destroy(),
    'too much': (response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(`{"x":"${'x'.repeat(300_000)}"}`),
  }
  const expectUnavailable = (t: Test, what: string, answer: LightMyRequestResponse) => {
    t.equal(answer.statusCode, 503, what)
    t.match(answer.headers['retry-after'], /^[1-9]/)
    t.match(answer.body, /Nobody can log in right now[^]*login_unavailable/)
  }

  t.test('with its endpoints', async (t) => {
    const { visitor, provider, clock } = await startService(t)
    for (const [what, fault] of Object.entries(faults)) {
      provider.faults.discovery = fault
      expectUnavailable(t, what, await visitor().get('/setup/login'))
      const asked = provider.discoveries
      expectUnavailable(t, 'the next one', await visitor().get('/setup/login'))
      t.equal(provider.discoveries, asked, 'does not ask at once')
      clock.offset += 5_000
    }
    delete provider.faults.discovery
    const answers = await Promise.all(Array.from({ length: 10 }, () => visitor().get('/setup/login')))
    t.ok(
      answers.every(({ statusCode }) => statusCode === 302),
      'it heals by itself',
    )
    t.equal(provider.discoveries, Object.keys(faults).length + 1, 'and ten people ask once')

    provider.faults.discovery = faults['an error']
    clock.offset += 61 * 60_000
    t.equal((await visitor().get('/setup/login')).statusCode, 302, 'what is known serves while the provider is down')
    t.equal((await visitor().get('/setup', { accept: 'application/json' })).statusCode, 401, 'programs notice nothing')
  })

  t.test('with a token', async (t) => {
    const service = await startService(t)
    for (const [what, fault] of Object.entries(faults)) {
      service.provider.faults.token = fault
      const answer = await logIn(service)
      expectUnavailable(t, what, answer)
      t.notOk(await isLoggedIn(answer.browser))
    }
  })

  t.test('in time', async (t) => {
    const { visitor, provider } = await startService(t)
    provider.faults.discovery = () => {}
    expectUnavailable(t, 'at all', await visitor().get('/setup/login'))
  })
})

t.test('a discovery document that cannot be trusted', async (t) => {
  const { provider, visitor, clock } = await startService(t)
  const documents: Record<string, Record<string, unknown>> = {
    'another issuer': { issuer: 'https://other.example' },
    'the issuer in another spelling': { issuer: provider.issuer.replace('127.0.0.1', '127.1') },
    'the issuer with a slash': { issuer: `${provider.issuer}/` },
    'a login page on this machine': { authorization_endpoint: 'http://localhost/authorize' },
    'a login page without TLS': { authorization_endpoint: 'http://idp.example/authorize' },
    'a script for a login page': { authorization_endpoint: 'javascript:alert(1)' },
    'a token endpoint without TLS': { token_endpoint: 'http://idp.example/token' },
    'no token endpoint': { token_endpoint: undefined },
    'no login page': { authorization_endpoint: undefined },
  }
  for (const [what, document] of Object.entries(documents)) {
    provider.document = document
    const answer = await visitor().get('/setup/login')
    t.equal(answer.statusCode, 503, what)
    contains(t, answer.body, 'login_unavailable')
    clock.offset += 5_000
  }
  provider.document = {}
  provider.faults.discovery = (response) => {
    delete provider.faults.discovery
    response.writeHead(302, { location: `${provider.issuer}/.well-known/openid-configuration` }).end()
  }
  t.equal((await visitor().get('/setup/login')).statusCode, 503, 'one behind a redirect')
})

t.test('all endpoints of a TLS provider must use TLS', async (t) => {
  const issuer = 'https://idp.example.test/tenant'
  const loginWith = (document: object) =>
    createBrowserLogin({
      issuer,
      clientId: 'setup-page',
      scope: 'svc-mcp.use',
      audience: PUBLIC_URL,
      publicUrl: PUBLIC_URL,
      home: '/setup',
      now: Date.now,
      fetch: () =>
        Promise.resolve(
          Response.json({
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            ...document,
          }),
        ),
    }).start({ isAnew: false })
  t.match((await loginWith({})).url, /^https:\/\/idp\.example\.test\/tenant\/authorize\?/)
  for (const endpoint of ['http://idp.example.test/x', 'http://127.0.0.1/x', 'data:,x', '//idp.example.test/x', '']) {
    for (const name of ['authorization_endpoint', 'token_endpoint']) {
      await t.rejects(loginWith({ [name]: endpoint }), { code: 'login_unavailable' }, `${name} ${endpoint}`)
    }
  }
})

t.test('without loaded keys a login is neither accepted nor refused', async (t) => {
  const service = await startService(t, { keysAreDown: true })
  const answer = await logIn(service)
  t.equal(answer.statusCode, 503)
  contains(t, answer.body, 'keys_unavailable')
  t.match(answer.headers['retry-after'], /^[1-9]/)
})

t.test('a role change takes effect at the next login', async (t) => {
  const service = await sharedService()
  const { browser } = await logIn(service, { person: { groups: [GROUP_OF.reader] } })
  contains(t, (await browser.get('/setup')).body, '>reader<')
  await logIn(service, { browser, person: { groups: [GROUP_OF.admin] } })
  contains(t, (await browser.get('/setup')).body, '>admin<')
})

t.test('the page calls people by their name, and says whose account it is', async (t) => {
  const service = await sharedService()
  const cases: [Record<string, unknown>, string, string][] = [
    [{ name: 'Alice Ahrens', email: 'a@example.com' }, 'Alice Ahrens', '<bdi>alice</bdi> · logged in at'],
    [{ name: ' ', preferred_username: 'alice@example.com' }, 'alice@example.com', '<bdi>alice</bdi> · logged in at'],
    [{ name: 7, email: 'a@example.com' }, 'a@example.com', '<bdi>alice</bdi> · logged in at'],
    [{ name: 'alice' }, 'alice', 'logged in at'],
    [{}, 'alice', 'logged in at'],
    [{ name: '<b>root\u202E</b>' }, '&#60;b&#62;root⟨U+202E⟩&#60;/b&#62;', '<bdi>alice</bdi> · logged in at'],
    [{ name: 'ä'.repeat(5000) }, `${'ä'.repeat(99)}…`, '<bdi>alice</bdi> · logged in at'],
  ]
  for (const [claims, name, account] of cases) {
    service.provider.idToken = claims
    const { body } = await (await service.loggedIn({ sub: 'alice' })).get('/setup')
    const who = /You are <b><bdi>([^]*?)<\/bdi><\/b>[^]*?<span class="hint"\s*>([^]*?)<bdi>http/.exec(body)!
    t.same([who[1], who[2]!.replace(/\s+/g, ' ').trim()], [name, account], JSON.stringify(claims).slice(0, 60))
  }
  service.provider.idToken = {}
})
