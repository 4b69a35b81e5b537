/** Who sees the page of /setup, what stands on it, and what never does (S7, D43, D46). */
import { createHash } from 'node:crypto'
import Database from 'libsql'
import t from 'tap'
import { ON_FILE_ONLY, startService as startAuthenticated } from '../contract/authenticated-service.js'
import type { PerUserConfig } from '../../schemas/config.js'
import { contains, partial } from '../partial.js'
import { GROUP_OF, PUBLIC_URL, startService } from './service.js'
import { hiddenFields } from './visitor.js'

const JSON_ONLY = { accept: 'application/json' }
const ANYTHING = { accept: '*/*' }

t.test('a visitor who is not logged in', async (t) => {
  const { visitor, good } = await startService(t)

  const browser = await visitor().get('/setup')
  t.equal(browser.statusCode, 302, 'a browser is sent to the login')
  t.equal(browser.headers.location, '/setup/login')

  for (const headers of [ANYTHING, JSON_ONLY, { accept: '' }, { accept: 'text/html;q=0, */*' }]) {
    const program = await visitor().get('/setup', headers)
    t.equal(program.statusCode, 401, `a program is not (${headers.accept})`)
    t.equal(
      program.headers['www-authenticate'],
      `Bearer resource_metadata="${PUBLIC_URL}/.well-known/oauth-protected-resource", scope="svc-mcp.use"`,
    )
    partial(t, program.json(), { error: 'unauthorized', request_id: program.headers['x-request-id'] })
  }

  const post = await visitor().post('/setup', good)
  t.equal(post.statusCode, 401, 'a form is not taken')
  t.match(post.headers['www-authenticate'], /^Bearer resource_metadata="/)
  t.match(post.body, /Please log in[^]*href="\/setup"/, 'and the page leads to the login')
})

t.test('without a browser login configured', async (t) => {
  const { visitor } = await startService(t, { login: null })
  const page = await visitor().get('/setup')
  t.equal(page.statusCode, 401)
  t.match(page.headers['www-authenticate'], /^Bearer resource_metadata="/)
  contains(t, page.headers['content-type'], 'text/html')
  t.match(page.body, /send an access token in the Authorization header/)
  t.notMatch(page.body, /href="\/setup/, 'the page leads nowhere')
  for (const path of ['/setup/login', '/setup/callback?code=1&state=2']) {
    t.equal((await visitor().get(path)).statusCode, 404, `there is no ${path}`)
  }
})

t.test('a bearer token', async (t) => {
  const { visitor, provider } = await startService(t)
  const bearer = async (claims: object = {}) => ({
    authorization: `Bearer ${await provider.tokenFor({ claims: { ...claims } })}`,
  })

  const page = await visitor().get('/setup', { ...(await bearer()), ...ANYTHING })
  t.equal(page.statusCode, 200, 'opens the page')
  contains(t, page.headers['content-type'], 'text/html')
  partial(t, hiddenFields(page.body, '/setup'), { _csrf: /^.{20,}$/ }, 'whose form carries a CSRF token')
  t.notMatch(page.body, /Log out/, 'there is no login to end')

  const refused = {
    'for somebody else': await bearer({ aud: 'https://other.example' }),
    expired: await bearer({ exp: Math.floor(Date.now() / 1000) - 60 }),
    'without the scope': await bearer({ scope: 'openid' }),
    'that is none': { authorization: 'Bearer x' },
    'of another scheme': { authorization: 'Basic YTpi' },
  }
  for (const [what, headers] of Object.entries(refused)) {
    const answer = await visitor().get('/setup', headers)
    t.equal(answer.statusCode, 401, `${what}: refused, not sent to the login`)
    t.match(answer.headers['www-authenticate'], /^Bearer resource_metadata=/)
    contains(t, answer.headers['content-type'], 'text/html')
  }
})

t.test('a bad bearer token does not fall back to the session', async (t) => {
  const { loggedIn } = await startService(t)
  const alice = await loggedIn()
  t.equal((await alice.get('/setup', { authorization: 'Bearer x' })).statusCode, 401)
  t.equal((await alice.get('/setup')).statusCode, 200, 'which goes on')
})

t.test('the page', async (t) => {
  const { loggedIn, provider } = await startService(t)
  const alice = await loggedIn({ sub: 'alice@example.com', groups: [GROUP_OF.admin, GROUP_OF.reader] })
  const { body, headers, statusCode } = await alice.get('/setup')
  t.equal(statusCode, 200)

  t.test('says whose credentials they are', async (t) => {
    for (const fact of ['alice@example.com', provider.issuer, 'admin']) t.ok(body.includes(`>${fact}<`), fact)
    t.match(body, /<span class="badge plain">None<\/span>/)
  })

  t.test('has a field for every argument of register-pce-credentials, with a label and a hint', async (t) => {
    const names = [...body.matchAll(/<(?:input|select)[^>]*?\sname="([^"]+)"/g)].map(([, name]) => name)
    t.strictSame(
      names.slice(0, 8),
      ['_csrf', 'pce_host', 'pce_port', 'pce_org_id', 'tls_verify', 'api_key', 'api_secret', 'label'],
      'in the first form of the page',
    )
    for (const id of ['pce-host', 'pce-port', 'pce-org-id', 'label', 'api-key', 'api-secret']) {
      t.ok(body.includes(`<label for="${id}">`), `a label for ${id}`)
      t.match(body, new RegExp(`id="${id}"[^>]*aria-describedby="${id}-hint"`))
      t.ok(body.includes(`id="${id}-hint"`))
    }
    t.match(body, /<form method="post" action="\/setup" autocomplete="off">/)
    t.match(body, /name="api_secret"\s+type="password"\s+autocomplete="new-password"/)
    t.match(body, /<input type="hidden" name="tls_verify" value="true"/, 'no choice that the operator has not allowed')
    t.same(
      [...body.matchAll(/<select[^>]*name="([^"]*)"/g)].map(([, name]) => name),
      ['pce_host'],
    )
  })

  t.test('loads nothing and runs no script', async (t) => {
    const style = /<style>([^]*?)<\/style>/.exec(body)![1]!
    const hash = createHash('sha256').update(style).digest('base64')
    t.equal(
      headers['content-security-policy'],
      `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
    )
    t.notMatch(body, /<script|\son[a-z]+=|javascript:|style="|https?:\/\/(?!127)[^"]*"/i)
    partial(t, headers, {
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'strict-transport-security': /^max-age=/,
      'x-request-id': /./,
    })
    t.match(body, /<meta name="referrer" content="same-origin"/, 'or forms would come with Origin: null')
  })
})

t.test('the certificate check can be turned off only if the operator allows it', async (t) => {
  const { loggedIn } = await startService(t, { allowInsecureTls: true })
  const { body } = await (await loggedIn()).get('/setup')
  t.match(body, /<select id="tls-verify"[^]*<option value="true" selected[^]*<option value="false"/)
})

t.test('tells a user without a role why nothing works', async (t) => {
  const { loggedIn, good } = await startService(t)
  const nobody = await loggedIn({ groups: ['strangers'] })
  const { body, statusCode } = await nobody.get('/setup')
  t.equal(statusCode, 200)
  t.match(body, /forbidden_no_role[^]*Your groups give you no role here[^]*Ask the operator to map one of your groups/)
  t.notMatch(body, /name="pce_host"/, 'there is no form')
  t.match(body, /Log out/)
  const token = hiddenFields(body, '/setup/logout')
  const forced = await nobody.post('/setup', { ...token, ...good })
  t.equal(forced.statusCode, 403, 'a form made by hand is refused by the role gate')
  t.match(forced.body, /Your groups give you no role here/)
})

t.test('tells a user whose groups do not fit into a token so, not that their groups are wrong', async (t) => {
  const { loggedIn } = await startService(t)
  const claims = { groups: undefined, _claim_names: { groups: 'src1' } }
  const { body } = await (await loggedIn({ claims })).get('/setup')
  t.match(body, /forbidden_no_role[^]*omits your groups because there are too many[^]*assign you an app role/)
  t.notMatch(body, /map one of your groups|Your groups give you no role/)
})

t.test('shows hostile names as text', async (t) => {
  const names = [
    '<img src=x onerror=alert(1)>',
    '"><svg onload=alert(1)>',
    '\'"&<>`=/',
    '</title><script>alert(1)</script>',
    '{iss}',
    '${iss} {{iss}} %s $& $1',
    '--><!--',
    'javascript:alert(1)',
    'x'.repeat(255),
  ]
  const { loggedIn, good } = await startService(t)
  for (const sub of names) {
    const someone = await loggedIn({ sub })
    t.equal((await someone.submit('/setup', { ...good, label: sub.slice(0, 100) })).statusCode, 303)
    const { body } = await someone.get('/setup')
    for (const shown of [sub, sub.slice(0, 100)]) {
      const escaped = shown.replace(/["&'<=>]/g, (char) => `&#${char.charCodeAt(0)};`)
      t.ok(body.includes(`<bdi>${escaped}</bdi>`), shown)
    }
    t.notMatch(body, /<img|<script|<svg onload|onerror=/, 'nothing of it is markup')
  }
})

t.test('names cannot look like other names', async (t) => {
  const { loggedIn } = await startService(t)
  const { body } = await (await loggedIn({ sub: 'alice\u202Emoc.elpmaxe\u200B' })).get('/setup')
  contains(t, body, '<bdi>alice⟨U+202E⟩moc.elpmaxe⟨U+200B⟩</bdi>')
})

t.test('under a path of the host', async (t) => {
  const { visitor, loggedIn, good } = await startService(t, { publicUrl: 'https://tools.example.test/pce-mcp' })
  t.equal((await visitor().get('/setup')).headers.location, '/pce-mcp/setup/login')
  const alice = await loggedIn()
  const { body } = await alice.get('/setup')
  t.match(body, /action="\/pce-mcp\/setup"/)
  const done = await alice.post('/setup', { ...hiddenFields(body, '/pce-mcp/setup'), ...good })
  t.equal(done.headers.location, '/pce-mcp/setup')
})

t.test('other methods', async (t) => {
  const { app, visitor } = await startService(t)
  const allowed = {
    '/setup': 'GET, HEAD, POST',
    '/setup/remove': 'POST',
    '/setup/test': 'POST',
    '/setup/logout': 'GET, HEAD, POST',
    '/setup/login': 'GET, HEAD',
    '/setup/callback': 'GET, HEAD',
  }
  for (const [url, methods] of Object.entries(allowed)) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
      if (methods.includes(method)) continue
      const answer = await app.inject({ method, url, headers: { host: 'mcp.example.test', ...JSON_ONLY } })
      t.equal(answer.statusCode, 405, `${method} ${url}`)
      t.equal(answer.headers.allow, methods)
      partial(t, answer.json(), { error: 'method_not_allowed' })
    }
  }
  const foreign = await visitor().get('/setup', { host: 'evil.example' })
  t.equal(foreign.statusCode, 403, 'the guard stands in front')
  t.match(foreign.headers['content-security-policy'], /^default-src 'none'; style-src 'sha256-/)
})

t.test('credentials that cannot be read', ON_FILE_ONLY, async (t) => {
  const { loggedIn, good, config } = await startService(t)
  const alice = await loggedIn()
  await alice.submit('/setup', good)
  await alice.get('/setup')
  const file = new Database((config as PerUserConfig).keystore.path)
  file.prepare('UPDATE credentials SET sealed = zeroblob(length(sealed))').run()
  file.close()

  const { body, statusCode } = await alice.get('/setup')
  t.equal(statusCode, 200)
  t.match(body, /credentials_unreadable[^]*Your stored PCE credentials cannot be read/)
  t.match(body, /name="pce_host"/, 'the form to register them again is there')
  t.equal((await alice.submit('/setup', good)).statusCode, 303)
  contains(t, (await alice.get('/setup')).body, 'The PCE accepted them')
})

t.test('in shared mode there is nothing at /setup', async (t) => {
  const { app, tokenOf } = await startAuthenticated(t, { mode: 'shared' })
  const authorization = `Bearer ${await tokenOf('alice')}`
  for (const path of ['/setup', '/setup/login', '/setup/callback', '/setup/logout', '/setup/remove', '/setup/test']) {
    for (const method of ['GET', 'POST'] as const) {
      const headers = { host: new URL(PUBLIC_URL).host, authorization }
      t.equal((await app.inject({ method, url: path, headers })).statusCode, 404, `${method} ${path}`)
    }
  }
})
