/** /setup in a real browser, at a real OpenID provider: what people see and do, and what hostile pages and names cannot do. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import t from 'tap'
import { GROUP_OF } from '../contract/authenticated-service.js'
import { found } from '../edge/support/within.js'
import { partial } from '../partial.js'
import { startServed } from '../setup/served.js'
import { startBrowser } from './open-browser.js'
import { consent, enterPassword, expectQuiet, MEASURE, textOf } from './in-browser.js'

const openBrowser = await startBrowser(t)

const PEOPLE = {
  alice: { sub: 'alice@example.com', groups: [GROUP_OF.operator] },
  nobody: { groups: ['strangers'] },
}

async function logIn(page: Page, url: string, login: string): Promise<void> {
  await page.goto(`${url}/setup`)
  await enterPassword(page, url, login)
}

async function fill(page: Page, fields: Record<string, string>): Promise<void> {
  const { pce_host: host, ...rest } = fields
  if (host !== undefined) await page.selectOption('[name=pce_host]', host)
  for (const [name, value] of Object.entries(rest)) await page.fill(`[name=${name}]`, value)
}

t.test('a person registers, replaces, tests and removes a key', async (t) => {
  const { url, good, provider } = await startServed(t, { people: PEOPLE })
  const { open, picture } = openBrowser(t)
  const { context, page, watch } = await open(url)
  await logIn(page, url, 'alice')
  t.equal(page.url(), `${url}/setup`)
  t.match(await textOf(page), /You are alice operator alice@example\.com · logged in at .*Registered credentials None/)
  await picture(page, 'setup-desktop-1-nothing-yet')

  const [cookie] = (await context.cookies(url)).filter(({ name }) => name.startsWith('__Host-'))
  partial(t, cookie, { httpOnly: true, secure: true, sameSite: 'Lax', path: '/' }, 'the browser keeps a __Host- cookie')
  t.equal(await page.evaluate('document.cookie'), '', 'that no script could read')

  t.test('the browser itself rejects an empty form', async (t) => {
    await page.getByRole('button', { name: 'Store the credentials' }).click()
    t.equal(await page.evaluate('document.activeElement.id'), 'api-key', 'and says at which field')
    t.equal(page.url(), `${url}/setup`)
  })

  t.test('a refusal is shown next to its field, and focus moves to the message', async (t) => {
    const secret = 'SECRET-CANARY-of-the-browser'
    await fill(page, { ...good, pce_port: '70000', api_key: 'a:b', api_secret: secret })
    await page.getByRole('button', { name: 'Store the credentials' }).click()
    t.match(await page.title(), /^Error: /)
    // Chromium gives it the focus with the first frame.
    await page.locator('.notice.bad:focus').waitFor()
    t.match(await textOf(page), /Nothing was stored .*Port: .*whole number from 1 to 65535\./)
    t.notMatch(await page.content(), secret, 'nothing comes back')
    t.equal(await page.inputValue('[name=pce_port]'), '70000', 'but for where the PCE is')
    t.same([await page.inputValue('[name=api_key]'), await page.inputValue('[name=api_secret]')], ['', ''])
    t.equal(await page.getAttribute('[name=pce_port]', 'aria-invalid'), 'true')
    await picture(page, 'setup-desktop-2-errors')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    t.equal(await page.evaluate('document.activeElement.name'), 'pce_port', 'a link of the summary leads to its field')
  })

  t.test('a registration', async (t) => {
    await fill(page, { ...good, label: 'payments' })
    await page.keyboard.press('Enter')
    await page.waitForURL(`${url}/setup`)
    await page.getByText('Your PCE credentials are stored').waitFor()
    t.match(
      await textOf(page),
      /The PCE accepted them\..*Working Name payments PCE host 127\.0\.0\.1 .*Last check The PCE accepted the key\. .* UTC, just now/,
    )
    t.notMatch(await page.content(), new RegExp(`${good.api_secret}|${good.api_key}`))
    await picture(page, 'setup-desktop-3-registered')
    await page.reload()
    t.notMatch(await textOf(page), /are stored/, 'a reload sends nothing again')
  })

  t.test('a test of the connection', async (t) => {
    await page.getByRole('button', { name: 'Test the connection' }).click()
    t.match(await textOf(page), /The PCE answered and accepts your credentials/)
  })

  t.test('replacing the key with a mistyped one', async (t) => {
    await page.getByText('Replace the credentials').first().click()
    t.equal(await page.inputValue('[name=label]'), 'payments', 'where the PCE is need not be entered again')
    await page.fill('[name=api_key]', good.api_key)
    await page.fill('[name=api_secret]', 'wrong')
    await page.getByRole('button', { name: 'Replace the credentials' }).click()
    t.match(await textOf(page), /The new key was not accepted .* your registered credentials stay in use\. .*Working/)
    t.equal(await page.inputValue('[name=pce_port]'), good.pce_port)
    await picture(page, 'setup-desktop-4-refused-key')
  })

  t.test('insisting on it', async (t) => {
    await page.fill('[name=api_key]', good.api_key)
    await page.fill('[name=api_secret]', 'wrong')
    await page.getByLabel('Replace the registered key all the same').check()
    await page.getByRole('button', { name: 'Replace the credentials' }).click()
    t.match(await textOf(page), /stored, but do not work yet .*Not working/)
    await picture(page, 'setup-desktop-4-not-working')
  })

  t.test('removing the key', async (t) => {
    t.notOk(await page.getByRole('button', { name: 'Remove my credentials' }).isVisible(), 'takes a second click')
    await page.getByText('Remove…').click()
    await picture(page, 'setup-desktop-5-remove')
    await page.getByRole('button', { name: 'Remove my credentials' }).click()
    t.match(await textOf(page), /Your PCE credentials have been removed.*None/)
  })

  t.test('logging out', async (t) => {
    await page.getByRole('button', { name: 'Log out' }).click()
    t.equal(page.url(), `${url}/setup/logout`)
    t.match(await textOf(page), /You are logged out/)
    await picture(page, 'setup-desktop-6-logged-out')
    t.strictSame(
      (await context.cookies(url)).filter(({ name }) => name.startsWith('__Host-')),
      [],
      'the cookie is gone',
    )
    // The provider would let them in again without a question: that login is not ours to end.
    await context.clearCookies()
    await page.goBack()
    t.ok(page.url().startsWith(provider.origin), 'and going back shows nothing any more')
    await page.goto(`${url}/setup/logout`)
    await page.getByRole('link', { name: 'Log in again' }).click()
    t.ok(page.url().startsWith(provider.origin), 'the next login')
    t.ok(await page.locator('[name=password]').isVisible(), 'asks for the password')
  })

  expectQuiet(t, watch, 'all the way')
})

t.test('without any script', async (t) => {
  const { url, good } = await startServed(t, { people: PEOPLE })
  const { open } = openBrowser(t)
  const { page } = await open(url, { javaScriptEnabled: false })
  await logIn(page, url, 'alice')
  await fill(page, good)
  await page.getByRole('button', { name: 'Store the credentials' }).click()
  t.match(await textOf(page), /The PCE accepted them/)
  await page.getByText('Remove…').click()
  await page.getByRole('button', { name: 'Remove my credentials' }).click()
  t.match(await textOf(page), /have been removed/)
  await page.getByRole('button', { name: 'Log out' }).click()
  t.match(await textOf(page), /You are logged out/)
})

t.test('on a phone, and in the dark', async (t) => {
  const looks = {
    phone: { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
    'phone-dark': { viewport: { width: 390, height: 844 }, isMobile: true, colorScheme: 'dark' },
    'desktop-dark': { colorScheme: 'dark' },
    desktop: {},
    'high-contrast': { forcedColors: 'active' },
  } as const
  // Somebody else each time: nobody may register as often as all of them together.
  const personFor = (name: string) => ({ ...PEOPLE.alice, sub: `${name}@example.com` })
  const people = Object.fromEntries(Object.keys(looks).map((name) => [name, personFor(name)]))
  const { url, good } = await startServed(t, { people })
  const { open, picture } = openBrowser(t)
  for (const [name, look] of Object.entries(looks)) {
    const { page, watch, context } = await open(url, look)
    const check = async (state: string) => {
      await picture(page, `setup-${name}-${state}`)
      const { wide, small, faint } = await page.evaluate<Record<'wide' | 'small' | 'faint', string[]>>(MEASURE)
      t.strictSame(wide, [], `${name}, ${state}: nothing sticks out`)
      t.strictSame(small, [], 'everything to press is large enough')
      if (name !== 'high-contrast') t.strictSame(faint, [], 'all text can be read')
    }
    await logIn(page, url, name)
    await check('empty')
    await fill(page, { ...good, pce_port: '70000', label: 'x'.repeat(100) })
    await page.getByRole('button', { name: 'Store the credentials' }).click()
    await check('errors')
    await fill(page, { ...good, label: `${'long-name-'.repeat(9)}end` })
    await page.getByRole('button', { name: 'Store the credentials' }).click()
    await page.getByText('Remove…').click()
    await page.getByText('Replace the credentials').first().click()
    await check('registered')
    if (name === 'phone' || name === 'desktop-dark') {
      await fill(page, { api_key: good.api_key, api_secret: 'wrong' })
      await page.getByRole('button', { name: 'Replace the credentials' }).click()
      await check('refused-key')
      await page.getByText('Remove…').click()
    }
    await page.getByRole('button', { name: 'Remove my credentials' }).click()
    await page.getByRole('button', { name: 'Log out' }).click()
    await check('logged-out')
    expectQuiet(t, watch, name)
    await context.close()
  }
})

t.test('everything has an accessible name and a keyboard order', async (t) => {
  const { url, good } = await startServed(t, { people: PEOPLE })
  const { open } = openBrowser(t)
  const { page } = await open(url)
  await logIn(page, url, 'alice')
  t.equal(await page.getAttribute('html', 'lang'), 'en')
  t.strictSame(await page.locator('h1, h2').allInnerTexts(), [
    'Your PCE credentials',
    'Registered credentials',
    'Register a key',
  ])
  for (const label of ['PCE host', 'Port', 'Organisation ID', 'Name (optional)', 'API key', 'API secret']) {
    t.ok(await page.getByLabel(label, { exact: true }).isVisible(), label)
  }
  const order: string[] = []
  await page.evaluate('document.activeElement.blur()')
  // Chromium drops keys that come before it has painted the page.
  await found(async () => {
    await page.keyboard.press('Tab')
    return (await page.locator(':focus').count()) > 0
  }, 'the page takes keys')
  for (let at = 0; at < 9; at++) {
    if (at > 0) await page.keyboard.press('Tab')
    order.push(String(await page.evaluate('document.activeElement.name || document.activeElement.textContent.trim()')))
  }
  t.strictSame(order, [
    'Skip to content',
    'Log out',
    'pce_host',
    'pce_port',
    'pce_org_id',
    'api_key',
    'api_secret',
    'label',
    'Store the credentials',
  ])
  await fill(page, { ...good, pce_port: '70000' })
  await page.getByRole('button', { name: 'Store the credentials' }).click()
  const described = await page.getAttribute('[name=pce_port]', 'aria-describedby')
  const texts = await Promise.all(described!.split(' ').map((id) => page.locator(`#${id}`).innerText()))
  t.match(texts.join(' '), /whole number from 1 to 65535\. Usually 443 or 8443\./)
  t.match(await page.locator('main').ariaSnapshot(), /- alert:[^]*Nothing was stored/)
})

t.test('hostile names are shown as text', async (t) => {
  const names = [
    '<img src=x onerror=alert(1)>',
    '"><svg onload=alert(1)>',
    '</style><script>alert(1)</script>',
    `'"&<>{iss}\${iss}`,
  ]
  const people = Object.fromEntries(names.map((sub, at) => [`evil${at}`, { sub, groups: [GROUP_OF.admin] }]))
  const { url, good } = await startServed(t, { people })
  const { open, picture } = openBrowser(t)
  for (const [at, name] of names.entries()) {
    const { page, watch, context } = await open(url)
    await logIn(page, url, `evil${at}`)
    await fill(page, { ...good, label: name })
    await page.getByRole('button', { name: 'Store the credentials' }).click()
    t.match(await textOf(page), /The PCE accepted them/)
    t.strictSame(
      await page
        .locator('bdi')
        .allInnerTexts()
        .then((all) => all.filter((text) => text === name).length),
      2,
      name,
    )
    t.equal(
      await page.locator('main img, main svg, script, [onerror], [onload]').count(),
      0,
      'none of it is an element',
    )
    expectQuiet(t, watch, name)
    if (at === 0) await picture(page, 'setup-hostile-name')
    await context.close()
  }
})

const NEXT_FRAME = 'new Promise((resolve) => requestAnimationFrame(resolve))'

t.test('the content policy is in force', async (t) => {
  const { url } = await startServed(t, { people: PEOPLE })
  const { open } = openBrowser(t)
  const { page, watch } = await open(url)
  await logIn(page, url, 'alice')
  await page.evaluate(`
    document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))
    document.body.append(Object.assign(document.createElement('style'), { textContent: 'body { color: red }' }))
    document.body.append(Object.assign(document.createElement('img'), { src: 'https://evil.example/x.png' }))
    document.body.insertAdjacentHTML('beforeend', '<p style="color:red" onclick="window.ran = 2">x</p>')
    const form = Object.assign(document.createElement('form'), { action: 'https://evil.example/', method: 'post' })
    document.body.append(form)
    document.querySelector('[onclick]').click()
    form.submit()`)
  t.equal(await page.evaluate('window.ran'), undefined, 'an injected script does not run')
  t.equal(page.url(), `${url}/setup`, 'no form leaves the server')
  const directives = () => watch.violations.map((line) => line.split(' ')[0])
  // The last report may still be on its way.
  for (let frame = 0; frame < 300 && !directives().includes('form-action'); frame++) await page.evaluate(NEXT_FRAME)
  for (const directive of [
    'script-src-elem',
    'style-src-elem',
    'img-src',
    'style-src-attr',
    'script-src-attr',
    'form-action',
  ]) {
    t.ok(directives().includes(directive), `${directive} is watched, and blocks`)
  }
})

t.test('another site cannot act as the logged-in user', async (t) => {
  const { url, good, log } = await startServed(t, { people: PEOPLE })
  const { open } = openBrowser(t)
  const { page, context } = await open(url)
  await logIn(page, url, 'alice')
  await fill(page, good)
  await page.getByRole('button', { name: 'Store the credentials' }).click()

  // Another site for the browser: the same machine by another name.
  const attack = `<!doctype html><form id="f" method="post" action="${url}/setup/remove"></form>
    <form id="g" method="post" enctype="text/plain" action="${url}/setup/remove"><input name="_csrf" value="x"></form>
    <iframe id="i" src="${url}/setup" width="900" height="900"></iframe>`
  const server = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(attack))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => (server.closeAllConnections(), server.close()))
  const evil = `http://localhost:${(server.address() as AddressInfo).port}/`

  for (const form of ['f', 'g']) {
    const tab = await context.newPage()
    await tab.goto(evil)
    await Promise.all([tab.waitForURL(`${url}/**`), tab.evaluate(`document.getElementById('${form}').submit()`)])
    t.match(
      await tab.locator('body').innerText(),
      /form_expired|unauthorized|origin_not_allowed|unsupported_media_type/,
      `form ${form} is refused`,
    )
    await tab.close()
  }
  const tab = await context.newPage()
  await tab.goto(evil)
  const answers = await tab.evaluate(`Promise.all([
    fetch('${url}/setup', { credentials: 'include' }).then(() => 'read', () => 'blocked'),
    fetch('${url}/setup/remove', { method: 'POST', mode: 'no-cors', credentials: 'include', body: new URLSearchParams({ a: 1 }) })
      .then((response) => response.type, () => 'blocked'),
  ])`)
  t.equal((answers as string[])[0], 'blocked', 'a script elsewhere cannot read the page')
  const framed = tab.frames().find((frame) => frame.parentFrame() !== null)
  t.notMatch(await framed!.content().catch(() => ''), /Your PCE credentials/, 'nor show it in a frame')

  await page.reload()
  t.match(await textOf(page), /Working/, 'nothing was removed')
  const refused = log.filter(({ msg }) => msg === 'form refused')
  t.ok(refused.length >= 3, 'and the log tells of it')
})

t.test('an expired login', async (t) => {
  const { url, good, clock, provider } = await startServed(t, { people: PEOPLE })
  const { open, picture } = openBrowser(t)
  const { page } = await open(url)
  await logIn(page, url, 'alice')
  await fill(page, good)
  clock.offset += 15 * 60_000
  await page.getByRole('button', { name: 'Store the credentials' }).click()
  t.match(await textOf(page), /Please log in .*It lasts 15 minutes/)
  await picture(page, 'setup-desktop-7-login-over')
  clock.offset = 0
  await page.getByRole('link', { name: 'Log in' }).click()
  await consent(page, url)
  t.match(await textOf(page), /None/, 'one click leads back, and nothing was stored')
  t.ok(provider.seen.requests > 0)
})

t.test('a user without a role', async (t) => {
  const { url } = await startServed(t, { people: PEOPLE })
  const { open, picture } = openBrowser(t)
  const { page, watch } = await open(url)
  await logIn(page, url, 'nobody')
  t.match(await textOf(page), /No role forbidden_no_role .*Ask the operator/)
  await picture(page, 'setup-desktop-8-no-role')
  expectQuiet(t, watch, 'their page')
})
