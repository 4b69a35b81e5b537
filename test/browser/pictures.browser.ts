/** Pictures in a real browser: what can be done with them, what hostile names cannot, and MCP Apps in the host of the extension's SDK. */
import { createHash } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t from 'tap'
import { drawPicture } from '../../pictures/draw-picture.js'
import { renderAppPage } from '../../pictures/page/app-page.js'
import { renderHtmlFile } from '../../pictures/page/render-html.js'
import { renderSvgFile } from '../../pictures/page/render-svg.js'
import type { PictureKind } from '../../pictures/picture.js'
import { readScript } from '../../pictures/read-script.js'
import { mapAnswer, pathsAnswer } from '../pictures/samples.js'
import { barriersOf, expectQuiet } from './in-browser.js'
import { startBrowser } from './open-browser.js'

const openBrowser = await startBrowser(t)

const FOLDER = mkdtempSync(join(tmpdir(), 'pictures-'))
const PARTS = {
  script: await readScript('page'),
  hash: (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`,
  foot: 'Drawn by a test.',
}

function fileOf(name: string, kind: PictureKind, answer: object): string {
  const path = join(FOLDER, name)
  const picture = drawPicture(kind, [answer])
  writeFileSync(path, name.endsWith('.svg') ? renderSvgFile(picture) : renderHtmlFile(picture, PARTS))
  return pathToFileURL(path).href
}

const seenEdges = (page: Page) => page.locator('.stage > svg:not([hidden]) .edge:visible path').count()

t.test('a large map: search, switches, views, zoom', async (t) => {
  const { open, picture } = openBrowser(t)
  const url = fileOf('large.html', 'map', mapAnswer(300, 3000))
  const { page, watch } = await open(url)
  await page.goto(url)
  await picture(page, 'map-folded')
  const all = await seenEdges(page)
  await page.getByLabel('allowed', { exact: true }).uncheck()
  const fewer = await seenEdges(page)
  t.ok(fewer > 0 && fewer < all, `${fewer} of ${all} lines are left`)
  await page.getByLabel('allowed', { exact: true }).check()
  await page.fill('#find', 'application-299 (test)')
  t.equal(await page.locator('#found').innerText(), '1 found')
  t.ok(await page.getByLabel('All 312').isChecked(), 'what is folded is found in the whole')
  t.equal(await page.locator('.stage > svg:not([hidden]) .node.hit').count(), 1)
  await picture(page, 'map-found')
  await page.locator('.stage').focus()
  await page.keyboard.press('+')
  t.match(await page.locator('.stage > svg:not([hidden]) > g').getAttribute('transform'), /scale\(1\.3\)/)
  await page.keyboard.press('Escape')
  t.equal(await page.locator('.focused').count(), 0)
  expectQuiet(t, watch, 'all the way')
})

t.test('light, dark, narrow; for screen readers, and without scripts', async (t) => {
  const { open, picture } = openBrowser(t)
  for (const [name, kind, answer] of [
    ['map', 'map', mapAnswer(10, 30)],
    ['paths', 'paths', pathsAnswer()],
  ] as const) {
    const url = fileOf(`${name}.html`, kind, answer)
    for (const look of [
      {},
      { colorScheme: 'dark' },
      { viewport: { width: 390, height: 800 } },
      { javaScriptEnabled: false },
    ] as const) {
      const { page, context, watch } = await open(url, look)
      await page.goto(url)
      await picture(page, `${name}-${Object.keys(look).join() || 'light'}`)
      t.ok(await page.locator('.stage > svg').first().isVisible())
      if (!('javaScriptEnabled' in look)) {
        t.strictSame(await barriersOf(page), [], `${name}: accessible`)
      }
      expectQuiet(t, watch, name)
      await context.close()
    }
  }
})

const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '"><svg onload=alert(1)>',
  '</style></title></text></svg><script>alert(1)</script>',
  ']]><!--',
]

t.test('hostile names are text, in pages and in drawings', async (t) => {
  const { open, picture } = openBrowser(t)
  const { page, watch } = await open(pathToFileURL(FOLDER).href)
  for (const [at, name] of HOSTILE.entries())
    for (const [kind, answer] of [
      ['map', mapAnswer(8, 20, (group) => `${name}${group}`)],
      ['paths', pathsAnswer(name)],
    ] as const)
      for (const format of ['html', 'svg']) {
        const url = fileOf(`hostile-${at}-${kind}.${format}`, kind, answer)
        await page.goto(url)
        t.equal(
          await page.locator('img, [onerror], [onload], main script, svg script').count(),
          0,
          `${kind}.${format}: none of it is an element`,
        )
        const text = await page.evaluate<string>('document.documentElement.textContent')
        t.ok(text.includes(name), 'and all of it is text')
        if (at === 0 && format === 'html') await picture(page, `hostile-${kind}-${format}`)
        expectQuiet(t, watch, `${kind}.${format}`)
      }
})

/** The reference host of the extension's SDK around a page of ours; `window.result` is what it hands over. */
const HOST = `
  import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge'
  window.start = async (html, result) => {
    const frame = document.createElement('iframe')
    frame.sandbox = 'allow-scripts'
    frame.style = 'width: 1000px; height: 900px; border: 0'
    document.body.append(frame)
    const bridge = new AppBridge(null, { name: 'host', version: '1' }, { openLinks: {} }, { hostContext: { theme: 'dark' } })
    const initialized = new Promise((resolve) => (bridge.oninitialized = resolve))
    window.sizes = 0
    bridge.onsizechange = () => { window.sizes++ }
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow))
    frame.srcdoc = html
    await initialized
    await bridge.sendToolInput({ arguments: {} })
    await bridge.sendToolResult(result)
    window.end = () => bridge.teardownResource({})
    return bridge.getAppVersion()
  }`

t.test('an MCP App shakes hands with the reference host, draws what it is given, and ends', async (t) => {
  const bundled = await build({
    stdin: { contents: HOST, resolveDir: fileURLToPath(new URL('../..', import.meta.url)) },
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
  })
  const server = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>host</title><body>'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => (server.closeAllConnections(), server.close()))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { open, picture } = openBrowser(t)
  const script = await readScript('app')
  const { page, watch } = await open(url)
  const frame = page.frameLocator('iframe')
  const start = async (kind: PictureKind, result: object) => {
    await page.goto(url)
    await page.addScriptTag({ content: bundled.outputFiles[0]!.text })
    return page.evaluate(`window.start(${JSON.stringify(renderAppPage(kind, script))}, ${JSON.stringify(result)})`)
  }
  // The SDK tells the console of every message.
  const expectQuietHost = (what: string) => {
    const spoken = watch.console.filter((line) => !/^(Parsed|Sending) message/.test(line))
    expectQuiet(t, { ...watch, console: spoken }, what)
  }
  const app = await start('map', {
    content: [],
    structuredContent: mapAnswer(10, 30, (at) => `${HOSTILE[0]}${at}`),
  })
  t.same(app, { name: 'svc-mcp map', version: '1' })
  await frame.locator('.stage > svg').first().waitFor()
  t.equal(await frame.locator('html').getAttribute('data-theme'), 'dark')
  t.equal(await frame.locator('tbody tr').count(), 30)
  t.equal(await frame.locator('img, [onerror]').count(), 0)
  t.ok(Number(await page.evaluate('window.sizes')) > 0, 'it says how large it is')
  await picture(page, 'app-map')
  t.same(await page.evaluate('window.end()'), {})
  expectQuietHost('in the host')
  for (const name of HOSTILE)
    for (const [kind, structuredContent] of [
      ['map', mapAnswer(8, 20, (group) => `${name}${group}`)],
      ['paths', pathsAnswer(name)],
    ] as const) {
      await start(kind, { content: [], structuredContent })
      await frame.locator('.stage > svg').first().waitFor()
      const elements = 'img, [onerror], [onload], main script, svg script'
      t.equal(await frame.locator(elements).count(), 0, `${kind}: none of it is an element`)
      t.ok((await frame.locator('html').evaluate((html) => html.textContent)).includes(name), 'all of it is text')
      expectQuietHost(`${kind} in the host`)
    }
  await start('paths', { isError: true, content: [{ type: 'text', text: '{"error":"pce_error"}' }] })
  await frame.getByText('The call failed, so there is nothing to draw.').waitFor()
})
