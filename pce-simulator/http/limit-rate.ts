import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import type { RateLimits } from '../options.js'

/** The rate limits that the PCE's documentation states (P48). */
export const DOCUMENTED_LIMITS: Required<RateLimits> = {
  requestsPerMinute: 500,
  unpairsPerMinute: 10,
  queryDeletesPerMinute: 10,
  concurrentRuleSearches: 12,
  concurrentBulkWorkloadOperations: 1,
}

const MINUTE = 60_000

/**
 * Number of milliseconds that a client is told to wait if too many requests are being processed at the same time. The
 * value is short and fixed, because nobody can predict when one of these requests will end.
 */
const SHORTLY_MS = 1000

/** Counts the request if the limit allows it, and returns 0. Otherwise, returns the number of milliseconds to wait. */
type Limit = (request: FastifyRequest, reply: FastifyReply) => number

interface Rule {
  method: string | null
  path: RegExp
  limit: Limit
}

/**
 * Answers requests beyond a limit with 429 and the number of seconds to wait. Such requests are not processed (P48).
 */
export function limitRate(app: FastifyInstance, world: World): void {
  const limits = world.options.rateLimit ?? {}
  const perMinute = (most: number | undefined) => createWindow(world, most)
  const rules: Rule[] = [
    { method: null, path: /^/, limit: eachCredential(() => perMinute(limits.requestsPerMinute)) },
    { method: 'DELETE', path: /\/traffic_flows\/async_queries\//, limit: perMinute(limits.queryDeletesPerMinute) },
    { method: 'PUT', path: /\/workloads\/unpair$/, limit: perMinute(limits.unpairsPerMinute) },
    { method: 'PUT', path: /\/vens\/unpair$/, limit: perMinute(limits.unpairsPerMinute) },
    { method: 'POST', path: /\/rule_search$/, limit: createPlaces(limits.concurrentRuleSearches) },
    { method: 'PUT', path: /\/workloads\/bulk_\w+$/, limit: createPlaces(limits.concurrentBulkWorkloadOperations) },
  ]
  app.addHook('onRequest', (request, reply, done) => {
    const path = (request.raw.url ?? '').split('?', 1)[0]!
    if (!path.startsWith('/api')) return done()
    for (const { method, path: pattern, limit } of rules) {
      if ((method !== null && method !== request.method) || !pattern.test(path)) continue
      const waitMs = limit(request, reply)
      if (waitMs === 0) continue
      if (UNCERTAIN.sendRetryAfterWith429) {
        void reply.header('retry-after', String(Math.max(1, Math.ceil(waitMs / 1000))))
      }
      return done(new Refusal(429, [{ token: 'too_many_requests_error', message: 'Too many requests' }]))
    }
    done()
  })
}

/**
 * Creates a limit for the number of requests in a rolling minute. The documentation does not say whether the minute is
 * rolling or fixed (P48).
 */
function createWindow(world: World, most: number | undefined): Limit {
  const times: number[] = []
  return () => {
    if (most === undefined) return 0
    const now = world.clock()
    while (times.length > 0 && times[0]! <= now - MINUTE) times.shift()
    if (times.length >= most) return (times[0] ?? now) + MINUTE - now
    times.push(now)
    return 0
  }
}

/**
 * Creates a separate limit for each API key or session, which is identified by the Authorization header of its
 * requests.
 */
function eachCredential(create: () => Limit): Limit {
  const windows = new Map<string, Limit>()
  return (request, reply) => {
    const credential = request.headers.authorization ?? ''
    const limit = windows.get(credential) ?? create()
    windows.set(credential, limit)
    return limit(request, reply)
  }
}

/**
 * Creates a limit for the number of requests that are processed at the same time. A request counts from the arrival of
 * its headers to the end of its answer.
 */
function createPlaces(most: number | undefined): Limit {
  let taken = 0
  return (_request, reply) => {
    if (most === undefined) return 0
    if (taken >= most) return SHORTLY_MS
    taken += 1
    reply.raw.once('close', () => (taken -= 1))
    return 0
  }
}
