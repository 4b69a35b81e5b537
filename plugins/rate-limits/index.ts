import rateLimit, { type RateLimitOptions } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ToolError } from '../../schemas/errors.js'

export interface LimitOptions {
  /** Per minute and key; 0 for no limit. */
  max: number
  /** Whom it counts against. */
  keyOf: (request: FastifyRequest) => string
}

/** Counts `times` (default 1) against the limit. Rejects with ToolError `rate_limited {retry_after}`, in seconds. */
export type Limit = (request: FastifyRequest, times?: number) => Promise<void>

declare module 'fastify' {
  interface FastifyInstance {
    createLimit(options: LimitOptions): Limit
  }
}

const MINUTE_MS = 60_000
/**
 * Callers remembered per limit; the least recent are forgotten, so that made-up callers cannot fill the memory. A forgotten
 * caller starts from zero: that takes this many others within a minute, each with their own token or, before authentication,
 * their own address block.
 */
const MOST_CALLERS = 10_000

/** Limits per minute, counted in this process (D12): every replica has its own. */
export default fp(
  async (app) => {
    await app.register(rateLimit, { global: false })
    app.decorate('createLimit', ({ max, keyOf }: LimitOptions): Limit => {
      if (max === 0) return () => Promise.resolve()
      // Every limit has a store of its own, which takes its size from here and not from the plugin's options.
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
