import type { IncomingMessage } from 'node:http'
import fp from 'fastify-plugin'
import { acceptRequestId } from './accept-request-id.js'

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
