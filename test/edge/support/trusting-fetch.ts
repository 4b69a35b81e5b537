import { request as requestHttps } from 'node:https'
import { Readable } from 'node:stream'

/**
 * `fetch` that trusts one more authority, which Node.js can only be told about when it starts. Knows what clients here use of it: method,
 * headers, text bodies, a signal; answers are streamed; redirects are not followed.
 */
export function trustingFetch(ca: string): typeof fetch {
  return async (input, init = {}) => {
    const url = input instanceof Request ? input.url : String(input)
    if (!url.startsWith('https:')) return fetch(input, init)
    const { body: given = '' } = init
    if (typeof given !== 'string' && !(given instanceof URLSearchParams)) throw new TypeError('only texts are sent')
    const body = given.toString()
    const headers = new Headers(init.headers)
    if (given instanceof URLSearchParams && !headers.has('content-type'))
      headers.set('content-type', 'application/x-www-form-urlencoded')
    if (body !== '') headers.set('content-length', String(Buffer.byteLength(body)))
    return new Promise((resolve, reject) => {
      const options = { method: init.method ?? 'GET', headers: Object.fromEntries(headers), ca, agent: false as const }
      const sending = requestHttps(url, { ...options, signal: init.signal ?? undefined }, (answer) => {
        const received = new Headers()
        for (let at = 0; at < answer.rawHeaders.length; at += 2)
          received.append(answer.rawHeaders[at]!, answer.rawHeaders[at + 1]!)
        const status = answer.statusCode!
        const isEmpty = status === 204 || status === 304
        if (isEmpty) answer.resume()
        const stream = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream)
        resolve(new Response(stream, { status, headers: received }))
      })
      sending.on('error', reject)
      sending.end(body)
    })
  }
}
