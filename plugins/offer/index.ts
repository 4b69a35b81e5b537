import type { IncomingHttpHeaders } from 'node:http'
import fp from 'fastify-plugin'

export interface OfferOptions {
  /**
   * Narrows the operator's offer by the headers of a request. Returns the names of the tools that remain, or undefined
   * if all of them remain. Throws ToolError for invalid headers.
   */
  narrow: (headers: IncomingHttpHeaders) => ReadonlySet<string> | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The names of the tools to which the client has narrowed its offer; undefined if it has not narrowed it. */
    narrowedTo: ReadonlySet<string> | undefined
  }
}

/**
 * Reads the headers with which a client narrows its offer, before the body is read. An invalid header is answered with
 * 400 (D123).
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
