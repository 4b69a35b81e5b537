import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ToolError } from '../../schemas/errors.js'

export interface InFlightOptions {
  /** Maximum number of simultaneous requests with the same key on these routes; 0 means no limit. */
  max: number
  /**
   * Returns the key of a request. Each key has its own limit, so that one caller cannot use up the limit of all others.
   */
  keyOf?: (request: FastifyRequest) => string
  /**
   * The number of requests in flight, by key. Several registrations of this plugin that share a limit are given the
   * same Map.
   */
  counts?: Map<string, number>
  /**
   * The hook in which a request is counted; by default, `onRequest`. Routes that identify the sender of a request by
   * themselves use `preParsing`.
   */
  hook?: 'onRequest' | 'preParsing'
}

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The concurrency slots that the request occupies; null if the request is not counted. A route whose work may
     * outlive its answer can keep the slots for longer.
     */
    heldPlaces: HeldPlaces | null
  }
}

/**
 * Limits the requests in flight on the routes that are registered beside this plugin. A request is in flight until its
 * answer has ended. If its client has left, it is in flight until its work has ended. Requests beyond the limit get a
 * quick 503 with Retry-After, which is cheaper than a queue that grows until every caller has timed out.
 */
export default fp<InFlightOptions>(
  (app, { max, keyOf = () => '', counts: inFlight = new Map<string, number>(), hook = 'onRequest' }, done) => {
    if (!app.hasRequestDecorator('heldPlaces')) app.decorateRequest('heldPlaces', null)
    const enter = (request: FastifyRequest, reply: FastifyReply, next: () => void) => {
      // The client may have left while its token was being verified.
      if (hasLeft(request.raw, reply.raw)) throw new ToolError('cancelled', 'The client has disconnected.')
      const key = keyOf(request)
      const count: Count = (by) => {
        const left = (inFlight.get(key) ?? 0) + by
        // Most keys stay in the Map when their count is zero. If each request filled and emptied the Map, V8 would
        // create a new internal table each time, and keep it until the old generation of the heap is collected.
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

/** If the Map has more keys than this, a key is deleted as soon as none of its requests is in flight. */
const MOST_AT_REST = 1000

/** A function that changes the number of requests in flight by one. */
type Count = (by: 1 | -1) => void

/**
 * The concurrency slots that one request occupies, one for each limit. They are all released together, when the
 * request's answer and all work that it started have ended.
 */
interface HeldPlaces {
  /**
   * Adds a slot that has already been counted as occupied. `count(-1)` releases it, and `count(1)` occupies it again.
   */
  add(count: Count): void
  /** Keeps the request's slots occupied until this work has ended, even if the answer ends earlier. */
  keepUntil(work: Promise<unknown>): void
}

/**
 * Creates the holder of a request's concurrency slots.
 *
 * @param answer resolves when the answer has ended, even if the client left in the middle of it.
 */
export function holdPlaces(answer: Promise<unknown>): HeldPlaces {
  const places: Count[] = []
  let open = 0
  const end = () => {
    open -= 1
    if (open === 0) for (const count of places) count(-1)
  }
  const keepUntil = (work: Promise<unknown>) => {
    // If the work begins just after the slots were released, they are occupied again, even if this exceeds the limit.
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
 * The callbacks to run when a connection ends, by connection. There is only one listener for each connection, because a
 * client may send many requests at once. The callbacks are in a list and not in a Set, because a Set leaves internal
 * tables behind whenever it is emptied, and these would keep later requests alive.
 */
const waiting = new WeakMap<Socket, (() => void)[]>()

/**
 * Resolves when the answer has been sent or can no longer be sent. The end of the connection is watched too: if the
 * connection breaks while the answer waits behind others (pipelining), Node.js never reports the end of the answer.
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

/** Returns true if the client of this request has left. */
const hasLeft = ({ socket }: IncomingMessage, response: ServerResponse): boolean =>
  response.destroyed || socket.destroyed
