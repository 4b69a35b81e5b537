/** What the tests in a browser have in common: the login at the provider, and what a page may not do. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import type { Watch } from './open-browser.js'

/** On the page of the provider, and back to ours at `url`. */
export async function enterPassword(page: Page, url: string, login: string): Promise<void> {
  await page.fill('[name=login]', login)
  await page.fill('[name=password]', 'any')
  await page.click('button[type=submit], input[type=submit]')
  await consent(page, url)
}

/** The provider asks once for each browser. */
export async function consent(page: Page, url: string): Promise<void> {
  while (!page.url().startsWith(url)) await page.click('button[type=submit], input[type=submit]')
}

export const textOf = async (page: Page) => (await page.locator('main').innerText()).replace(/\s+/g, ' ')

/** The compact form of axe, which a page reads in half the time. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Returns what breaks a rule of WCAG 2.2 A and AA, or of good practice, that axe can check: the name of each rule with the
 * first element. Only this leaves the page, because everything else that axe finds is much larger.
 */
export function barriersOf(page: Page): Promise<string[]> {
  // Handed over as a text, which no content policy of the page keeps out.
  return page.evaluate<string[]>(`${AXE}
    axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 200)))`)
}

export function expectQuiet(t: Test, watch: Watch, what: string): void {
  t.strictSame(
    watch,
    { violations: [], console: [], dialogs: [], foreign: [] },
    `${what}: nothing ran, nothing was blocked`,
  )
}

/**
 * In the page: what is wider than the window, what is smaller to press than 24 px (WCAG 2.2, 2.5.8), and text with a contrast
 * below 4.5 (WCAG 2.2, 1.4.3).
 */
export const MEASURE = `(() => {
  const seen = (element) => element.checkVisibility() && element.getBoundingClientRect().width > 0
  const nameOf = (element) => element.tagName + ' ' + (element.textContent || element.name || '').trim().slice(0, 40)
  const all = [...document.querySelectorAll('body *')].filter(seen)
  const wide = all.filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  const small = all.filter((element) => element.matches('button, .button, input, select, summary') &&
    element.getBoundingClientRect().height < 24)
  const colorOf = (text) => (text.match(/[\\d.]+/g) || []).map(Number)
  const light = (color) => color.slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0)
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = colorOf(getComputedStyle(at).backgroundColor)
      if (color.length === 3 || color[3] > 0) return color
    }
    return [255, 255, 255]
  }
  const faint = all.filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .filter((element) => !element.matches('.skip, option'))
    .filter((element) => {
      const [a, b] = [light(colorOf(getComputedStyle(element).color)), light(behind(element))]
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5
    })
  return { wide: wide.map(nameOf), small: small.map(nameOf), faint: faint.map(nameOf) }
})()`
