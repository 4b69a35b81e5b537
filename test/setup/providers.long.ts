/** The login at a real OpenID provider, with the tokens and issuers of the vendors people have. */
import t from 'tap'
import { GROUP_OF } from '../contract/authenticated-service.js'
import { Browser } from '../identity/browser.js'
import { contains } from '../partial.js'
import { startServed } from './served.js'

const VENDORS = ['plain', 'entra', 'okta', 'auth0', 'keycloak', 'adfs'] as const

for (const vendor of VENDORS) {
  t.test(`a provider like ${vendor}`, async (t) => {
    const people = { alice: { sub: 'oid-of-alice', groups: [GROUP_OF.operator], roles: [GROUP_OF.operator] } }
    const { provider, url, good, log } = await startServed(t, { vendor, people, isPublic: vendor === 'okta' })
    const browser = new Browser()

    let page = await browser.open(`${url}/setup`)
    t.ok(page.url.startsWith(provider.origin), 'a browser is led to the login')
    page = await provider.logIn(browser, page, 'alice')
    t.equal(page.url, `${url}/setup`, 'and back')
    t.equal(page.status, 200)
    contains(t, page.body, '<bdi>oid-of-alice</bdi>')
    contains(t, page.body, '>operator<')
    t.ok(page.body.includes(`<bdi>${provider.issuer}</bdi>`))

    page = await browser.submit(page, { ...good, label: 'payments' })
    t.equal(page.url, `${url}/setup`)
    t.match(page.body, /Your PCE credentials are stored[^]*The PCE accepted them[^]*<bdi>payments<\/bdi>/)

    const other = new Browser()
    const again = await provider.logIn(other, await other.open(`${url}/setup`), 'alice')
    contains(t, again.body, '<bdi>payments</bdi>', 'another browser of the same person sees the same')

    browser.forget()
    t.ok((await browser.open(`${url}/setup`)).url.startsWith(provider.origin), 'without its cookie a browser is nobody')
    t.notMatch(JSON.stringify(log), /eyJ|setup-secret-of-the-tests/, 'no token and no secret is in the log')
  })
}

t.test("Entra ID accepts a scope only with its API's prefix", async (t) => {
  const entra = {
    vendor: 'entra',
    people: { alice: { groups: [GROUP_OF.reader] } },
    audience: '0b7c1f9d-4f0e-4a8e-8e0b-5264a66d2d1a',
    appIdUri: 'api://svc-mcp',
  } as const
  const qualified = await startServed(t, entra)
  const browser = new Browser()
  const first = await browser.open(`${qualified.url}/setup`)
  contains(t, (await qualified.provider.logIn(browser, first, 'alice')).body, '>reader<')

  const bare = await startServed(t, { ...entra, oauth: { requestedScope: undefined } })
  const refused = await new Browser().open(`${bare.url}/setup`)
  t.equal(refused.status, 403)
  t.match(refused.body, /did not accept the login request \(invalid_scope\)/)
})

t.test('a login at Google ends with what to tell the operator', async (t) => {
  const { provider, url } = await startServed(t, { vendor: 'google' })
  const browser = new Browser()
  const page = await provider.logIn(browser, await browser.open(`${url}/setup`), 'alice')
  t.equal(page.status, 403)
  t.match(page.body, /does not accept the access token of the identity provider[^]*malformed token/)
})

t.test('tells a user who cancelled at the provider so', async (t) => {
  const { provider, url } = await startServed(t)
  const browser = new Browser()
  const page = await browser.open(`${url}/setup`)
  const abort = /href="([^"]*\/abort)"/.exec(page.body)?.[1]
  const back = await browser.open(new URL(abort!, page.url).href)
  t.equal(back.status, 403)
  t.ok(back.url.startsWith(`${url}/setup/callback?error=access_denied`))
  t.match(back.body, /refused or cancelled at the identity provider[^]*href="\/setup"/)
  t.ok(provider.seen.requests > 0)
})

t.test('a provider that recovers', async (t) => {
  const { provider, url, clock } = await startServed(t, { people: { alice: { groups: [GROUP_OF.reader] } } })
  await provider.stop()
  const browser = new Browser()
  const down = await browser.open(`${url}/setup`)
  t.equal(down.status, 503)
  t.match(down.headers.get('retry-after'), /^[1-9]/)
  contains(t, down.body, 'Nobody can log in right now')
  await provider.start()
  clock.offset += 5_000
  const page = await provider.logIn(browser, await browser.open(`${url}/setup`), 'alice')
  contains(t, page.body, '<bdi>alice</bdi>', 'lets people in again')
})
