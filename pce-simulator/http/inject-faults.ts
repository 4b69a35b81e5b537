import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { halfBody, readWhole } from './cut-body.js'

/**
 * The ways in which a request can go wrong.
 *
 * - Before the PCE sees it: `status`, `retry-after`, `html` (the answer of a proxy), `hang` (no byte is ever sent),
 * `reset` (TCP reset), `slow` (the answer comes after `delayMs`).
 * - Instead of the PCE's work, after the request has been read: `answer` (the given answer, which may be one that the
 * simulator never sends by itself).
 * - After the PCE has done its work: `truncate` (a well-framed answer with half of its body), `cut-body` (half of the
 * body, then the connection breaks), `stall-body` (half of the body, then silence), `commit-then-drop` (the connection
 * breaks before the answer), `headers` (header values are replaced).
 * - In the asynchronous work that the request starts (a collection job, a traffic query or its rules, the invitation of
 * a user): `job-failed` makes the work fail, `job-stuck` makes it run for ever, and `job-expired` removes its result
 * before it is fetched (404).
 */
export const FAULT_KINDS = [
  'status',
  'retry-after',
  'html',
  'hang',
  'reset',
  'slow',
  'answer',
  'truncate',
  'cut-body',
  'stall-body',
  'commit-then-drop',
  'headers',
  'job-failed',
  'job-stuck',
  'job-expired',
] as const

export interface Fault {
  kind: (typeof FAULT_KINDS)[number]
  /**
   * The affected path, a prefix of it that ends before a `/` (`/orgs/1/labels`), or a pattern for the whole path.
   * `/api/v2` may be omitted.
   */
  path: string | RegExp
  /** The affected HTTP method; if absent, requests of every method are affected. */
  method?: string
  /** The number of matching requests that are affected; later ones pass. */
  times: number
  /** The number of matching requests that pass before the first one is affected. */
  skip?: number
  /** The status that is sent by `status` (default 503), `retry-after` (429), `html` (502) and `answer` (200). */
  status?: number
  /** The value of Retry-After: seconds, or any text, which is sent verbatim. */
  retryAfter?: number | string
  /**
   * The JSON body of `status`, `retry-after` and `answer`, the text of `html`, or the message of `job-failed`. A string
   * for `answer` is sent as CSV.
   */
  body?: unknown
  /** The delay in milliseconds before the answer of the fault `slow`. */
  delayMs?: number
  /** The header values that the fault `headers` puts in place of the real ones; null removes a header. */
  headers?: Record<string, string | null>
}

const TRUNCATING = new Set(['truncate', 'cut-body', 'stall-body'])

declare module 'fastify' {
  interface FastifyRequest {
    fault: Fault | null
  }
}

export function injectFaults(app: FastifyInstance): FaultControl {
  let faults: Fault[] = []
  app.decorateRequest('fault', null)

  app.addHook('onRequest', async (request, reply) => {
    const path = (request.raw.url ?? '').split('?', 1)[0]!
    if (path.startsWith('/_sim')) return
    const fault = faults.find((candidate) => matches(candidate, path, request.method))
    if (!fault) return
    if (fault.skip) {
      fault.skip -= 1
      return
    }
    fault.times -= 1
    if (fault.times <= 0) faults = faults.filter((other) => other !== fault)
    request.fault = fault
    return strikeBefore(fault, request, reply)
  })

  app.addHook('preHandler', async ({ fault }, reply) => {
    if (fault?.kind !== 'answer') return
    const { status = 200, body } = fault
    return typeof body === 'string'
      ? reply.code(status).header('content-type', 'text/csv').send(body)
      : sendFault(reply, fault, status, {})
  })

  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.fault === null) return done(null, payload)
    strikeAfter(request.fault, request, reply, payload).then((sent) => done(null, sent), done)
  })

  return {
    add: (...added) => void faults.push(...added.map((fault) => ({ ...fault }))),
    clear: () => void (faults = []),
    pending: () => faults.map((fault) => ({ ...fault })),
  }
}

function matches(fault: Fault, path: string, method: string): boolean {
  if (fault.method && fault.method.toUpperCase() !== method) return false
  const short = path.replace(/^\/api\/v2/, '')
  if (fault.path instanceof RegExp) return fault.path.test(path)
  const wanted = fault.path.replace(/^\/api\/v2/, '').replace(/\/$/, '')
  return short === wanted || short.startsWith(`${wanted}/`)
}

async function strikeBefore(
  fault: Fault,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  switch (fault.kind) {
    case 'status':
      return sendFault(reply, fault, fault.status ?? 503, [
        { token: 'service_unavailable', message: 'Service unavailable' },
      ])
    case 'retry-after':
      return sendFault(reply, { retryAfter: 1, ...fault }, fault.status ?? 429, [
        { token: 'too_many_requests_error', message: 'Too many requests' },
      ])
    case 'html': {
      const page = typeof fault.body === 'string' ? fault.body : '<html><body><h1>502 Bad Gateway</h1></body></html>'
      return reply
        .code(fault.status ?? 502)
        .header('content-type', 'text/html')
        .send(page)
    }
    case 'hang':
      reply.hijack()
      return reply
    case 'reset':
      reply.hijack()
      request.raw.socket.resetAndDestroy()
      return reply
    case 'slow':
      await new Promise((resolve) => setTimeout(resolve, fault.delayMs ?? 1000))
      return undefined
    default:
      return undefined
  }
}

function sendFault(reply: FastifyReply, fault: Fault, status: number, fallback: unknown): FastifyReply {
  if (fault.retryAfter !== undefined) void reply.header('retry-after', String(fault.retryAfter))
  return reply
    .code(status)
    .header('content-type', 'application/json')
    .send(JSON.stringify(fault.body === undefined ? fallback : fault.body))
}

async function strikeAfter(
  fault: Fault,
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  if (fault.kind === 'commit-then-drop') {
    // The answer's body will not be sent, so its stream must stop producing it.
    if (payload instanceof Readable) payload.destroy()
    request.raw.socket.destroy()
    return ''
  }
  if (fault.kind === 'headers') {
    for (const [name, value] of Object.entries(fault.headers ?? {})) {
      if (value === null) void reply.removeHeader(name)
      else void reply.header(name, value)
    }
    return payload
  }
  if (!TRUNCATING.has(fault.kind)) return payload
  const whole = await readWhole(payload)
  const half = whole.subarray(0, Math.floor(whole.length / 2))
  void reply.removeHeader('content-length')
  if (fault.kind === 'truncate') return half
  void reply.header('content-length', String(whole.length))
  return halfBody(half, fault.kind === 'cut-body' ? () => request.raw.socket.destroy() : null)
}

export interface FaultControl {
  add(...faults: Fault[]): void
  clear(): void
  /** Lists the faults that will affect further requests. */
  pending(): Fault[]
}
