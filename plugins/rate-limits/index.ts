import rateLimit, { type RateLimitOptions } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ToolError } from '../../schemas/errors.js'

export interface LimitOptions {
  /** Maximum number of requests per minute for each key; 0 means no limit. */
  max: number
  /** Returns the key under which a request is counted. */
  keyOf: (request: FastifyRequest) => string
}

/**
 * A function that counts a request `times` times (once by default) against the limit. If the limit is exceeded, it
 * rejects with ToolError `rate_limited {retry_after}`, in seconds.
 */
export type Limit = (request: FastifyRequest, times?: number) => Promise<void>

declare module 'fastify' {
  interface FastifyInstance {
    createLimit(options: LimitOptions): Limit
  }
}

const MINUTE_MS = 60_000
/**
 * Maximum number of callers that each limit remembers. Beyond it, the callers whose last request is oldest are
 * forgotten, so that invented callers cannot fill the memory. The count of a forgotten caller starts again at zero. To
 * make a limit forget a caller within a minute, one would need this many other callers, each with a token or, before
 * authentication, with an address block of its own.
 */
const MOST_CALLERS = 10_000

/** Adds to the app a function that creates limits per minute. Each replica counts requests by itself (D12). */
export default fp(
  async (app) => {
    await app.register(rateLimit, { global: false })
    app.decorate('createLimit', ({ max, keyOf }: LimitOptions): Limit => {
      if (max === 0) return () => Promise.resolve()
      // Each limit has its own store. The size of the store is set here, because the plugin's options do not affect it.
      const options: RateLimitOptions = { max, timeWindow: MINUTE_MS, keyGenerator: keyOf, cache: MOST_CALLERS }
      const count = app.createRateLimit(options)
      return async (request, times = 1) => {
        for (let time = 0; time < times; time++) {
          const state = await count(request)
          if (state.isAllowed || !state.isExceeded) continue
          const seconds = Math.max(1, state.ttlInSeconds)
          throw new ToolError('rate_limited', `More than ${max} requests in a minute: wait ${seconds} s.`, {
            retry_after: seconds,
          })
        }
      }
    })
  },
  { name: 'rate-limits' },
)
