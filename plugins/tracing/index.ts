import fp from 'fastify-plugin'
import type { Tracing } from '../../schemas/tracing.js'

export { openTracing } from './open-tracing.js'

/**
 * The paths of health probes. They are not traced, because probes come every few seconds and their traces are of no
 * use.
 */
const UNTRACED = new Set(['/healthz', '/readyz'])

/** Creates a span for every request, and runs everything for the request within the trace of this span. */
export default fp<{ tracing: Tracing }>(
  (app, { tracing }, done) => {
    app.addHook('onRequest', (request, reply, next) => {
      const { url: route } = request.routeOptions
      if (route !== undefined && UNTRACED.has(route)) return next()
      const traced = tracing.serve(request.headers, request.method, route)
      // The event `close` also occurs if the client leaves before it gets an answer, so the span always ends.
      reply.raw.once('close', () => traced.end(reply.raw.statusCode))
      // Everything after this hook runs within the trace. Fastify keeps the trace's context even across the events that
      // deliver the body, although these events belong to the connection.
      traced.run(next)
    })
    done()
  },
  { name: 'tracing' },
)
