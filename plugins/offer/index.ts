import type { IncomingHttpHeaders } from 'node:http'
import fp from 'fastify-plugin'

export interface OfferOptions {
  /**
   * Reduces the tools that the operator offers to those that a request's headers allow. Returns their names, or
   * undefined if the headers exclude none. Throws ToolError for invalid headers.
   */
  narrow: (headers: IncomingHttpHeaders) => ReadonlySet<string> | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The names of the tools to which the client has limited its offer by headers; undefined if it has not limited the
     * offer.
     */
    narrowedTo: ReadonlySet<string> | undefined
  }
}

/**
 * Reads the headers with which a client narrows its offer, before the body is read. If a header is invalid, the answer
 * is 400 (D123).
 */
export default fp<OfferOptions>(
  (app, { narrow }, done) => {
    app.decorateRequest('narrowedTo', undefined)
    app.addHook('onRequest', (request, _reply, next) => {
      request.narrowedTo = narrow(request.headers)
      next()
    })
    done()
  },
  { name: 'offer', dependencies: ['errors'] },
)
