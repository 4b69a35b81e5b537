import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import fp from 'fastify-plugin'

export const REQUEST_ID_HEADER = 'x-request-id'

/**
 * Determines the id of a request. It is the `genReqId` of the Fastify instance, which runs before every hook, so that
 * refused requests have an id too. Bytes that could not be parsed as a request get a new id.
 */
export const requestIdOf = (request?: IncomingMessage) => acceptRequestId(request?.headers[REQUEST_ID_HEADER])

/** Adds the request id to every reply (S1, S19). */
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
 * Returns the id of an HTTP request. It is the proxy's `X-Request-Id` if this contains only harmless characters, and
 * otherwise a new UUID. If anything else were accepted, including a repeated header (which Node joins with a comma),
 * clients could write any text into the logs of this server and of the PCE.
 */
function acceptRequestId(header: string | string[] | undefined): string {
  return typeof header === 'string' && ACCEPTABLE.test(header) ? header : randomUUID()
}

const LONGEST_PATH = 200
/** Matches an access token in a URL, so that the token can be removed before the URL is logged. */
const TOKEN = /eyJ[\w-]*\.[\w-]+\.?[\w-]*/g

/** Returns the path of a URL for the log. The query is left out, because it may contain tokens, codes and states. */
const showPath = (url = '') => url.split('?', 1)[0]!.replace(TOKEN, '[token]').slice(0, LONGEST_PATH)

/** Logs one line for every finished HTTP request, instead of the two lines that Fastify would log. */
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
      // The address is missing on a Unix socket without a trusted proxy, and if no hook has run, as for requests that
      // the router refuses.
      ...(request.clientAddress && { client_address: request.clientAddress }),
      ms: Math.round(reply.elapsedTime * 1000) / 1000,
    }
    if (error) reply.log.warn({ ...facts, err: error }, 'request failed')
    else reply.log.info(facts, 'request')
  }
}
