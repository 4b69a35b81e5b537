import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Identity } from '../../schemas/caller.js'

type Session = Parameters<FastifyInstance['dispatcher']['dispatch']>[1]

export interface ContextOptions {
  /** Role, credentials and PCE client of whoever has been authenticated, by which client. Called once for each request. */
  openSession: (identity: Identity, client?: string) => Promise<Session>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls, with which PCE; null until that is known. (`session` is what the cookie of a browser is called.) */
    callSession: Session | null
  }
}

/**
 * Stage 3 of the pipeline (S1): sets `request.callSession` from `request.identity` before the route runs. Where nobody was
 * authenticated it stays null, and without it no route can call a tool.
 */
export default fp<ContextOptions>(
  (app, { openSession }, done) => {
    app.decorateRequest('callSession', null)
    app.addHook('preHandler', async (request) => {
      const { identity, headers } = request
      if (identity !== null) request.callSession = await openSession(identity, headers['user-agent'])
    })
    done()
  },
  { name: 'context', dependencies: ['auth', 'dispatcher'] },
)
