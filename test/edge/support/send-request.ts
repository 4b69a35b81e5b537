/** Plain requests over whatever carries them, so that no client of ours or of a library hides what came back. */
import { connect, constants } from 'node:http2'
import { request as requestHttp, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Readable } from 'node:stream'

/** Where requests go: an origin, over a Unix socket or TLS where those are given. */
export interface Target {
  /** `https://localhost:8443`; what stands in Host. */
  origin: string
  socketPath?: string
  /** PEM of the authority to trust. */
  ca?: string
  /** 1.1 without it. */
  version?: '1.1' | '2'
}

export interface Sent {
  method?: string
  path?: string
  headers?: Record<string, string>
  body?: string
  /** Breaks the connection off, or resets the stream. */
  signal?: AbortSignal
  /** Takes the answer as it comes. */
  onData?: (text: string) => void
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/** One request on a connection of its own. Rejects when there is no whole answer. */
export function sendRequest(target: Target, sent: Sent = {}): Promise<Answer> {
  return target.version === '2' ? sendHttp2(target, sent) : sendHttp1(target, sent)
}

function sendHttp1({ origin, socketPath, ca }: Target, sent: Sent): Promise<Answer> {
  const { method = 'POST', path = '/mcp', headers = {}, body = '', signal, onData } = sent
  const request = origin.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const url = new URL(path, origin)
    const options = { method, headers: { ...lengthOf(method, body), ...headers }, agent: false as const, signal }
    const where = socketPath === undefined ? {} : { socketPath }
    const sending = request(
      url,
      { ...options, ...where, ...(ca !== undefined && { ca }) },
      (response: IncomingMessage) => {
        const { statusCode: status = 0, headers: received } = response
        readAll(response, onData).then((text) => resolve({ status, headers: received, body: text }), reject)
      },
    )
    sending.on('error', reject)
    sending.end(body)
  })
}

function sendHttp2({ origin, ca }: Target, sent: Sent): Promise<Answer> {
  const { method = 'POST', path = '/mcp', headers = {}, body = '', signal, onData } = sent
  return new Promise((resolve, reject) => {
    const session = connect(origin, { ...(ca !== undefined && { ca }) })
    session.on('error', reject)
    const head = { ':method': method, ':path': path, ...lengthOf(method, body), ...headers }
    const stream = session.request(head, { endStream: method === 'GET' })
    const reset = () => stream.close(constants.NGHTTP2_CANCEL)
    signal?.addEventListener('abort', reset, { once: true })
    stream.on('error', reject)
    stream.on('close', () => {
      session.close()
      if (!isAnswered) reject(new Error('the stream ended without an answer'))
    })
    let isAnswered = false
    stream.on('response', ({ ':status': status = 0, ...received }) => {
      isAnswered = true
      readAll(stream, onData).then((text) => resolve({ status, headers: received, body: text }), reject)
    })
    if (method !== 'GET') stream.end(body)
  })
}

const lengthOf = (method: string, body: string): Record<string, string> =>
  method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(body)) }

async function readAll(stream: Readable, onData?: (text: string) => void): Promise<string> {
  let text = ''
  stream.setEncoding('utf8')
  for await (const chunk of stream as AsyncIterable<string>) {
    text += chunk
    onData?.(chunk)
  }
  return text
}
