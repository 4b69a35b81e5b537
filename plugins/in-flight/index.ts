import fp from 'fastify-plugin'
import { ToolError } from '../../schemas/errors.js'

export interface InFlightOptions {
  /** Requests this scope works on at a time; 0 for no bound. */
  max: number
}

/**
 * Bounds the requests in flight in its scope. Beyond the bound the answer is a quick 503 with Retry-After, which costs less than
 * a queue that grows until every caller has timed out.
 */
export default fp<InFlightOptions>(
  (app, { max }, done) => {
    if (max > 0) {
      let inFlight = 0
      app.addHook('onRequest', (_request, reply, next) => {
        if (inFlight >= max) throw new ToolError('overloaded', 'The server is working on as many requests as it may.')
        inFlight++
        // 'close' comes exactly once, also when the client leaves in the middle.
        reply.raw.once('close', () => inFlight--)
        next()
      })
    }
    done()
  },
  { name: 'in-flight', dependencies: ['errors'] },
)
