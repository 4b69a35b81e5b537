/** A page as the scripted browser sees it. */
export interface Page {
  url: string
  status: number
  headers: Headers
  body: string
}

interface Cookie {
  host: string
  path: string
  value: string
}

const MOST_REDIRECTS = 20

/**
 * Enough of a browser for a login: it keeps cookies by host and path (ports share them, as in real ones), follows
 * redirects and submits forms. It runs no script.
 */
export class Browser {
  readonly #cookies = new Map<string, Cookie>()

  /** @param load fetches; one of the test's own trusts what Node.js does not. */
  constructor(private readonly load: typeof fetch = fetch) {}

  /** One request, no redirect followed. */
  async fetch(url: string, init: RequestInit = {}): Promise<Response> {
    const cookie = this.cookieHeader(url)
    const headers = new Headers(init.headers)
    if (!headers.has('accept')) headers.set('accept', 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8')
    if (cookie !== '') headers.set('cookie', cookie)
    const response = await this.load(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) this.#keep(url, line)
    return response
  }

  /**
   * Opens a page and follows redirects. `stopAt` ends the walk before a URL that begins like this is fetched; it is
   * returned with status 0.
   */
  async open(url: string, init: RequestInit = {}, stopAt?: string): Promise<Page> {
    let next = { url, init }
    for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
      if (stopAt !== undefined && next.url.startsWith(stopAt)) {
        return { url: next.url, status: 0, headers: new Headers(), body: '' }
      }
      const response = await this.fetch(next.url, next.init)
      const location = response.headers.get('location')
      if (response.status < 300 || response.status > 399 || location === null) {
        return { url: next.url, status: response.status, headers: response.headers, body: await response.text() }
      }
      await response.body?.cancel()
      next = { url: new URL(location, next.url).href, init: {} }
    }
    throw new Error(`${url} redirects without end`)
  }

  /** Submits the first form of a page with these fields over the page's own hidden ones, and follows redirects. */
  submit(page: Page, fields: Record<string, string>, stopAt?: string): Promise<Page> {
    const action = /<form[^>]*\baction="([^"]*)"/.exec(page.body)?.[1]
    if (action === undefined)
      throw new Error(`there is no form at ${page.url}: ${page.status} ${page.body.slice(0, 500)}`)
    const body = new URLSearchParams()
    for (const [tag] of page.body.matchAll(/<input[^>]*\btype="hidden"[^>]*>/g)) {
      const name = /\bname="([^"]*)"/.exec(tag)?.[1]
      if (name !== undefined) body.set(name, unescape(/\bvalue="([^"]*)"/.exec(tag)?.[1] ?? ''))
    }
    for (const [name, value] of Object.entries(fields)) body.set(name, value)
    return this.open(
      new URL(unescape(action), page.url).href,
      { method: 'POST', body, headers: origin(page.url) },
      stopAt,
    )
  }

  /** What a request to this URL would carry. */
  cookieHeader(url: string): string {
    const { hostname, pathname } = new URL(url)
    return [...this.#cookies]
      .filter(([, { host, path }]) => host === hostname && isUnder(pathname, path))
      .map(([key, { value }]) => `${key.slice(key.lastIndexOf(' ') + 1)}=${value}`)
      .join('; ')
  }

  /** As if the browser's data had been cleared. */
  forget(): void {
    this.#cookies.clear()
  }

  #keep(url: string, line: string): void {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
    const named = new Map(
      attributes.map((part) => [part.split('=')[0]!.toLowerCase(), part.slice(part.indexOf('=') + 1)]),
    )
    const name = pair.slice(0, pair.indexOf('='))
    const host = new URL(url).hostname
    const path = named.get('path') ?? '/'
    const key = `${host} ${path} ${name}`
    const expires = named.get('expires')
    const isGone = named.get('max-age') === '0' || (expires !== undefined && Date.parse(expires) <= Date.now())
    if (isGone) this.#cookies.delete(key)
    else this.#cookies.set(key, { host, path, value: pair.slice(pair.indexOf('=') + 1) })
  }
}

const origin = (url: string) => ({ origin: new URL(url).origin })
const isUnder = (pathname: string, path: string) =>
  path === '/' || pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`)
const unescape = (text: string) => text.replace(/&(amp|lt|gt|quot|#39|#x27);/g, (_, name: string) => ENTITIES[name]!)
const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", '#x27': "'" }
