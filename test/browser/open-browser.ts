/** A headless Chromium (Debian's packages) that notes everything a page should not do. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

/**
 * Chromium without windows needs a third of the processor time of Chromium that draws into invisible windows. What they
 * do with a page, its forms, cookies and policies, is the same code.
 */
const CHROMIUM = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => existsSync(path))
/** Where pictures go. Git does not keep the folder. */
const ARTIFACTS = fileURLToPath(new URL('../../test-artifacts', import.meta.url))
/** Pictures are for people, and drawing one takes longer than all that a test asks of a page: only with `PICTURES=all`. */
const HAS_PICTURES = process.env['PICTURES'] === 'all'

interface Test {
  teardown(fn: () => unknown): void
}

/** What a page did, or tried to do, that a page without scripts never does. */
export interface Watch {
  /** Blocked by the content policy. */
  violations: string[]
  /** Errors and warnings on the console, but for the status of a navigation. */
  console: string[]
  dialogs: string[]
  /** Requests to anything else than the page's own origin. */
  foreign: string[]
}

/**
 * Starts the browser of a file, whose tests share it. The result gives a test what it needs; call it after whatever the
 * test visits: servers wait for pages to go when they close, and what is opened last is closed first.
 */
export async function startBrowser(file: Test) {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  file.teardown(() => browser.close())
  mkdirSync(ARTIFACTS, { recursive: true })
  return (t: Test) => openIn(browser, t)
}

function openIn(browser: Browser, t: Test) {
  /** Opens a profile of its own: nothing is shared with the pages of other calls. `origin` is what is watched. */
  async function open(origin: string, options: BrowserContextOptions = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
    t.teardown(() => context.close())
    context.setDefaultTimeout(15_000)
    const page = await context.newPage()
    const watch: Watch = { violations: [], console: [], dialogs: [], foreign: [] }
    if (options.javaScriptEnabled !== false) await reportViolations(page, origin, watch)
    page.on('console', (message) => {
      const isStatus = message.text().startsWith('Failed to load resource: the server responded with a status of 4')
      if (page.url().startsWith(origin) && !isStatus) watch.console.push(message.text())
    })
    page.on('dialog', (dialog) => {
      watch.dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    page.on('request', (request) => {
      const from = request.frame().url()
      if (from.startsWith(origin) && !request.isNavigationRequest() && !request.url().startsWith('data:')) {
        watch.foreign.push(request.url())
      }
    })
    return { context, page, watch }
  }

  const picture = async (page: Page, name: string, folder = HAS_PICTURES ? ARTIFACTS : null) => {
    if (folder !== null) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
  }
  return { open, picture }
}

async function reportViolations(page: Page, origin: string, watch: Watch): Promise<void> {
  await page.exposeFunction('reportViolation', (where: string, what: string) => {
    if (where.startsWith(origin)) watch.violations.push(what)
  })
  await page.addInitScript(`document.addEventListener('securitypolicyviolation', (event) =>
    window.reportViolation(location.href, event.violatedDirective + ' ' + event.blockedURI))`)
}
