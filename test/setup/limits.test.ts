/** What visitors may cost the service and the identity provider: logins end once, few at a time, and not any number a minute. */
import { Type } from '@sinclair/typebox'
import Database from 'libsql'
import t, { type Test } from 'tap'
import { defineTool, type AnyTool } from '../../tools/define.js'
import { openTool } from '../contract/insecure-app.js'
import {
  ON_FILE_ONLY,
  GROUP_OF,
  PUBLIC_URL,
  type ServiceOptions,
  startService,
} from '../contract/authenticated-service.js'
import { Browser } from '../identity/browser.js'
import { startIdentityProvider } from '../identity/identity-provider.js'
import type { PerUserConfig } from '../../schemas/config.js'
import { contains, partial } from '../partial.js'
import { LOCAL_PROXY, startServed } from './served.js'

const people = { alice: { groups: [GROUP_OF.reader] } }
const AT_A_TIME = 16
const OF_ONE_CLIENT = 4

type Served = Awaited<ReturnType<typeof startServed>>

/** Someone who comes back from the provider: the address, and the cookie that belongs to it. */
async function comingBack({ provider, url }: Served) {
  const browser = new Browser()
  const { url: back } = await provider.logIn(
    browser,
    await browser.open(`${url}/setup`),
    'alice',
    `${url}/setup/callback`,
  )
  const cookie = browser.cookieHeader(back)
  return { back, cookie, return: () => fetch(back, { redirect: 'manual', headers: { cookie, accept: 'text/html' } }) }
}

/** Someone who has begun a login and comes back with a code that they made up. */
async function guessing({ provider, url }: Served, client = '198.51.100.1') {
  const browser = new Browser()
  const init = { headers: { 'x-forwarded-for': client } }
  const { url: asked } = await browser.open(`${url}/setup/login`, init, provider.origin)
  const query = { code: 'guessed', state: new URL(asked).searchParams.get('state')!, iss: provider.issuer }
  return () => browser.fetch(`${url}/setup/callback?${new URLSearchParams(query).toString()}`, init)
}

/** Holds the provider's answers with tokens back until it is opened. */
function holdTokens({ provider }: Served) {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  provider.faults.beforeTokens = () => opened
  return () => {
    provider.faults.beforeTokens = () => {}
    open()
  }
}

t.test('of any number of callbacks with the same state, one asks the provider', async (t) => {
  const served = await startServed(t, { people })
  const alice = await comingBack(served)
  const answers = await Promise.all(Array.from({ length: OF_ONE_CLIENT }, () => alice.return()))
  t.same(answers.map(({ status }) => status).toSorted(), [302, 403, 403, 403])
  t.equal((await alice.return()).status, 403, 'nor does a later one, with the cookie of before')
  t.equal(served.provider.seen.tokenRequests, 1)
  const refused = answers.find(({ status }) => status === 403)!
  t.match(await refused.text(), /The login did not succeed[^]*already used[^]*href="\/setup"/)

  const guess = await guessing(served)
  t.same([(await guess()).status, (await guess()).status], [403, 403])
  t.equal(served.provider.seen.tokenRequests, 2, 'a code that is wrong is tried once')
})

t.test('requests few tokens from the provider at a time, and fewer for one client', async (t) => {
  const served = await startServed(t, { people, isBehindProxy: true })
  const { provider } = served
  const guesser = (n: number) => `198.51.100.${Math.floor(n / OF_ONE_CLIENT)}`
  const [alice, greedy, ...guesses] = await Promise.all([
    comingBack(served),
    guessing(served, guesser(0)),
    ...Array.from({ length: AT_A_TIME }, (_, n) => guessing(served, guesser(n))),
  ])
  const release = holdTokens(served)
  const asked = async (requests: number) => {
    while (provider.seen.tokenRequests < requests) await new Promise((done) => setImmediate(done))
  }
  const own = guesses.slice(0, OF_ONE_CLIENT).map((guess) => guess())
  await asked(OF_ONE_CLIENT)
  t.equal((await greedy()).status, 503)
  const held = [...own, ...guesses.slice(OF_ONE_CLIENT).map((guess) => guess())]
  await asked(AT_A_TIME)
  const refused = await alice.return()
  t.equal(refused.status, 503)
  t.match(refused.headers.get('retry-after'), /^[1-9]/)
  contains(t, refused.headers.get('content-type'), 'text/html')
  t.match(await refused.text(), /The server is busy[^]*Reload this page/)
  t.equal(provider.seen.tokenRequests, AT_A_TIME)

  release()
  t.same(
    (await Promise.all(held)).map(({ status }) => status),
    Array<number>(AT_A_TIME).fill(403),
  )
  t.equal((await alice.return()).status, 302, 'a login that found no place is not lost')
})

t.test('a login leaves nothing on the disk until it has succeeded', ON_FILE_ONLY, async (t) => {
  const served = await startServed(t, { people })
  const file = new Database((served.config as PerUserConfig).keystore.path)
  t.teardown(() => file.close())
  const rows = () => (file.prepare('SELECT count(*) AS n FROM used_tokens').get() as { n: number }).n
  for (let n = 0; n < 20; n++) {
    const guess = await guessing(served)
    t.same([(await guess()).status, (await guess()).status], [403, 403])
  }
  t.equal(rows(), 0, 'anyone can begin one, and come back from it')
  const alice = await comingBack(served)
  t.equal((await alice.return()).status, 302)
  t.equal(rows(), 1)
  t.equal((await alice.return()).status, 403)
})

t.test('limits logins per client, also behind a proxy', async (t) => {
  const http = {
    host: '127.0.0.1',
    port: 0,
    publicUrl: PUBLIC_URL,
    allowedHosts: [],
    maxInFlight: 256,
    trustedProxies: LOCAL_PROXY,
  }
  const provider = await startIdentityProvider(t, { people })
  const { app } = await startService(t, {
    rates: { perCaller: 4 },
    config: { http, oauth: provider.oauth(), login: provider.allowRedirects([`${PUBLIC_URL}/setup/callback`]) },
  })
  const start = async (client: string) => {
    const headers = { host: new URL(PUBLIC_URL).host, accept: 'text/html', 'x-forwarded-for': client }
    return (await app.inject({ url: '/setup/login', headers })).statusCode
  }
  const flood = []
  for (let n = 0; n < 300; n++) flood.push(await start('198.51.100.1'))
  t.same(flood, [...Array<number>(4).fill(302), ...Array<number>(296).fill(429)])
  t.equal(await start('198.51.100.2'), 302, 'nobody else is locked out')
})

t.test('limits logins per address, and only logins', async (t) => {
  const { app, provider, url } = await startServed(t, { people, rates: { perCaller: 4 } })
  const send = (method: 'GET' | 'POST', path: string, remoteAddress: string, headers: Record<string, string> = {}) =>
    app.inject({
      method,
      url: path,
      remoteAddress,
      headers: { host: new URL(url).host, accept: 'text/html', ...headers },
    })
  const expectFree = async () => {
    for (const [method, path, status] of [
      ['GET', '/setup', 302],
      ['GET', '/setup/logout', 200],
      ['POST', '/setup', 401],
      ['POST', '/setup/logout', 401],
    ] as const)
      t.equal((await send(method, path, '2001:db8:1:2::1')).statusCode, status, `${method} ${path}`)
  }
  for (let n = 0; n < 3; n++) await expectFree()

  for (let n = 0; n < 2; n++) {
    t.equal((await send('GET', '/setup/login', '2001:db8:1:2::1')).statusCode, 302)
    t.equal((await send('GET', '/setup/callback?state=x', '2001:db8:1:2::1')).statusCode, 403)
  }
  const asked = provider.seen.requests
  for (const path of ['/setup/login', '/setup/callback?state=x']) {
    const refused = await send('GET', path, '2001:db8:1:2:ffff::9')
    t.equal(refused.statusCode, 429, `${path}, from another address of the same network`)
    partial(t, refused.headers, { 'retry-after': /^[1-9]/, 'content-type': /text\/html/ })
    t.match(refused.body, /Too many attempts[^]*rate_limited/)
  }
  t.equal(provider.seen.requests, asked)
  await expectFree()

  t.equal((await send('GET', '/setup/login', '2001:db8:1:3::1')).statusCode, 302, 'another network is not')
  const { accessToken } = await provider.tokensFor('alice', { resource: provider.oauth().audience })
  const look = () => send('GET', '/setup', '2001:db8:1:2::1', { authorization: `Bearer ${accessToken}` })
  for (let n = 0; n < 4; n++) t.equal((await look()).statusCode, 200, 'a known caller has their own limit')
  t.equal((await look()).statusCode, 429)
})

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** The service with a page whose first look takes until `open`. */
async function slowPage(t: Test, limits: Pick<ServiceOptions, 'rates' | 'maxInFlight'>) {
  let arrive = () => {}
  let open = () => {}
  const arrived = new Promise<void>((resolve) => (arrive = resolve))
  const opened = new Promise<void>((resolve) => (open = resolve))
  const status = defineTool({
    ...openTool,
    name: 'check-pce-credentials-status',
    effect: 'read',
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({ registered: Type.Boolean() }),
    async handler() {
      arrive()
      await opened
      return { registered: false }
    },
  }) as AnyTool
  const { app, send, tokenOf } = await startService(t, { tools: [status], ...limits })
  const look = async (sub: string) =>
    app.inject({
      url: '/setup',
      headers: { host: new URL(PUBLIC_URL).host, accept: 'text/html', authorization: `Bearer ${await tokenOf(sub)}` },
    })
  const ping = async (sub: string) => (await send(await tokenOf(sub), PING)).statusCode
  return { look, ping, arrived, open }
}

t.test("a visit to the page counts towards the caller's requests in flight", async (t) => {
  const { look, ping, arrived, open } = await slowPage(t, { rates: { inFlightPerCaller: 1 } })
  const first = look('busy')
  await arrived
  const second = await look('busy')
  t.equal(second.statusCode, 503)
  partial(t, second.headers, { 'retry-after': /^[1-9]/, 'content-type': /text\/html/ })
  contains(t, second.body, 'The server is busy')
  t.equal(await ping('busy'), 503, 'at /mcp as well')
  const others = look('other')
  t.equal(await ping('third'), 200, 'others have their own slots')
  open()
  t.same([(await first).statusCode, (await others).statusCode], [200, 200])
  t.equal((await look('busy')).statusCode, 200, 'a place that was left is free again')
})

t.test('a visit to the page counts towards the requests in flight of everybody', async (t) => {
  const { look, ping, arrived, open } = await slowPage(t, { maxInFlight: 1 })
  const first = look('busy')
  await arrived
  t.equal(await ping('other'), 503)
  open()
  t.equal((await first).statusCode, 200)
  t.equal(await ping('other'), 200)
})
