/** /approve in a real browser, at a real OpenID provider: what people see and do, and what hostile names cannot do. */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { GROUP_OF, registrationFor, type Json } from '../contract/authenticated-service.js'
import { partial } from '../partial.js'
import { startServed } from '../setup/served.js'
import { connectLegacy, connectModern, MODERN, type Visit } from '../approval/sdk-clients.js'
import { servePages } from '../approve/pages-service.js'
import type { Asked } from '../approve/desk.js'
import { FACTS, GUARDRAILS, WIDE } from '../approve/samples.js'
import type { ApprovalConfig } from '../../schemas/config.js'
import type { ApprovalState, ShownCall } from '../../schemas/approvals.js'
import { found } from '../edge/support/within.js'
import { barriersOf, enterPassword, expectQuiet, MEASURE, textOf } from './in-browser.js'
import { startBrowser } from './open-browser.js'

const openBrowser = await startBrowser(t)

const PEOPLE = {
  alice: { groups: [GROUP_OF.admin] },
  adam: { sub: 'adam@example.com', groups: [GROUP_OF.admin] },
  eve: { sub: 'eve@example.com', groups: [GROUP_OF.admin] },
  oscar: { groups: [GROUP_OF.operator] },
}

async function open(page: Page, url: string, path: string, login: string): Promise<void> {
  await page.goto(`${url}${path}`)
  if (!page.url().startsWith(url)) await enterPassword(page, url, login)
}

async function expectAccessible(t: Test, page: Page, what: string): Promise<void> {
  t.strictSame(await barriersOf(page), [], `${what}: accessible`)
}

t.test('a person opens the link, logs in, and approves', async (t) => {
  const { url, ask, decided } = await servePages(t, { people: PEOPLE, maxAgeSeconds: 900 })
  const { open: openPage, picture } = openBrowser(t)
  const { page, watch } = await openPage(url)
  const { id } = await ask({ ownerName: 'Alice Ahrens' })
  await open(page, url, `/approve/${id}`, 'adam')
  t.equal(page.url(), `${url}/approve/${id}`, 'the login leads back to the request')
  t.match(await textOf(page), /Approve “Provision Policy”\? .*Who asks Alice Ahrens \(alice\).*You decide as an admin/)
  await picture(page, 'approve-narrow-desktop')
  await page.getByRole('button', { name: 'Approve this call' }).click()
  t.equal(page.url(), `${url}/approve/${id}`)
  t.match(await textOf(page), /Approved by adam \(adam@example\.com\) – you: .*just now/)
  // Chromium gives it the focus with the first frame.
  await page.locator('[role=status]:focus').waitFor()
  await picture(page, 'approve-approved')
  await page.reload()
  t.equal(decided().length, 1, 'a reload decides nothing again')

  await page.getByRole('link', { name: 'All that waits for you' }).click()
  t.match(await textOf(page), /Nothing waits for you/)
  await page.getByRole('button', { name: 'Log out' }).click()
  t.match(await textOf(page), /You are logged out/)
  expectQuiet(t, watch, 'all the way')
})

t.test('two people approve what a guardrail forbids', async (t) => {
  const { url, ask } = await servePages(t, { people: PEOPLE, maxAgeSeconds: 900 })
  const { open: openPage, picture } = openBrowser(t)
  const { id } = await ask({ ownerName: 'Alice Ahrens', persons: 2, guardrails: GUARDRAILS })
  const first = await openPage(url)
  await open(first.page, url, `/approve/${id}`, 'adam')
  t.match(await textOf(first.page), /0 of 2 approvals .*Two people have to approve this call/)
  await expectAccessible(t, first.page, 'nobody yet')
  await picture(first.page, 'approve-two-none')
  await first.page.getByRole('button', { name: 'Approve this call' }).click()
  t.match(await textOf(first.page), /1 of 2 approvals, by adam \(adam@example\.com\) – you: .*just now/)
  await expectAccessible(t, first.page, 'one')
  await picture(first.page, 'approve-two-one')
  const second = await openPage(url)
  await open(second.page, url, `/approve/${id}`, 'eve')
  await second.page.getByRole('button', { name: 'Approve this call' }).click()
  t.match(await textOf(second.page), /1 of 2 approvals, by adam .*2 of 2 approvals, by eve/)
  await expectAccessible(t, second.page, 'both')
  await picture(second.page, 'approve-two-both')
})

const PROVISION = { name: 'provision-policy', arguments: { change_description: 'Partners' } }

/** The composed server, with a call of alice's that waits: her own IP list. */
async function startWaiting(t: Test, mode: 'per_user' | 'shared', approval: ApprovalConfig) {
  const service = await startServed(t, { people: PEOPLE, mode, approval })
  const { url, provider, send } = service
  const { audience: resource } = provider.oauth()
  const { accessToken } = await provider.tokensFor('alice', { resource })
  const call = async (name: string, args: object = {}): Promise<Json> => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
    const { payload } = await send(accessToken, body, { headers: { host: new URL(url).host } })
    const { result } = JSON.parse(payload)
    return result.structuredContent ?? JSON.parse(result.content[0].text)
  }
  if (mode === 'per_user') await call('register-pce-credentials', registrationFor(service.pce))
  await call('create-iplist', { name: 'Partners', ip_ranges: [{ from_ip: '203.0.113.0/24' }] })
  return { ...service, accessToken, provision: () => call(PROVISION.name, PROVISION.arguments) }
}

for (const [era, connect] of [
  ['with a handshake', connectLegacy],
  [MODERN, connectModern],
] as const) {
  t.test(`the whole way of a client ${era}: a link, a login, an approval by somebody else, a run`, async (t) => {
    const approval = { method: 'two-person', ttlSeconds: 900, maxAgeSeconds: 900 } as const
    const { url, accessToken, pce } = await startWaiting(t, 'shared', approval)
    const { open: openPage, picture } = openBrowser(t)
    const { page: alices } = await openPage(url)
    const { page, watch } = await openPage(url)
    const provisioned = () =>
      pce.simulator.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/sec_policy')).length
    const links: string[] = []
    const visit: Visit = async (link) => {
      links.push(link)
      if (links.length > 1) return 'decline'
      t.equal(provisioned(), 0, 'refused')
      await open(alices, url, link.slice(url.length), 'alice')
      t.match(await textOf(alices), /Who asks .*alice.*Partners.*203\.0\.113\.0\/24.*Not yours to decide/)
      await open(page, url, '/approve', 'adam')
      await page.getByRole('link', { name: 'Provision Policy' }).click()
      t.equal(page.url(), link)
      await picture(page, 'approve-whole-way')
      await page.fill('[name=note]', 'agreed on Monday')
      await page.getByRole('button', { name: 'Approve this call' }).click()
      t.match(await textOf(page), /Approved by adam .*agreed on Monday/)
      t.equal(provisioned(), 0, 'an approval alone runs nothing')
      return 'accept'
    }
    const client = await connect(t, url, accessToken, visit)
    partial(t, (await client.callTool(PROVISION)).structuredContent, { version: 2 })
    t.equal(provisioned(), 1)
    await alices.reload()
    t.match(await textOf(alices), /was let run, once/)

    t.equal((await client.callTool(PROVISION)).isError, true)
    t.equal(new Set(links).size, 2, 'the same call is asked anew, at a link of its own')
    t.equal(provisioned(), 1)
    expectQuiet(t, watch, 'all the way')
  })
}

t.test('a login at /setup, which asked for nothing, is asked again to decide', async (t) => {
  const approval = { method: 'page', ttlSeconds: 900, maxAgeSeconds: 900 } as const
  const { url, provision, provider } = await startWaiting(t, 'per_user', approval)
  const { open: openPage } = openBrowser(t)
  const { approval_url: link } = await provision()
  const { page } = await openPage(url)
  await open(page, url, '/setup', 'alice')
  await page.goto(link)
  t.equal(page.url(), link, 'the same session')
  t.equal(await page.getByRole('button', { name: 'Approve this call' }).count(), 0)
  await page.getByRole('link', { name: 'Log in again to decide' }).click()
  t.ok(page.url().startsWith(provider.origin))
  await enterPassword(page, url, 'alice')
  t.equal(page.url(), link)
  await page.getByRole('button', { name: 'Deny it' }).click()
  t.match(await textOf(page), /Denied by alice/)
  partial(t, await provision(), { error: 'approval_denied' })
})

t.test('with the keyboard alone, without scripts', async (t) => {
  const { url, ask } = await servePages(t, { people: PEOPLE })
  const { open: openPage } = openBrowser(t)
  const { page } = await openPage(url, { javaScriptEnabled: false })
  const { id } = await ask()
  await open(page, url, `/approve/${id}`, 'adam')
  const focused = () => page.locator(':focus')
  const order: string[] = []
  const next = () => page.keyboard.press('Tab')
  // Chromium drops keys that come before it has painted the page.
  await found(async () => {
    await next()
    return (await focused().count()) > 0
  }, 'the page takes keys')
  for (let at = 0; at < 8; at++) {
    if (at > 0) await next()
    order.push((await focused().innerText()).split('\n')[0] || ((await focused().getAttribute('name')) ?? ''))
  }
  t.strictSame(
    order.map((text) => text.trim()),
    [
      'Skip to content',
      'Log out',
      'Go to the decision',
      'Changed IP list Partners ▲ opens more',
      '1 entry stays',
      'note',
      'Approve this call',
      'Deny it',
    ],
  )
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.type('not before Friday')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('Note: ').waitFor()
  t.match(await textOf(page), /Denied by adam .*Note: .?not before Friday/)
})

t.test('two tabs: the first decision stands', async (t) => {
  const { url, ask, decided } = await servePages(t, { people: PEOPLE })
  const { open: openPage, picture } = openBrowser(t)
  const { page, context } = await openPage(url)
  const { id } = await ask()
  await open(page, url, `/approve/${id}`, 'adam')
  const tab = await context.newPage()
  await tab.goto(`${url}/approve/${id}`)
  await page.getByRole('button', { name: 'Deny it' }).click()
  await tab.getByRole('button', { name: 'Approve this call' }).click()
  t.match(await textOf(tab), /It had been decided before Your approval changed nothing.*Denied by adam/)
  await tab.locator('[role=alert]:focus').waitFor()
  await picture(tab, 'approve-second-tab')
  t.equal(decided().length, 1)
})

t.test('who was let in without a password enters it to decide', async (t) => {
  const { url, ask, provider, clock } = await servePages(t, { people: PEOPLE, maxAgeSeconds: 300 })
  const { open: openPage, picture } = openBrowser(t)
  const { page, context, watch } = await openPage(url)
  const { id } = await ask()
  await open(page, url, `/approve/${id}`, 'adam')
  t.ok(await page.getByRole('button', { name: 'Approve this call' }).isVisible(), 'with the password just entered')

  // The provider remembers them, and this server, whose clock has gone on, does not.
  await page.fill('[name=note]', 'seen with Bob')
  clock.offset = 400_000
  await page.getByRole('button', { name: 'Approve this call' }).click()
  t.match(await textOf(page), /Nothing was decided yet .*Your note was not kept/)
  await picture(page, 'approve-log-in-again')
  await expectAccessible(t, page, 'the page that asks for a login')
  clock.offset = 0
  await page.getByRole('link', { name: 'Log in again to decide' }).click()
  t.ok(page.url().startsWith(provider.origin), 'a click leads to the provider')
  t.ok(await page.locator('[name=password]').isVisible(), 'which asks for the password')
  await enterPassword(page, url, 'adam')
  t.equal(page.url(), `${url}/approve/${id}`, 'and back to the same page')
  await page.getByRole('button', { name: 'Approve this call' }).click()
  t.match(await textOf(page), /Approved by adam/)
  t.same(
    (await context.cookies(url)).map(({ name }) => name).filter((name) => name.startsWith('__Host-')),
    ['__Host-svc-mcp-setup'],
  )
  expectQuiet(t, watch, 'all the way')
})

t.test('on a phone, in the dark, and for a screen reader', async (t) => {
  const { url, ask } = await servePages(t, { people: PEOPLE })
  const looks = {
    desktop: {},
    phone: { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
    'phone-dark': { viewport: { width: 390, height: 844 }, isMobile: true, colorScheme: 'dark' },
    'desktop-dark': { colorScheme: 'dark' },
    'high-contrast': { forcedColors: 'active' },
  } as const
  const { open: openPage, picture } = openBrowser(t)
  const decided = async (state: ApprovalState) => (await ask({ state, by: { sub: 'adam' }, note: 'x'.repeat(500) })).id
  const pages: Record<string, string> = {
    narrow: `/approve/${(await ask()).id}`,
    wide: `/approve/${(await ask({ shown: WIDE, ownerName: 'Alice Ahrens' })).id}`,
    facts: `/approve/${(await ask({ shown: FACTS, tool: 'delete-label' })).id}`,
    list: '/approve',
    all: '/approve/all',
    used: `/approve/${await decided('used')}`,
    denied: `/approve/${await decided('denied')}`,
    void: `/approve/${await decided('void')}`,
    approved: `/approve/${await decided('approved')}`,
    revoked: `/approve/${await decided('revoked')}`,
    unknown: `/approve/${'A'.repeat(43)}`,
  }
  for (const [look, options] of Object.entries(looks)) {
    const { page, watch, context } = await openPage(url, options)
    await open(page, url, '/approve', 'adam')
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${url}${path}`)
      for (const summary of await page.locator('.revoke > summary').all()) await summary.click()
      await picture(page, `approve-${name}-${look}`)
      const { wide, small, faint } = await page.evaluate<Record<'wide' | 'small' | 'faint', string[]>>(MEASURE)
      t.strictSame(wide, [], `${name}, ${look}: nothing sticks out`)
      t.strictSame(small, [], 'everything to press is large enough')
      if (look !== 'high-contrast') t.strictSame(faint, [], 'all text can be read')
      if (look === 'desktop' || look === 'phone-dark') await expectAccessible(t, page, `${name}, ${look}`)
    }
    expectQuiet(t, watch, look)
    await context.close()
  }
})

/** In every text of a request stands the same hostile one. */
function hostileRequest(text: string): Asked {
  const inner = { href: text, name: text, key: text, value: text, [text]: [text, { [text]: text }] }
  const object = {
    kind: text,
    name: text,
    href: text,
    change: 'update',
    effect: 'widening',
    effect_note: text,
    warnings: [text],
    updated_at: text,
    updated_by: text,
    note: text,
    fields: [
      { path: text, before: text, after: inner },
      { path: text, before: [text, inner], after: [inner, [text]] },
    ],
  } as const
  const shown: ShownCall = {
    summary: text,
    effect: 'widening',
    warnings: [text],
    objects: [
      {
        ...object,
        fields: [...object.fields],
        warnings: [text],
        parts: [{ ...object, fields: [...object.fields], warnings: [text] }],
      },
    ],
    objects_total: 1,
    workloads_affected: 1,
    dependencies: [{ kind: text, name: text, href: text, required_by: [text] }],
    not_included: { total: 1, objects: [{ kind: text, name: text, href: text, change: 'delete' }] },
    draft: { first_edit: text, last_edit: `${text} `, by: [text] },
    facts: { [text]: text, list: [text, inner] },
  }
  return { ownerName: text, pce: text, client: text, requestId: text, shown }
}

t.test('hostile names are text, wherever they stand', async (t) => {
  const { url, ask } = await servePages(t, { people: PEOPLE })
  const { open: openPage, picture } = openBrowser(t)
  const texts = [
    '<img src=x onerror=alert(1)>',
    '"><svg onload=alert(1)>',
    '</textarea></style></title><script>alert(1)</script>',
    `' onmouseover='alert(1)' x='`,
    'javascript:alert(1)',
    '--><!--',
    `\${1}!\${alert(1)}{{1}}`,
  ]
  const { page, watch } = await openPage(url)
  await open(page, url, '/approve', 'adam')
  for (const [at, text] of texts.entries()) {
    const owner = { iss: text, sub: text }
    const by = { ...owner, name: text }
    const open = await ask({ ...hostileRequest(text), owner })
    const denied = await ask({ ...hostileRequest(text), owner, state: 'denied', by, note: text })
    for (const path of [`/approve/${open.id}`, `/approve/${denied.id}`, '/approve']) {
      await page.goto(`${url}${path}`)
      t.equal(
        await page
          .locator(
            'main :is(img, svg:not(.pic), script, iframe, style, object), [onerror], [onload], [onmouseover], [href^=javascript]',
          )
          .count(),
        0,
        'none of it is an element or an attribute',
      )
    }
    await page.goto(`${url}/approve/${denied.id}`)
    const shown = (await page.locator('main').innerHTML()).split(
      await page.evaluate((raw) => {
        const probe = (
          globalThis as unknown as {
            document: { createElement(name: string): { textContent: string; innerHTML: string } }
          }
        ).document.createElement('p')
        probe.textContent = raw
        return probe.innerHTML
      }, text),
    )
    t.ok(shown.length > 40, `${text}: shown as it is, ${shown.length - 1} times`)
    if (at === 0) await picture(page, 'approve-hostile')
  }
  expectQuiet(t, watch, 'all of them')
})

t.test('two admins decide five requests at once, each open in a tab of each, while more come', async (t) => {
  const { url, ask, decided } = await servePages(t, { people: PEOPLE })
  const { open: openPage } = openBrowser(t)
  const hostile = (at: number) => `</main><script>alert(${at})</script>`
  const asked = (from: number) =>
    Promise.all(
      Array.from({ length: 5 }, (_, n) =>
        ask({ ...hostileRequest(hostile(from + n)), owner: { iss: 'x', sub: `owner ${from + n}` } }),
      ),
    )
  const first = await asked(0)
  const openAll = async (login: string) => {
    const { page, context, watch } = await openPage(url)
    context.setDefaultTimeout(300_000)
    await open(page, url, '/approve', login)
    const tabs = await Promise.all(
      first.map(async ({ id }) => {
        const tab = await context.newPage()
        await tab.goto(`${url}/approve/${id}`)
        return tab
      }),
    )
    return { page, tabs, watch }
  }
  const [adam, eve] = [await openAll('adam'), await openAll('eve')]
  const [later] = await Promise.all([
    asked(5),
    ...adam.tabs.map((tab) => tab.getByRole('button', { name: 'Approve this call' }).click()),
    ...eve.tabs.map((tab) => tab.getByRole('button', { name: 'Deny it' }).click()),
  ])
  t.equal(decided().length, 5, 'one decision of each')
  const seen = await Promise.all(
    first.map(async (_, at) => {
      const texts = await Promise.all([adam, eve].map(({ tabs }) => textOf(tabs[at]!)))
      const stands = new Set(texts.map((text) => /Approved by adam|Denied by eve/.exec(text)?.[0]))
      const late = texts.filter((text) => text.includes('It had been decided before'))
      return [stands.size, late.length, texts.every((text) => text.includes(hostile(at)))]
    }),
  )
  t.strictSame(
    seen,
    first.map(() => [1, 1, true]),
    'both see the decision that stands, one that it was not theirs, and each of their own request',
  )
  await adam.page.goto(`${url}/approve`)
  const links = await adam.page
    .locator('main a[href^="/approve/"]:not([href$="/all"])')
    .evaluateAll((all) => all.map((link) => (link as unknown as { pathname: string }).pathname))
  t.strictSame(links.toSorted(), later.map(({ id }) => `/approve/${id}`).toSorted(), 'what came meanwhile waits')
  for (const { watch } of [adam, eve]) expectQuiet(t, watch, 'a crowd of pages')
})

t.test('another person sees nothing of it', async (t) => {
  const { url, ask } = await servePages(t, { people: PEOPLE })
  const { open: openPage } = openBrowser(t)
  const { page } = await openPage(url)
  const { id } = await ask()
  await open(page, url, `/approve/${id}`, 'oscar')
  t.match(await textOf(page), /There is no such request/)
  t.notMatch(await page.content(), /Partners|alice/)
})
