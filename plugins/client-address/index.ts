import type { Socket } from 'node:net'
import fp from 'fastify-plugin'
import type { HttpListen } from '../../schemas/config.js'
import { createClientFinder, networkOf } from './find-client.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The address of the client, for the log and audit entries; null on a Unix socket without a trusted proxy. */
    clientAddress: string | null
    /** The network of the client's address. All limits per address use it as their key. */
    clientNetwork: string
  }
}

interface Origin {
  address: string | null
  network: string
}

/**
 * Determines the client's address of each request before any other code uses it. For requests without X-Forwarded-For,
 * this is done only once per connection. No other code reads a forwarding header.
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
        // If a request has several X-Forwarded-For headers, Node joins them in their order.
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
