import fp from 'fastify-plugin'
import type { HttpListen } from '../../schemas/config.js'
import { createClientFinder, networkOf } from './find-client.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the request comes from, for the log and the audit entries; null on a Unix socket that says nothing else. */
    clientAddress: string | null
    /** The same as far as limits tell addresses apart. */
    clientNetwork: string
  }
}

/** Finds out once for each request, before anything else looks at it, where it comes from. The only reader of a forwarded header. */
export default fp<Pick<HttpListen, 'trustedProxies' | 'socket'>>(
  (app, { trustedProxies, socket }, done) => {
    const find = createClientFinder(trustedProxies, socket !== undefined)
    app.decorateRequest('clientAddress', null)
    app.decorateRequest('clientNetwork', '')
    app.addHook('onRequest', (request, _reply, next) => {
      const forwardedFor = request.headers['x-forwarded-for']
      // Node joins repeated headers of this name in their order.
      const address = find(request.raw.socket.remoteAddress, forwardedFor?.toString())
      request.clientAddress = address
      request.clientNetwork = networkOf(address)
      next()
    })
    done()
  },
  { name: 'client-address' },
)
