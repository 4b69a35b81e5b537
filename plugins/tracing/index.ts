import fp from 'fastify-plugin'
import type { Tracing } from '../../schemas/tracing.js'

export { openTracing } from './open-tracing.js'

/** The paths of probes, which are not traced, because they come every few seconds and reveal nothing. */
const UNTRACED = new Set(['/healthz', '/readyz'])

/** Creates a span for every request, and runs its work within that trace. */
export default fp<{ tracing: Tracing }>(
  (app, { tracing }, done) => {
    app.addHook('onRequest', (request, reply, next) => {
      const { url: route } = request.routeOptions
      if (route !== undefined && UNTRACED.has(route)) return next()
      const traced = tracing.serve(request.headers, request.method, route)
      // This also ends the span if the client leaves before there is an answer.
      reply.raw.once('close', () => traced.end(reply.raw.statusCode))
      // The rest of the request runs in the trace. Fastify keeps the context even after the events that deliver the
      // body, which belong to the connection.
      traced.run(next)
    })
    done()
  },
  { name: 'tracing' },
)
