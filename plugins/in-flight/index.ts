import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ToolError } from '../../schemas/errors.js'

export interface InFlightOptions {
  /** Requests that these routes work on at a time; 0 for no limit. */
  max: number
  /** Bounds each key on its own instead of all requests together, so that one caller cannot take every place. */
  keyOf?: (request: FastifyRequest) => string
  /** Requests in flight by key, where several registrations share a limit. */
  counts?: Map<string, number>
  /** When a request is counted: `preParsing` where a route itself finds out who it is from. Default onRequest. */
  hook?: 'onRequest' | 'preParsing'
}

declare module 'fastify' {
  interface FastifyRequest {
    /** For a route whose work may outlive its answer; null where nothing is counted. */
    heldPlaces: HeldPlaces | null
  }
}

/**
 * Bounds the requests in flight on the routes beside it: those whose answer is under way, and those whose client has left while
 * their work goes on. Beyond the bound the answer is a quick 503 with Retry-After, which costs less than a queue that grows until
 * every caller has timed out.
 */
export default fp<InFlightOptions>(
  (app, { max, keyOf = () => '', counts: inFlight = new Map<string, number>(), hook = 'onRequest' }, done) => {
    if (!app.hasRequestDecorator('heldPlaces')) app.decorateRequest('heldPlaces', null)
    const enter = (request: FastifyRequest, reply: FastifyReply, next: () => void) => {
      // Between two bounds there is the check of the token, and its sender may be gone by then.
      if (hasLeft(request.raw, reply.raw)) throw new ToolError('cancelled', 'The client has disconnected.')
      const key = keyOf(request)
      const count: Count = (by) => {
        const left = (inFlight.get(key) ?? 0) + by
        // A Map that is emptied and filled by each request would make a new table for each, which lives until the old generation is swept.
        if (left === 0 && inFlight.size > MOST_AT_REST) inFlight.delete(key)
        else inFlight.set(key, left)
      }
      if (max > 0 && (inFlight.get(key) ?? 0) >= max)
        throw new ToolError('overloaded', 'The server is at its limit of requests in flight.')
      count(1)
      request.heldPlaces ??= holdPlaces(whenOver(request.raw, reply.raw))
      request.heldPlaces.add(count)
      next()
    }
    if (hook === 'onRequest') app.addHook('onRequest', enter)
    else app.addHook('preParsing', (request, reply, _payload, next) => enter(request, reply, next))
    done()
  },
  { name: 'in-flight', dependencies: ['errors'] },
)

/** Keys that are kept while they have no request in flight. */
const MOST_AT_REST = 1000

/** Adds one to the requests in flight, or takes it away again. */
type Count = (by: 1 | -1) => void

/** The places that one request takes. All are given back together, once its answer and everything it started are over. */
interface HeldPlaces {
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

/**
 * What waits for the end of a connection: one listener for all, since a client may send many requests at once. In a list, since the tables
 * that a Set leaves behind when it is emptied hold on to the requests that come after.
 */
const waiting = new WeakMap<Socket, (() => void)[]>()

/**
 * Resolves once the answer has been sent or cannot be any more. Of an answer that still waits its turn behind others (pipelining)
 * Node.js never says that it is over when the connection breaks; so the connection is asked as well.
 */
function whenOver({ socket }: IncomingMessage, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const others = waiting.get(socket) ?? watch(socket)
    const end = () => {
      const at = others.indexOf(end)
      if (at >= 0) others.splice(at, 1)
      resolve()
    }
    others.push(end)
    response.once('close', end)
  })
}

function watch(socket: Socket): (() => void)[] {
  const ends: (() => void)[] = []
  waiting.set(socket, ends)
  socket.once('close', () => [...ends].forEach((end) => end()))
  return ends
}

/** Whether the client has gone. */
const hasLeft = ({ socket }: IncomingMessage, response: ServerResponse): boolean =>
  response.destroyed || socket.destroyed
