import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Adds one to the requests in flight, or takes it away again. */
export type Count = (by: 1 | -1) => void

/** The places that one request takes. All are given back together, once its answer is over and so is everything that it has begun. */
export interface HeldPlaces {
  /** One more, which has been counted already. */
  add(count: Count): void
  /** Whatever becomes of the answer, the places stay taken until this has ended, too. */
  keepUntil(work: Promise<unknown>): void
}

/** @param answer resolves when the answer is over, also because the client left in the middle of it. */
export function holdPlaces(answer: Promise<unknown>): HeldPlaces {
  const places: Count[] = []
  let open = 0
  const end = () => {
    open -= 1
    if (open === 0) for (const count of places) count(-1)
  }
  const keepUntil = (work: Promise<unknown>) => {
    // Work that begins just after its client has left takes its places back, however many there are by now.
    if (open === 0) for (const count of places) count(1)
    open += 1
    work.then(end, end)
  }
  keepUntil(answer)
  const add = (count: Count) => {
    places.push(count)
    if (open === 0) count(-1)
  }
  return { add, keepUntil }
}

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
