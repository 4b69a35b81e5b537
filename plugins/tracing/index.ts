import fp from 'fastify-plugin'
import type { Tracing } from '../../schemas/tracing.js'

export { openTracing } from './open-tracing.js'

/** Probes come every few seconds and say nothing. */
const UNTRACED = new Set(['/healthz', '/readyz'])

/** A span for every request, whose work then runs in its trace. */
export default fp<{ tracing: Tracing }>(
  (app, { tracing }, done) => {
    app.addHook('onRequest', (request, reply, next) => {
      const { url: route } = request.routeOptions
      if (route !== undefined && UNTRACED.has(route)) return next()
      const traced = tracing.serve(request.headers, request.method, route)
      // Also when the client leaves before there is an answer.
      reply.raw.once('close', () => traced.end(reply.raw.statusCode))
      // Fastify itself keeps the context beyond the events that deliver the body, which belong to the connection.
      traced.run(next)
    })
    done()
  },
  { name: 'tracing' },
)
