/** Somebody with a browser who logs in and decides on the page, each request at the replica that the test names. */
import { sendRequest, type Target } from '../edge/support/send-request.js'
import { Browser, type Page } from '../identity/browser.js'
import type { IdentityProvider } from '../identity/identity-provider.js'
import { hiddenFields } from '../setup/visitor.js'

interface Service {
  publicUrl: string
  /** By number. */
  targetOf: (replica: number) => Target
}

export type Approver = ReturnType<typeof createApprover>

export function createApprover({ publicUrl, targetOf }: Service, idp: IdentityProvider, login: string) {
  let at = 0
  const browser = new Browser(async (input, init = {}) => {
    const url = new URL(input)
    if (url.origin !== publicUrl) return fetch(url, init)
    const body = init.body === undefined ? '' : (init.body as URLSearchParams).toString()
    const headers = new Headers(init.headers)
    headers.set('host', url.host)
    if (body !== '') headers.set('content-type', 'application/x-www-form-urlencoded')
    const path = `${url.pathname}${url.search}`
    const answer = await sendRequest(targetOf(at), {
      method: init.method ?? 'GET',
      path,
      headers: Object.fromEntries(headers),
      body,
    })
    const received = new Headers()
    for (const [name, value] of Object.entries(answer.headers))
      for (const one of [value ?? []].flat()) received.append(name, one)
    return new Response(answer.body, { status: answer.status, headers: received })
  })
  const pathOf = (id: string) => `/approve/${id}`

  /** What is there, or null where the replica died on the way. */
  async function orDead<T>(replica: number, work: () => Promise<T>): Promise<T | null> {
    at = replica
    try {
      return await work()
    } catch (error) {
      if (/ECONNRESET|ECONNREFUSED|ENOENT|EPIPE|socket hang up|aborted/.test(String(error))) return null
      throw error
    }
  }

  return {
    /** Begins at the page of a request and stops before the provider has said who it is: what the browser would open next. */
    async beginLogin(replica: number, id: string): Promise<string> {
      at = replica
      const page = await browser.open(`${publicUrl}${pathOf(id)}`)
      const back = await idp.logIn(browser, page, login, publicUrl)
      if (back.status !== 0) throw new Error(`no login: ${back.url} ${back.status} ${back.body.slice(0, 500)}`)
      return back.url
    },
    /** Opens what a login led to. */
    async finishLogin(replica: number, url: string): Promise<Page> {
      at = replica
      return browser.open(url)
    },
    /** The page of a request. Null where the replica died. */
    look: (replica: number, id: string): Promise<Page | null> =>
      orDead(replica, () => browser.open(`${publicUrl}${pathOf(id)}`)),
    /** Presses a button of a page: the answer itself, without what it leads to. Null where the replica died. */
    press: (replica: number, { body }: Page, id: string, verdict: 'approve' | 'deny') =>
      orDead(replica, () =>
        browser.fetch(`${publicUrl}${pathOf(id)}`, {
          method: 'POST',
          headers: { origin: publicUrl },
          body: new URLSearchParams({ ...hiddenFields(body, pathOf(id)), verdict }),
        }),
      ),
  }
}
