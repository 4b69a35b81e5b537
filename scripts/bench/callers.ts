import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'

export type Json = Record<string, unknown>

/** A caller: one person with one connection. */
export interface Poster {
  /** Posts a body and returns the answer. Rejects with Error for any status except 200. */
  post(path: string, body: object): Promise<Json>
  /** Does the same as `post`, but returns the text of the answer. */
  send(path: string, body: object, headers?: Record<string, string>): Promise<string>
  close(): void
}

/** Creates the function that posts. `ca` is needed for a TLS server with a self-signed certificate. */
export function createPoster(origin: string, accessToken: string, { ca }: { ca?: string } = {}): Poster {
  const isSecure = origin.startsWith('https:')
  const options = { keepAlive: true, maxSockets: 1 }
  const agent = isSecure ? new HttpsAgent({ ...options, ca }) : new HttpAgent(options)
  const request = isSecure ? requestHttps : requestHttp
  const send: Poster['send'] = (path, body, headers = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(`${origin}${path}`, {
        method: 'POST',
        agent,
        headers: {
          authorization: `Bearer ${accessToken}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
        },
      })
      sent.once('error', reject)
      sent.once('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.once('error', reject)
        response.once('end', () => {
          if (response.statusCode === 200) resolve(text)
          else reject(new Error(`${path}: ${response.statusCode} ${text.slice(0, 200)}`))
        })
      })
      sent.end(JSON.stringify(body))
    })
  return {
    send,
    post: async (path, body) => JSON.parse(await send(path, body)) as Json,
    close: () => agent.destroy(),
  }
}

/**
 * Calls a tool. Returns its answer and, if there is one, the confirm token. Rejects if there is no answer, but not if
 * the answer is an error of the tool.
 */
export async function callTool(
  { post }: Pick<Poster, 'post'>,
  name: string,
  args: object,
  confirmToken?: string,
): Promise<{ isError: boolean; answer: Json }> {
  const meta = confirmToken === undefined ? {} : { _meta: { confirm_token: confirmToken } }
  const params = { name, arguments: args, ...meta }
  const { result, error } = await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  if (result === undefined) throw new Error(`${name}: ${JSON.stringify(error)}`)
  const {
    isError = false,
    structuredContent,
    content,
  } = result as {
    isError?: boolean
    structuredContent?: Json
    content: { text: string }[]
  }
  return { isError, answer: structuredContent ?? (JSON.parse(content[0]!.text) as Json) }
}

export interface LoadRun {
  /** The duration of each successful piece of work, in milliseconds. */
  times: number[]
  seconds: number
  failures: number
  /** The reason of the first failure. */
  reason?: string
}

/**
 * Runs all callers concurrently until `isOver` returns true. Each caller does one piece of work after the other.
 * `isOver` receives the number of milliseconds since the start.
 */
export async function load<T>(
  callers: readonly T[],
  work: (caller: T) => Promise<unknown>,
  isOver: (elapsed: number) => boolean,
): Promise<LoadRun> {
  const run: LoadRun = { times: [], seconds: 0, failures: 0 }
  const started = performance.now()
  await Promise.all(
    callers.map(async (caller) => {
      while (!isOver(performance.now() - started)) {
        const begun = performance.now()
        try {
          await work(caller)
          run.times.push(performance.now() - begun)
        } catch (error) {
          run.failures++
          run.reason ??= String(error)
        }
      }
    }),
  )
  run.seconds = (performance.now() - started) / 1000
  return run
}
