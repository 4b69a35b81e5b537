import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ToolError } from '../../schemas/errors.js'
import { type Count, hasLeft, type HeldPlaces, holdPlaces, whenOver } from './held-places.js'

export interface InFlightOptions {
  /** Requests this scope works on at a time; 0 for no bound. */
  max: number
  /** Bounds each key on its own instead of all requests together, so that one caller cannot take every place. */
  keyOf?: (request: FastifyRequest) => string
  /** Requests in flight by key, where several scopes share a bound. */
  counts?: Map<string, number>
  /** When a request is counted: `preParsing` where a route itself finds out who it is from. Default onRequest. */
  hook?: 'onRequest' | 'preParsing'
}

declare module 'fastify' {
  interface FastifyRequest {
    /** For a route whose work may outlive its answer; null where nothing is bounded. */
    heldPlaces: HeldPlaces | null
  }
}

/**
 * Bounds the requests in flight in its scope: those whose answer is under way, and those whose client has left while their work goes
 * on. Beyond the bound the answer is a quick 503 with Retry-After, which costs less than a queue that grows until every caller has
 * timed out.
 */
export default fp<InFlightOptions>(
  (app, { max, keyOf = () => '', counts: inFlight = new Map<string, number>(), hook = 'onRequest' }, done) => {
    if (!app.hasRequestDecorator('heldPlaces')) app.decorateRequest('heldPlaces', null)
    if (max > 0) {
      const enter = (request: FastifyRequest, reply: FastifyReply, next: () => void) => {
        // Between two bounds there is the check of the token, and its sender may be gone by then.
        if (hasLeft(request.raw, reply.raw)) throw new ToolError('cancelled', 'The client has left.')
        const key = keyOf(request)
        const count: Count = (by) => {
          const left = (inFlight.get(key) ?? 0) + by
          if (left === 0) inFlight.delete(key)
          else inFlight.set(key, left)
        }
        if ((inFlight.get(key) ?? 0) >= max)
          throw new ToolError('overloaded', 'The server is working on as many requests as it may.')
        count(1)
        request.heldPlaces ??= holdPlaces(whenOver(request.raw, reply.raw))
        request.heldPlaces.add(count)
        next()
      }
      if (hook === 'onRequest') app.addHook('onRequest', enter)
      else app.addHook('preParsing', (request, reply, _payload, next) => enter(request, reply, next))
    }
    done()
  },
  { name: 'in-flight', dependencies: ['errors'] },
)
