/** The whole way on the composed server, in both modes: a call waits, a person decides on the page, the call runs once (D153). */
import t, { type Test } from 'tap'
import { partial, contains } from '../partial.js'
import { GROUP_OF, PUBLIC_URL, registrationFor, startService, type Json } from '../contract/authenticated-service.js'
import { readScrape } from '../metrics/scrape.js'
import { startPretendProvider } from '../setup/pretend-provider.js'
import { hiddenFields, Visitor } from '../setup/visitor.js'

async function startWaiting(t: Test, mode: 'per_user' | 'shared', method: 'page' | 'two-person') {
  const provider = await startPretendProvider(t)
  const approval = { method, ttlSeconds: 900, maxAgeSeconds: 0 }
  const service = await startService(t, {
    mode,
    config: {
      http: { host: '127.0.0.1', port: 0, publicUrl: PUBLIC_URL, allowedHosts: [], maxInFlight: 256, metricsPort: 0 },
      oauth: provider.oauth,
      login: { clientId: 'setup-page', clientSecret: 'client-secret' },
      confirm: { hmacKey: Buffer.alloc(32, 9), ttlSeconds: 120, approval },
    },
  })
  const home = mode === 'shared' ? '/approve' : '/setup'

  /** A browser that has logged in on its way to this page. */
  async function browserOf(sub: string, groups = [GROUP_OF.admin]): Promise<Visitor> {
    const browser = new Visitor(service.app, PUBLIC_URL)
    const { headers } = await browser.get(`${home}/login?to=/approve`)
    const query = provider.comeBack(headers.location as string, { sub, groups }).toString()
    const { statusCode } = await browser.get(`${home}/callback?${query}`)
    t.equal(statusCode, 302, `${sub} is logged in`)
    return browser
  }
  const token = await provider.tokenFor({ sub: 'alice', groups: [GROUP_OF.admin], claims: { client_id: 'desktop' } })
  if (mode === 'per_user') await service.call(token, 'register-pce-credentials', registrationFor(service.pce))
  await service.call(token, 'create-iplist', { name: 'Partners', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
  const provision = (): Promise<Json> => service.call(token, 'provision-policy', { change_description: 'Partners' })
  /** How often each has happened, as /metrics counts it. */
  const counted = async () => {
    const { series } = readScrape((await service.app.metricsServer!.inject('/metrics')).body)
    const happened = series('svc_mcp_approvals_total').filter(({ value }) => value > 0)
    return Object.fromEntries(happened.map(({ labels, value }) => [labels.event, value]))
  }
  return { ...service, provider, token, provision, browserOf, counted }
}

const pathOf = (url: string) => url.slice(PUBLIC_URL.length)

async function press(browser: Visitor, path: string, verdict: 'approve' | 'deny', note = '') {
  const { body } = await browser.get(path)
  return browser.post(path, { ...hiddenFields(body, path), verdict, note })
}

for (const mode of ['per_user', 'shared'] as const) {
  t.test(`${mode}: approved, and run once`, async (t) => {
    const { provision, browserOf, audit, counted } = await startWaiting(t, mode, 'page')
    const asked = await provision()
    partial(t, asked, { error: 'confirm_required', approval_url: /^https:\/\/mcp\.example\.test\/approve\/[\w-]{43}$/ })
    partial(t, await provision(), { error: 'approval_pending', approval_url: asked.approval_url })

    const path = pathOf(asked.approval_url)
    const alice = await browserOf('alice')
    contains(t, (await alice.get('/approve')).body, path)
    const { body } = await alice.get(path)
    for (const shown of ['Partners', '203.0.113.0/24', 'desktop', 'Provision Policy', 'You decide about your own call'])
      contains(t, body, shown)
    t.equal((await press(alice, path, 'approve', 'as planned')).statusCode, 303)
    t.match((await alice.get(path)).body, /Approved by[^]*alice[^]*as planned[^]*may run once/)

    partial(t, await provision(), { version: 2 })
    t.match((await alice.get(path)).body, /Approved and used[^]*was let run, once/)
    const entries = audit.filter(({ approval, phase }) => approval !== undefined && phase === 'decision')
    t.same(
      entries.filter(({ approval_id: id }) => path.endsWith(String(id))).map(({ approval }) => approval),
      ['asked', 'shown', 'approved', 'used'],
    )
    partial(
      t,
      entries.find(({ approval }) => approval === 'approved'),
      { sub: 'alice', note: 'as planned', mode },
    )
    t.same(await counted(), { asked: 1, shown: 1, approved: 1, used: 1 })
  })
}

t.test('per_user: who logs out at a request is led back to it by the next login', async (t) => {
  const { provision, browserOf, provider } = await startWaiting(t, 'per_user', 'page')
  const path = pathOf((await provision()).approval_url)
  const alice = await browserOf('alice')
  const { body } = await alice.get(path)
  const out = await alice.post('/setup/logout', hiddenFields(body, '/setup/logout'))
  const farewell = await alice.get(out.headers.location as string)
  const [, link] = /href="([^"]*)">Log in again/.exec(farewell.body)!
  const login = link!.replaceAll('&#38;', '&').replaceAll('&#61;', '=')
  const { headers } = await alice.get(login)
  const query = provider.comeBack(headers.location as string, { sub: 'alice', groups: [GROUP_OF.admin] }).toString()
  partial(t, await alice.get(`/setup/callback?${query}`), { statusCode: 302, headers: { location: path } })
  t.equal((await alice.get(path)).statusCode, 200)
})

t.test('two-person: somebody else approves', async (t) => {
  const { provision, browserOf } = await startWaiting(t, 'shared', 'two-person')
  const path = pathOf((await provision()).approval_url)
  const alice = await browserOf('alice')
  const watched = await alice.get(path)
  t.match(watched.body, /Not yours to decide/)
  const forced = await alice.post(path, { ...hiddenFields(watched.body, '/approve/logout'), verdict: 'approve' })
  t.equal(forced.statusCode, 403)
  t.equal((await (await browserOf('oscar', [GROUP_OF.operator])).get(path)).statusCode, 404)
  partial(t, await provision(), { error: 'approval_pending' })
  t.equal((await press(await browserOf('adam'), path, 'approve')).statusCode, 303)
  partial(t, await provision(), { version: 2 })
})

t.test('denied, with a note that the client is told', async (t) => {
  const { provision, browserOf, audit, counted } = await startWaiting(t, 'shared', 'page')
  const path = pathOf((await provision()).approval_url)
  const alice = await browserOf('alice')
  t.equal((await press(alice, path, 'deny', 'not before\nFriday')).statusCode, 303)
  partial(t, await provision(), { error: 'approval_denied', note: 'not before Friday' })
  partial(
    t,
    audit.find(({ approval }) => approval === 'denied'),
    { decision: 'denied', note: 'not before Friday' },
  )
  t.same(await counted(), { asked: 1, shown: 1, denied: 1 })
})

t.test('a refused decision is in the audit log', async (t) => {
  const { provision, browserOf, audit } = await startWaiting(t, 'shared', 'two-person')
  const path = pathOf((await provision()).approval_url)
  const alice = await browserOf('alice')
  const { body } = await alice.get(path)
  await alice.post(path, { ...hiddenFields(body, '/approve/logout'), verdict: 'approve' })
  partial(t, audit.at(-1), { decision: 'denied', reason: 'forbidden', route: '/approve', sub: 'alice' })
})

t.test('the page reads nothing from the PCE', async (t) => {
  const { provision, browserOf, pce } = await startWaiting(t, 'shared', 'page')
  const path = pathOf((await provision()).approval_url)
  const alice = await browserOf('alice')
  await pce.simulator.close()
  contains(t, (await alice.get(path)).body, '203.0.113.0/24')
  t.equal((await press(alice, path, 'approve')).statusCode, 303)
})

t.test('without approvals there is nothing at /approve', async (t) => {
  const { app, tokenOf } = await startService(t, { mode: 'shared' })
  const headers = { host: new URL(PUBLIC_URL).host, authorization: `Bearer ${await tokenOf('alice')}` }
  for (const url of ['/approve', `/approve/${'A'.repeat(43)}`, '/approve/login', '/approve/callback'])
    t.equal((await app.inject({ url, headers })).statusCode, 404, url)
})
