import type { IncomingHttpHeaders } from 'node:http'
import fp from 'fastify-plugin'

export interface OfferOptions {
  /** What the headers of a request leave of the operator's offer; undefined for all of it. Throws ToolError. */
  narrow: (headers: IncomingHttpHeaders) => ReadonlySet<string> | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Names of the tools that the client has narrowed its offer to; absent where it has not. */
    narrowedTo: ReadonlySet<string> | undefined
  }
}

/** Reads the headers with which a client narrows what it is offered, before the body: a bad one is a 400 (D123). */
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
