/** The session of the browser: its cookie, its end, and what an attacker may have planted (D46). */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { deriveSessionKey } from '../../plugins/pages/index.js'
import { contains, partial } from '../partial.js'
import { GROUP_OF, startService } from './service.js'
import { hiddenFields, type Visitor } from './visitor.js'

const COOKIE = '__Host-svc-mcp-setup'
const MINUTE = 60_000

const isLoggedIn = async (visitor: Visitor) => (await visitor.get('/setup')).statusCode === 200

t.test('the cookie', async (t) => {
  const { visitor, provider } = await startService(t)
  const browser = visitor()
  const started = await browser.get('/setup/login')
  const back = provider.comeBack(started.headers.location as string, {
    sub: 'sub-canary',
    groups: [GROUP_OF.operator, ...Array.from({ length: 500 }, (_, i) => `group-${i}`)],
  })
  const done = await browser.get(`/setup/callback?${back.toString()}`)
  for (const answer of [started, done]) {
    const cookies = [answer.headers['set-cookie']].flat()
    t.equal(cookies.length, 1)
    const [pair, ...attributes] = cookies[0]!.split('; ')
    t.ok(pair!.startsWith(`${COOKIE}=`))
    t.strictSame(attributes.sort(), ['HttpOnly', 'Max-Age=900', 'Path=/', 'SameSite=Lax', 'Secure'])
    t.ok(cookies[0]!.length < 4096, 'fits a browser, whatever groups somebody is in')
    const decoded = Buffer.from(decodeURIComponent(pair!.slice(COOKIE.length + 1)), 'base64').toString('latin1')
    t.notMatch(pair! + decoded, /sub-canary|g-operate/, 'and is of no use to a reader')
    // Three characters are anywhere in base64 by chance: a token is looked for where one begins.
    t.notMatch(`${pair!} ${decoded}`, /(?:^|[^\w+/-])eyJ[\w-]{8}/)
  }
  t.ok(await isLoggedIn(browser))
  const page = await browser.get('/setup')
  contains(t, page.body, 'operator', 'the groups that decide the role are kept')
})

t.test('the key of the cookie', async (t) => {
  const kek = Buffer.alloc(32, 1)
  const [here, there] = ['https://mcp.example.com', 'https://staging.example.com']
  const key = deriveSessionKey(kek, here)
  t.equal(key.length, 32)
  t.notSame(key, kek)
  t.same(deriveSessionKey(Buffer.alloc(32, 1), here), key, 'is the same in every replica')
  t.notSame(deriveSessionKey(Buffer.alloc(32, 2), here), key)
  t.notSame(deriveSessionKey(kek, there), key, 'and another one at a server that shares the secret')
})

t.test('foreign cookies', async (t) => {
  const kek = randomBytes(32)
  const { visitor, loggedIn, good: form } = await startService(t, { kek })
  const stranger = await startService(t)
  const formerIssuer = await startService(t, { kek })
  const alice = await loggedIn()
  const good = decodeURIComponent(alice.cookies.get(COOKIE)!)
  const [sealed = '', nonce = ''] = good.split(';')
  const bytes = Buffer.from(sealed, 'base64')
  bytes[20]! ^= 1
  const forged = {
    'of another server': decodeURIComponent((await stranger.loggedIn()).cookies.get(COOKIE)!),
    'of the issuer that was configured before': decodeURIComponent(
      (await formerIssuer.loggedIn()).cookies.get(COOKIE)!,
    ),
    changed: `${bytes.toString('base64')};${nonce}`,
    'cut off': good.slice(0, 40),
    'without its nonce': sealed,
    empty: '',
    'plain JSON': '{"person":{"sub":"admin","until":9999999999999}}',
    'very long': 'A'.repeat(8000),
  }
  for (const [what, value] of Object.entries(forged)) {
    const someone = visitor()
    someone.cookies.set(COOKIE, encodeURIComponent(value))
    t.equal((await someone.get('/setup')).statusCode, 302, `${what}: nobody is logged in`)
    t.equal((await someone.post('/setup', form)).statusCode, 401)
  }
})

t.test('ends 15 minutes after login, however active the user is', async (t) => {
  const { loggedIn, clock, good } = await startService(t)
  const alice = await loggedIn()
  for (let minute = 1; minute <= 14; minute++) {
    clock.offset += MINUTE
    t.equal((await alice.submit('/setup/remove')).statusCode, 303, `after ${minute} minutes`)
  }
  const token = hiddenFields((await alice.get('/setup')).body, '/setup')
  clock.offset += MINUTE
  const late = await alice.post('/setup', { ...token, ...good })
  t.equal(late.statusCode, 401, 'after 15 its form is not taken')
  t.match(late.body, /your login has expired/)
  t.equal((await alice.get('/setup')).headers.location, '/setup/login', 'and the page asks for a login')
})

t.test('logging out', async (t) => {
  const { loggedIn } = await startService(t)
  const alice = await loggedIn()
  const other = await loggedIn({ sub: 'alice' })
  await alice.get('/setup')
  const stolen = alice.copy()
  t.ok(await isLoggedIn(stolen))

  const answer = await alice.submit('/setup/logout')
  t.equal(answer.statusCode, 303)
  t.equal(answer.headers.location, '/setup/logout')
  t.match(
    answer.headers['set-cookie'],
    new RegExp(`^${COOKIE}=; Max-Age=0; Path=/; Expires=.*1970.*; HttpOnly; Secure`),
  )
  t.equal(alice.cookies.size, 0, 'the cookie is gone')
  const page = await alice.get('/setup/logout')
  t.match(page.body, /You are logged out[^]*href="\/setup\/login\?again&#61;1"/)
  t.notOk(await isLoggedIn(alice))
  t.notOk(await isLoggedIn(stolen), 'a copy of it is worthless')
  t.ok(await isLoggedIn(other), 'another session of the same person goes on')
  t.equal((await alice.get('/setup/logout')).statusCode, 200, 'the page is there for anybody')
  partial(
    t,
    await (await loggedIn()).post('/setup/logout', ''),
    { statusCode: 403 },
    'nobody is logged out by a foreign form',
  )
})

t.test('a login creates a new session', async (t) => {
  const { visitor, provider, loggedIn, good } = await startService(t)

  t.test('that a planted cookie cannot use', async (t) => {
    const mallory = visitor({ authorization: `Bearer ${await provider.tokenFor({ sub: 'mallory' })}` })
    const planted = hiddenFields((await mallory.get('/setup')).body, '/setup')
    const victim = visitor()
    for (const [name, value] of mallory.cookies) victim.cookies.set(name, value)
    const { headers } = await victim.get('/setup/login')
    const before = victim.copy()
    await victim.get(`/setup/callback?${provider.comeBack(headers.location as string, { sub: 'victim' }).toString()}`)
    t.ok(await isLoggedIn(victim))
    t.notOk(await isLoggedIn(before), 'the cookie from before is nobody')
    t.equal((await victim.post('/setup', { ...good, ...planted })).statusCode, 403, 'nor is its CSRF token any good')
  })

  t.test('with nothing left of the previous user', async (t) => {
    const alice = await loggedIn({ sub: 'alice' })
    await alice.submit('/setup/remove')
    const old = alice.copy()
    const { headers } = await alice.get('/setup/login')
    await alice.get(`/setup/callback?${provider.comeBack(headers.location as string, { sub: 'bob' }).toString()}`)
    const { body } = await alice.get('/setup')
    contains(t, body, '<bdi>bob</bdi>')
    t.notMatch(body, 'no credentials to remove', 'not even what was to be said to them')
    t.notOk(await isLoggedIn(old), 'and their session is over')
  })
})
