import http, { type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import type { Test } from 'tap'
import {
  connectRemoteClient,
  createPceClient,
  serveClient,
  type PceClient,
  type PceError,
} from '../../pce-client/index.js'
import type { PceClientOptions, Timers } from '../../pce-client/types.js'

export const USER = 'api_1c5b2f'
export const SECRET = 'n0t-for-any-eye'

/** A request as the server got it. */
export interface Seen {
  method: string
  /** Path with query, below `/api/v2`. */
  path: string
  headers: IncomingMessage['headers']
  body: string
}

/** One answer of a scripted server. */
export interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: unknown
  /** Breaks the connection: before an answer, or after sending `body` of a longer announced one. */
  breaks?: boolean
  /** Never answers. */
  hangs?: boolean
}

export type Responder = (seen: Seen, index: number) => Reply

export interface TestServer {
  port: number
  seen: Seen[]
  requests(): string[]
}

/** An HTTP server that answers from a script and remembers what it was asked. */
export async function startServer(t: Test, respond: Responder): Promise<TestServer> {
  const seen: Seen[] = []
  const port = await listen(t, http.createServer(recording(seen, respond)))
  return { port, seen, requests: () => seen.map(({ method, path }) => `${method} ${path}`) }
}

export function recording(seen: Seen[], respond: Responder): RequestListener {
  return (request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const path = (request.url ?? '').replace(/^\/api\/v2/, '')
      const body = Buffer.concat(pieces).toString('utf8')
      seen.push({ method: request.method ?? '', path, headers: request.headers, body })
      answer(response, respond(seen.at(-1)!, seen.length - 1))
    })
  }
}

function answer(response: ServerResponse, { status = 200, headers = {}, body, breaks, hangs }: Reply): void {
  if (hangs === true) return
  const isRaw = typeof body === 'string' || Buffer.isBuffer(body)
  const text = body === undefined ? '' : isRaw ? body : JSON.stringify(body)
  const type = isRaw ? {} : { 'content-type': 'application/json' }
  if (breaks !== true) {
    response.writeHead(status, { ...type, ...headers }).end(text)
    return
  }
  if (body === undefined) {
    response.socket?.destroy()
    return
  }
  response.writeHead(status, { ...type, ...headers, 'content-length': String(Buffer.byteLength(text) + 100) })
  response.write(text, () => response.socket?.destroy())
}

export async function listen(t: Test, server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A clock that a wait moves forward at once, and the waits it was asked for. */
export function fakeTimers(random = 0.5): { timers: Timers; waits: number[]; advance: (ms: number) => void } {
  const waits: number[] = []
  let now = Date.UTC(2026, 2, 1)
  const sleep = (ms: number, signal?: AbortSignal) => {
    signal?.throwIfAborted()
    waits.push(ms)
    now += ms
    return Promise.resolve()
  }
  return { waits, advance: (ms) => (now += ms), timers: { now: () => now, random: () => random, sleep } }
}

/** A client of a server on this machine, with credentials, whose waits take no time. */
export function clientOf(server: Pick<TestServer, 'port'>, options: Partial<PceClientOptions> = {}) {
  const clock = fakeTimers()
  const client = createPceClient({ url: 'http://127.0.0.1', port: server.port, timers: clock.timers, ...options })
  client.setCredentials(USER, SECRET)
  return Object.assign(client, { waits: clock.waits, advance: clock.advance })
}

/** A client at the other end of a port, whose requests this client makes. */
export function remoteOf(t: Test, client: PceClient): PceClient {
  const { port1, port2 } = new MessageChannel()
  const served = serveClient(client, port1)
  t.teardown(() => served.close())
  return connectRemoteClient(served.address, port2)
}

/** The error that a call ends with; a call that succeeds instead fails the test. */
export async function rejection(promise: Promise<unknown>): Promise<PceError> {
  const value: unknown = await promise.then(
    (resolved) => ({ resolved }),
    (error: unknown) => error,
  )
  if (value instanceof Error) return value as PceError
  throw new Error(`resolved instead of failing: ${inspect(value)}`)
}
