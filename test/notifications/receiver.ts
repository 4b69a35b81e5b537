/** A receiver of notifications: an https server on loopback that verifies signatures by itself, and answers as it is told. */
import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createPost, type Post, type PostOptions } from '../../notifications/post-message.js'
import { createPceHosts } from '../../plugins/context/pce-hosts/create-pce-hosts.js'
import type { Json } from '../contract/authenticated-service.js'

export const SECRET = Buffer.alloc(32, 5)

const pki = (() => {
  let made: { cert: string; key: string; path: string } | undefined
  return () => {
    if (made !== undefined) return made
    const folder = mkdtempSync(join(tmpdir(), 'receiver-'))
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    const subject = ['-subj', '/CN=receiver', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], { stdio: 'pipe' })
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
    made = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8'), path: cert }
    return made
  }
})()

export interface Received {
  id: string
  seconds: number
  isSigned: boolean
  type: string
  data: Json
  body: string
}

type Answer = (answer: ServerResponse, request: IncomingMessage) => void
export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (answer) =>
    answer.writeHead(code, headers).end('ignored')
/** Takes the message and says nothing. */
export const silence: Answer = () => undefined

export interface Receiver {
  url: string
  port: number
  /** The file with its certificate. */
  certPath: string
  /** What came, in order. */
  received: Received[]
  /** What the receiver answers from now on. */
  answer: Answer
  /** The function with which this receiver is posted to, over the guard that the server has. */
  post: (more?: Partial<PostOptions>) => Post
  /** Stops listening, and lets go of every connection. */
  stop(): Promise<void>
  /** Listens again, at the same port. */
  start(): Promise<void>
}

export async function startReceiver(t: Test): Promise<Receiver> {
  const tls = pki()
  const received: Received[] = []
  const server = createServer(tls, (request, answer) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const [id, seconds, signature] = ['id', 'timestamp', 'signature'].map(
        (name) => request.headers[`webhook-${name}`] as string,
      ) as [string, string, string]
      const right = createHmac('sha256', SECRET).update(`${id}.${seconds}.${body}`).digest('base64')
      const { type, data } = JSON.parse(body) as { type: string; data: Json }
      received.push({ id, seconds: Number(seconds), isSigned: signature === `v1,${right}`, type, data, body })
      receiver.answer(answer, request)
    })
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  const port = await listen(0)
  const stop = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  t.teardown(stop)
  const url = `https://127.0.0.1:${port}/hook-path-is-secret`
  const receiver: Receiver = {
    url,
    port,
    certPath: tls.path,
    received,
    answer: status(204),
    post: (more) => createPost({ url, guard: guardOf('127.0.0.1', port), userAgent: 'test/1', ca: tls.cert, ...more }),
    stop,
    start: async () => void (server.listening || (await listen(port))),
  }
  return receiver
}

/** The guard of a receiver that the operator has named, as the server makes it; names resolve to `addresses`. */
export function guardOf(host: string, port: number, addresses: readonly string[] = []) {
  const hosts = createPceHosts({
    allowed: [`${host}:${port}`],
    what: 'receiver',
    resolve: () => Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))),
  })
  return hosts.guard(host, port)
}
