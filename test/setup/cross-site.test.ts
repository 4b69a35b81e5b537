/** Forms that are not ours (D46): every one that the page did not make for this very session is refused. */
import t from 'tap'
import { partial } from '../partial.js'
import { startService } from './service.js'
import { hiddenFields, type Visitor } from './visitor.js'

const tokenOf = async (visitor: Visitor) => hiddenFields((await visitor.get('/setup')).body, '/setup')._csrf!

t.test('the CSRF token belongs to one session', async (t) => {
  const { loggedIn, good, statusOf, refusals, log, audit } = await startService(t)
  const alice = await loggedIn({ sub: 'alice' })
  const mallory = await loggedIn({ sub: 'mallory' })
  const twin = await loggedIn({ sub: 'alice' })
  const own = await tokenOf(alice)
  const flipped = own.slice(0, -1) + (own.endsWith('A') ? 'B' : 'A')
  const tokens: Record<string, Record<string, string>> = {
    none: {},
    empty: { _csrf: '' },
    "another person's": { _csrf: await tokenOf(mallory) },
    'of the same person in another browser': { _csrf: await tokenOf(twin) },
    changed: { _csrf: flipped },
    cut: { _csrf: own.slice(0, 20) },
    'not one': { _csrf: '-' },
  }
  for (const path of ['/setup', '/setup/remove', '/setup/test', '/setup/logout']) {
    for (const [what, token] of Object.entries(tokens)) {
      const answer = await alice.post(path, { ...good, ...token })
      t.equal(answer.statusCode, 403, `${path} with a token ${what}`)
      t.match(answer.body, /This form has expired[^]*form_expired/)
    }
  }
  const inHeader = await alice.post('/setup', good, { 'csrf-token': own })
  t.equal(inHeader.statusCode, 403, 'a header is no field')
  const twice = await alice.post('/setup', `${new URLSearchParams(good).toString()}&_csrf=${own}&_csrf=${own}`)
  t.equal(twice.statusCode, 403, 'given twice')
  partial(t, await statusOf(), { registered: false }, 'nothing was stored')
  t.equal((await alice.post('/setup', { ...good, _csrf: own })).statusCode, 303, 'its own is taken')

  t.equal(refusals().length, 30)
  partial(t, refusals()[0], {
    phase: 'decision',
    decision: 'denied',
    reason: 'form_expired',
    route: '/setup',
    tool: 'register-pce-credentials',
    sub: 'alice',
    role: 'operator',
  })
  t.notOk(JSON.stringify([audit, log]).includes(good.api_secret))
})

t.test('refuses a form from another page', async (t) => {
  const { loggedIn, good, statusOf, refusals, log } = await startService(t)
  const alice = await loggedIn()
  const form = { ...good, _csrf: await tokenOf(alice) }
  const foreign: [string, Record<string, string>][] = [
    ['from another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['from a page without an origin', { origin: 'null', 'sec-fetch-site': 'cross-site' }],
    ['from another port of this machine', { origin: 'http://localhost:9999', 'sec-fetch-site': '' }],
    ['from our name without TLS', { origin: 'http://mcp.example.test', 'sec-fetch-site': '' }],
    ['from our name at another port', { origin: 'https://mcp.example.test:8443', 'sec-fetch-site': '' }],
    ['that the browser calls foreign', { 'sec-fetch-site': 'cross-site' }],
    ['from a neighbour', { 'sec-fetch-site': 'same-site', origin: '' }],
  ]
  for (const [what, headers] of foreign) {
    t.equal((await alice.post('/setup', form, headers)).statusCode, 403, what)
  }
  partial(t, await statusOf(), { registered: false })
  t.equal(log.filter(({ msg }) => msg === 'form refused').length, foreign.length, 'each is in the log')
  t.strictSame(
    refusals().map(({ reason, sub }) => [reason, sub]),
    Array(5).fill(['form_expired', 'alice']),
    'and those in the name of somebody, which the guard in front has let pass, in the audit log',
  )
  const passingTheProxy = { host: '127.0.0.1:8080', origin: 'http://127.0.0.1:8080' }
  const ours: Record<string, string>[] = [
    passingTheProxy,
    {},
    { 'sec-fetch-site': '' },
    { origin: '', 'sec-fetch-site': '' },
  ]
  for (const headers of ours) {
    t.equal((await alice.post('/setup', form, headers)).statusCode, 303, `ours with ${JSON.stringify(headers)}`)
  }
})

t.test('refuses the text/plain trick', async (t) => {
  const { loggedIn, good, statusOf } = await startService(t)
  const alice = await loggedIn()
  const body = new URLSearchParams({ ...good, _csrf: await tokenOf(alice) }).toString()
  t.equal((await alice.post('/setup', body, { 'content-type': 'text/plain' })).statusCode, 415)
  partial(t, await statusOf(), { registered: false })
})

t.test('a bearer token skips the CSRF check only without a cookie', async (t) => {
  const { visitor, provider, good, statusOf } = await startService(t)
  const authorization = `Bearer ${await provider.tokenFor({ sub: 'robot' })}`
  const program = visitor({ authorization })
  t.equal((await program.post('/setup', good)).statusCode, 303, 'without one')
  partial(t, await statusOf('robot'), { registered: true })
  t.equal((await program.post('/setup/remove', '')).statusCode, 303)

  const browserLike = visitor({ authorization })
  const token = await tokenOf(browserLike)
  t.equal((await browserLike.post('/setup', good)).statusCode, 403, 'with one, no token')
  const other = visitor({ authorization })
  t.equal((await browserLike.post('/setup', { ...good, _csrf: await tokenOf(other) })).statusCode, 403, "another's")
  partial(t, await statusOf('robot'), { registered: false })
  t.equal((await browserLike.post('/setup', { ...good, _csrf: token })).statusCode, 303, 'its own')

  const foreign = visitor({ authorization: `Bearer ${await provider.tokenFor({ sub: 'other-robot' })}` })
  for (const [name, value] of browserLike.cookies) foreign.cookies.set(name, value)
  t.equal(
    (await foreign.post('/setup', { ...good, _csrf: token })).statusCode,
    403,
    'the token belongs to the person, not only to the cookie',
  )
})

t.test('JSON clients get refusals as JSON', async (t) => {
  const { loggedIn, good } = await startService(t)
  const alice = await loggedIn()
  const answer = await alice.post('/setup', good, { accept: 'application/json' })
  t.equal(answer.statusCode, 403)
  partial(t, answer.json(), { error: 'form_expired', request_id: answer.headers['x-request-id'] })
})
