import type { FastifyInstance } from 'fastify'
import { redactSecrets } from './redact-secrets.js'

const KEPT = 10_000

export interface RecordedRequest {
  method: string
  /** As sent, without the query: `/api/v2/orgs/1/labels`. */
  path: string
  query: Record<string, string>
  /** How it authenticated itself, `Basic` for one; null without `authorization`. */
  scheme: string | null
  /** Without `authorization`. */
  headers: Record<string, string | string[] | undefined>
  /** Parsed JSON, or the text when it was not JSON; undefined when there was none. Without passwords and other secrets. */
  body: unknown
  /** Null while the request is unanswered, or when its connection was cut before an answer. */
  status: number | null
}

declare module 'fastify' {
  interface FastifyRequest {
    record: RecordedRequest | null
  }
}

/** Keeps every request below `/api`, so that a test can assert what reached the PCE and how often. */
export function recordRequests(app: FastifyInstance, requests: RecordedRequest[]): void {
  app.decorateRequest('record', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const url = new URL(request.raw.url ?? '/', 'http://pce')
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
