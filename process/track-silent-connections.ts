import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Keeps track of the connections on which no request has come yet: Node counts them as busy, so that closing the server would wait
 * for them until their headers time out. Returns what closes them.
 */
export function trackSilentConnections(server: Server): () => void {
  const silent = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  server.on('request', ({ socket }: IncomingMessage) => silent.delete(socket))
  return () => {
    for (const socket of silent) socket.destroy()
  }
}
