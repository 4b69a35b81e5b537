import fp from 'fastify-plugin'
import type { ServedRequest, Tracing } from '../../schemas/tracing.js'

export { openTracing } from './open-tracing.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Its span; null where there is none. */
    traced: ServedRequest | null
  }
}

/** Probes come every few seconds and say nothing. */
const UNTRACED = new Set(['/healthz', '/readyz'])

/** A span for every request, whose work then runs in its trace. */
export default fp<{ tracing: Tracing }>(
  (app, { tracing }, done) => {
    app.decorateRequest('traced', null)
    app.addHook('onRequest', (request, reply, next) => {
      const { url: route } = request.routeOptions
      if (route !== undefined && UNTRACED.has(route)) return next()
      const traced = tracing.serve(request.headers, request.method, route)
      request.traced = traced
      // Also when the client leaves before there is an answer.
      reply.raw.once('close', () => traced.end(reply.raw.statusCode))
      traced.run(next)
    })
    // The events of the connection that delivered the body belong to no request.
    app.addHook('preValidation', (request, _reply, next) => {
      if (request.traced === null) next()
      else request.traced.run(next)
    })
    done()
  },
  { name: 'tracing' },
)
