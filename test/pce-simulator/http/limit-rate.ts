import type { FastifyInstance } from 'fastify'
import { Refusal } from '../refusal.js'
import type { World } from '../world.js'

const MINUTE = 60_000

/** 429 beyond the given number of requests in a rolling minute, with the seconds until one is free again (pce-api h). */
export function limitRate(app: FastifyInstance, world: World): void {
  const all = createWindow(world, world.options.rateLimit?.requestsPerMinute)
  const deletes = createWindow(world, world.options.rateLimit?.queryDeletesPerMinute)
  app.addHook('onRequest', (request, reply, done) => {
    const path = request.raw.url ?? ''
    if (!path.startsWith('/api')) return done()
    const isQueryDelete = request.method === 'DELETE' && path.includes('/traffic_flows/async_queries/')
    const waitMs = all() || (isQueryDelete ? deletes() : 0)
    if (waitMs === 0) return done()
    void reply.header('retry-after', String(Math.max(1, Math.ceil(waitMs / 1000))))
    done(new Refusal(429, [{ token: 'too_many_requests_error', message: 'Too many requests' }]))
  })
}

/** Counts one request and answers the milliseconds to wait when the minute is full, else 0. No limit: always 0. */
function createWindow(world: World, limit: number | undefined): () => number {
  const times: number[] = []
  return () => {
    if (limit === undefined) return 0
    const now = world.clock()
    while (times.length > 0 && times[0]! <= now - MINUTE) times.shift()
    if (times.length >= limit) return times[0]! + MINUTE - now
    times.push(now)
    return 0
  }
}
