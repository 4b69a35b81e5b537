import type { IncomingHttpHeaders } from 'node:http'
import fp from 'fastify-plugin'

export interface OfferOptions {
  /**
   * The tools that the headers of a request leave of the operator's offer; undefined means all of them. Throws
   * ToolError.
   */
  narrow: (headers: IncomingHttpHeaders) => ReadonlySet<string> | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Names of the tools to which the client has narrowed its offer; undefined if it has not. */
    narrowedTo: ReadonlySet<string> | undefined
  }
}

/** Reads the headers with which a client narrows its offer, before the body is read. An invalid one is a 400 (D123). */
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
