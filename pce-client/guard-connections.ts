import type http from 'node:http'
import type { LookupFunction, Socket } from 'node:net'
import { PceError } from './errors.js'

/** The `reason` of a connection that the caller's own `lookup` or `checkPeer` refused. */
export const ADDRESS_REFUSED = 'ADDRESS_REFUSED'

type Connecting = http.Agent & { createConnection(...args: unknown[]): Socket }

/** The lookup with its own refusals as what this client throws. Errors with a code are the name service's and stay what they are. */
export function inOwnWords(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, options, (error, address, family) => {
      callback(error === null ? null : asRefusal(error), address, family)
    })
  }
}

/**
 * Has every connection that the agent opens looked at as soon as it stands: before TLS, and so before anything is sent. Resolving
 * and connecting are two steps, and IP addresses are connected to without the first (`net.connect` asks no lookup for them).
 */
export function watchPeers<A extends http.Agent>(agent: A, checkPeer: ((address: string) => void) | undefined): A {
  if (checkPeer === undefined) return agent
  const connecting = agent as A & Connecting
  const connect = connecting.createConnection.bind(agent)
  connecting.createConnection = (...args) => {
    const socket = connect(...args)
    socket.prependOnceListener('connect', () => {
      try {
        checkPeer(socket.remoteAddress ?? '')
      } catch (error) {
        socket.destroy(asRefusal(error as Error))
      }
    })
    return socket
  }
  return agent
}

function asRefusal(error: NodeJS.ErrnoException): NodeJS.ErrnoException {
  if (typeof error.code === 'string') return error
  return new PceError('unreachable', error.message, { reason: ADDRESS_REFUSED })
}
