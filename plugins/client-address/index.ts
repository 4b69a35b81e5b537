import type { Socket } from 'node:net'
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

interface Origin {
  address: string | null
  network: string
}

/**
 * Finds out once for each request, before anything else looks at it, where it comes from; for a connection that no proxy speaks on, with its first. The only
 * reader of a forwarded header.
 */
export default fp<Pick<HttpListen, 'trustedProxies' | 'socket'>>(
  (app, { trustedProxies, socket }, done) => {
    const find = createClientFinder(trustedProxies, socket !== undefined)
    const peers = new WeakMap<Socket, Origin>()
    app.decorateRequest('clientAddress', null)
    app.decorateRequest('clientNetwork', '')
    app.addHook('onRequest', (request, _reply, next) => {
      const { socket } = request.raw
      const forwardedFor = request.headers['x-forwarded-for']
      let origin = forwardedFor === undefined ? peers.get(socket) : undefined
      if (origin === undefined) {
        // Node joins repeated headers of this name in their order.
        const address = find(socket.remoteAddress, forwardedFor?.toString())
        origin = { address, network: networkOf(address) }
        if (forwardedFor === undefined) peers.set(socket, origin)
      }
      request.clientAddress = origin.address
      request.clientNetwork = origin.network
      next()
    })
    done()
  },
  { name: 'client-address' },
)
