/** Someone with a browser: keeps cookies as browsers do, fills forms, follows nothing by itself. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'

export const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

export class Visitor {
  readonly cookies = new Map<string, string>()
  constructor(
    readonly app: FastifyInstance,
    readonly origin: string,
    readonly headers: Record<string, string> = {},
  ) {}

  async get(path: string, headers: Record<string, string> = {}): Promise<LightMyRequestResponse> {
    return this.#keep(await this.app.inject({ method: 'GET', url: path, headers: this.#send(headers) }))
  }

  async post(
    path: string,
    fields: Record<string, string> | string,
    headers: Record<string, string> = {},
  ): Promise<LightMyRequestResponse> {
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    return this.#keep(
      await this.app.inject({
        method: 'POST',
        url: path,
        headers: this.#send({ ...type, origin: this.origin, 'sec-fetch-site': 'same-origin', ...headers }),
        payload: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
      }),
    )
  }

  /** Fills in and sends a form of the page at /setup, its hidden fields kept. */
  async submit(path: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}) {
    const page = await this.get('/setup')
    return this.post(path, { ...hiddenFields(page.body, path), ...fields }, headers)
  }

  /** Someone with a copy of the cookies of this moment. */
  copy(): Visitor {
    const copy = new Visitor(this.app, this.origin, this.headers)
    for (const [name, value] of this.cookies) copy.cookies.set(name, value)
    return copy
  }

  #send(headers: Record<string, string>): Record<string, string> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const all: Record<string, string> = {
      host: new URL(this.origin).host,
      accept: BROWSER,
      ...(cookie !== '' && { cookie }),
      ...this.headers,
      ...headers,
    }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
  }

  #keep(response: LightMyRequestResponse): LightMyRequestResponse {
    for (const { name, value, maxAge, expires } of response.cookies) {
      const isGone = maxAge === 0 || (expires !== undefined && expires.getTime() <= Date.now())
      if (isGone) this.cookies.delete(name)
      else this.cookies.set(name, encodeURIComponent(value))
    }
    return response
  }
}

/** The hidden fields of the form with this action. */
export function hiddenFields(page: string, action: string): Record<string, string> {
  const form = new RegExp(`<form[^>]*action="${action}"[^]*?</form>`).exec(page)?.[0]
  if (form === undefined) throw new Error(`no form for ${action} in ${page}`)
  const fields: Record<string, string> = {}
  for (const [, name, value] of form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)) {
    fields[name!] = value!
  }
  return fields
}
