import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import fp from 'fastify-plugin'

export const REQUEST_ID_HEADER = 'x-request-id'

/**
 * `genReqId` of the Fastify instance: it runs before every hook, so that even a refused request has its id. Bytes that never became
 * a request get a new one.
 */
export const requestIdOf = (request?: IncomingMessage) => acceptRequestId(request?.headers[REQUEST_ID_HEADER])

/** Echoes the request id on every reply (S1, S19). */
export default fp(
  (app, _options, done) => {
    app.addHook('onRequest', (request, reply, next) => {
      reply.header(REQUEST_ID_HEADER, request.id)
      next()
    })
    done()
  },
  { name: 'request-id' },
)

const ACCEPTABLE = /^[A-Za-z0-9._:-]{1,128}$/

/**
 * The request id of one HTTP request: the proxy's `X-Request-Id` where it is plain, otherwise a new UUID. Anything else, two
 * headers (which Node joins with a comma) included, would let a client write into logs and into the PCE's own log.
 */
function acceptRequestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && ACCEPTABLE.test(header) ? header : randomUUID()
}

const LONGEST_PATH = 200
/** Wherever a client has put an access token, its text does not reach the log. */
const TOKEN = /eyJ[\w-]*\.[\w-]+\.?[\w-]*/g

/** Without the query, where tokens, codes and states stand. */
const showPath = (url = '') => url.split('?', 1)[0]!.replace(TOKEN, '[token]').slice(0, LONGEST_PATH)

/** One line for every HTTP request, when it is over, in place of Fastify's two. */
export class RequestLog extends LogController {
  constructor() {
    super({ requestIdLogLabel: 'request_id' })
  }

  override incomingRequest(): void {}

  override requestCompleted(error: Error | null | undefined, request: FastifyRequest, reply: FastifyReply): void {
    const { method, url } = request.raw
    const facts = {
      method,
      path: showPath(url),
      status: reply.statusCode,
      // Absent where no hook has run: what the router refuses, and what comes over a Unix socket without a trusted proxy.
      ...(request.clientAddress && { client_address: request.clientAddress }),
      ms: Math.round(reply.elapsedTime * 1000) / 1000,
    }
    if (error) reply.log.warn({ ...facts, err: error }, 'request failed')
    else reply.log.info(facts, 'request')
  }
}
