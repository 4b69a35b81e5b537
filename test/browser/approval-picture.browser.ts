/**
 * The picture of docs/approval.md: the estate of the demonstration, a rule that opens, and an admin who is asked about it.
 * `PICTURES=docs npm test -- test/browser/approval-picture.browser.ts` writes it there.
 */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { GROUP_OF, type Json } from '../contract/authenticated-service.js'
import { startServed } from '../setup/served.js'
import { enterPassword, textOf } from './in-browser.js'
import { startBrowser } from './open-browser.js'

const DOCS = fileURLToPath(new URL('../../docs', import.meta.url))
/** As `npm run demo` has it, with queries that are done at once. */
const ESTATE = { seed: 7, workloads: 400, flows: 2000, pollsUntilDone: 1, retryAfter: 0 }
const ASKER = 'Alice Ahrens'
const ADMIN = 'Adam Adler'

t.test('the page of a request, as the documents show it', async (t) => {
  const { url, provider, send } = await startServed(t, {
    mode: 'shared',
    estate: ESTATE,
    approval: { method: 'two-person', ttlSeconds: 900, maxAgeSeconds: 900 },
    people: {
      [ASKER]: { sub: 'alice@example.com', groups: [GROUP_OF.admin], claims: { name: ASKER } },
      [ADMIN]: { sub: 'adam@example.com', groups: [GROUP_OF.admin] },
    },
  })
  const { accessToken } = await provider.tokensFor(ASKER, { resource: provider.oauth().audience })
  async function call(name: string, args: object = {}): Promise<Json> {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
    const { payload } = await send(accessToken, body, { headers: { host: new URL(url).host } })
    const { result } = JSON.parse(payload)
    return result.structuredContent ?? JSON.parse(result.content[0].text)
  }
  const { rulesets } = await call('get-rulesets', { name: 'billing | prod' })
  const [{ href, rules }] = rulesets
  const consumers = ['role=web', 'iplist:Any (0.0.0.0/0 and ::/0)']
  await call('update-sec-rule', { href: rules[0].href, consumers })
  const partners = {
    name: 'Partners in Oslo',
    ip_ranges: [{ from_ip: '203.0.113.0/24' }, { from_ip: '2001:db8::/48' }],
  }
  const created = await call('create-iplist', partners)
  await call('create-iplist', { name: 'Half-finished', ip_ranges: [{ from_ip: '198.51.100.0/24' }] })
  const asked = await call('provision-policy', { hrefs: [href, created.href], change_description: 'Partners in Oslo' })

  const { open, picture } = (await startBrowser(t))(t)
  const { page } = await open(url, { viewport: { width: 980, height: 900 } })
  await page.goto(asked.approval_url)
  await enterPassword(page, url, ADMIN)
  t.match(await textOf(page), /Alice Ahrens.*Opens more 1.*Partners in Oslo.*no part of this 1.*Approve this call/)
  await picture(page, 'approval', process.env['PICTURES'] === 'docs' ? DOCS : undefined)
})
