import fp from 'fastify-plugin'
import { allowedHosts, checkOrigin } from './check-origin.js'

export interface OriginGuardOptions {
  host: string
  publicUrl?: string
  allowedHosts: readonly string[]
}

/** The Host and Origin guard of the scope it is registered in, before authorization and before the body is read. */
export default fp<OriginGuardOptions>(
  (app, options, done) => {
    const allowed = allowedHosts(options)
    app.addHook('onRequest', (request, _reply, next) => {
      checkOrigin(request.raw as typeof request.raw & { url: string }, allowed)
      next()
    })
    done()
  },
  { name: 'origin-guard', dependencies: ['errors'] },
)
