import type { FastifyInstance } from 'fastify'
import { redactSecrets } from './redact-secrets.js'

const KEPT = 10_000

export interface RecordedRequest {
  method: string
  /** The path as it was sent, without the query: `/api/v2/orgs/1/labels`. */
  path: string
  query: Record<string, string>
  /** The authentication scheme, such as `Basic`; null without an `authorization` header. */
  scheme: string | null
  /** All headers of the request except `authorization`. */
  headers: Record<string, string | string[] | undefined>
  /**
   * The body as parsed JSON, or as text if it was not JSON. Passwords and other secrets are replaced. Undefined if
   * there was no body.
   */
  body: unknown
  /** The status of the answer; null until the answer has been sent, or if the connection broke before that. */
  status: number | null
}

declare module 'fastify' {
  interface FastifyRequest {
    record: RecordedRequest | null
    /** The URL of the request, of which only the path and the query were sent. */
    target: URL
  }
}

/** Records every request below `/api`, so that tests can assert what reached the PCE and how often. */
export function recordRequests(app: FastifyInstance, requests: RecordedRequest[]): void {
  app.decorateRequest('record', null)
  app.decorateRequest('target')
  app.addHook('onRequest', (request, _reply, done) => {
    const url = new URL(request.raw.url ?? '/', 'http://pce')
    request.target = url
    if (url.pathname.startsWith('/api')) {
      const { authorization, ...headers } = request.headers
      const record: RecordedRequest = {
        method: request.method,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        scheme: authorization?.split(' ', 1)[0] ?? null,
        headers,
        body: undefined,
        status: null,
      }
      request.record = record
      if (requests.push(record) > KEPT) requests.splice(0, requests.length - KEPT)
    }
    done()
  })
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.record) request.record.body = redactSecrets(request.body)
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    if (request.record && !request.raw.socket.destroyed) request.record.status = reply.statusCode
    done()
  })
}
