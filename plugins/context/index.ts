import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Identity } from '../../schemas/caller.js'
import type { Offer } from '../../schemas/offer.js'
import type { SealedCredentials } from '../../schemas/state.js'

export { readAllowed } from './pce-hosts/create-pce-hosts.js'

type CallerContext = Parameters<FastifyInstance['dispatcher']['dispatch']>[1] & { offer: Offer }

export interface ContextOptions {
  /**
   * Determines the role, credentials, PCE client and offer of an authenticated caller, and the origin of the call. It
   * is called once for each request.
   */
  openContext: (
    identity: Identity,
    request: {
      client?: string
      clientAddress?: string
      narrowedTo?: ReadonlySet<string>
      record?: SealedCredentials | null
    },
  ) => CallerContext | Promise<CallerContext>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The keystore record that was read when the request was admitted; absent if admission reads no record. */
    admittedWith?: { record: SealedCredentials | null } | null
    /** The context of the caller, which includes the caller's PCE; null until it has been determined. */
    callerContext: CallerContext | null
  }
}

/**
 * Stage 3 of the pipeline (S1): sets `request.callerContext` from `request.identity` before the route runs. Without
 * authentication the context remains null, and no route can call a tool without a context.
 */
export default fp<ContextOptions>(
  (app, { openContext }, done) => {
    app.decorateRequest('callerContext', null)
    app.addHook('preHandler', (request, _reply, next) => {
      const { identity, headers, clientAddress, narrowedTo, admittedWith } = request
      if (identity === null) {
        next()
        return undefined
      }
      const origin = {
        client: headers['user-agent'],
        clientAddress: clientAddress ?? undefined,
        narrowedTo,
        record: admittedWith?.record,
      }
      const context = openContext(identity, origin)
      if (context instanceof Promise) return context.then((opened) => void (request.callerContext = opened))
      request.callerContext = context
      next()
      return undefined
    })
    done()
  },
  { name: 'context', dependencies: ['auth', 'client-address', 'dispatcher', 'offer'] },
)
