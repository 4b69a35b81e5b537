import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What waits for the end of a connection: one listener for all, since a client may send many requests at once. */
const waiting = new WeakMap<Socket, Set<() => void>>()

/**
 * Resolves once the answer has been sent or cannot be any more. Of an answer that still waits its turn behind others (pipelining) Node.js
 * never says that it is over when the connection breaks; so the connection is asked as well.
 */
export function whenOver({ socket }: IncomingMessage, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const others = waiting.get(socket) ?? watch(socket)
    const end = () => {
      others.delete(end)
      resolve()
    }
    others.add(end)
    response.once('close', end)
  })
}

function watch(socket: Socket): Set<() => void> {
  const ends = new Set<() => void>()
  waiting.set(socket, ends)
  socket.once('close', () => ends.forEach((end) => end()))
  return ends
}

/** Whether nobody is there to be answered. */
export const hasLeft = ({ socket }: IncomingMessage, response: ServerResponse): boolean =>
  response.destroyed || socket.destroyed
