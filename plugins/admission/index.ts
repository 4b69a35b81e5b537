import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Owner } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'
import type { Admissions, Revocation, SealedCredentials } from '../../schemas/state.js'

export interface AdmissionOptions {
  admissions: Admissions
  /** Maximum number of requests per minute from one caller; 0 means no limit. */
  perMinute: number
  /** Maximum number of simultaneous requests from one caller; 0 means no limit. */
  atATime: number
  /**
   * Returns the caller of a request, or null if the sender is unknown. Requests of unknown senders are not counted
   * here.
   */
  ownerOf: (request: FastifyRequest) => Owner | null
  /** If false, this plugin limits only simultaneous requests, because the requests per minute are counted elsewhere. */
  isCounted?: boolean
  /**
   * The Fastify hook in which the limits are checked; by default, `onRequest`. Routes that identify the sender of a
   * request by themselves use `preParsing`.
   */
  hook?: 'onRequest' | 'preParsing'
  /**
   * Refuses the request if the sender's access was revoked. `revocation` is the sender's revocation in the store, null
   * if there is none, and undefined if the store did not respond. Absent if the routes check this themselves.
   */
  requireAccess?: (request: FastifyRequest, reply: FastifyReply, revocation?: Revocation | null) => unknown
  /** Counts a request in this process. Called while the store does not respond, so that the limits apply even then. */
  chargeHere: (request: FastifyRequest) => Promise<void>
}

declare module 'fastify' {
  interface FastifyRequest {
    admittedWith?: { record: SealedCredentials | null } | null
  }
}

/**
 * Applies limits to each caller across all replicas. A single round trip to the store counts the request, reserves one
 * of the caller's slots for simultaneous requests, and reads the caller's keystore record and revocation (D139, D282).
 * While the store does not respond, requests are still served and only counted by this process. If a later step of a
 * request needs the store, that step fails; calls that change something are refused by a gate of their own (D140).
 */
export default fp<AdmissionOptions>(
  (app, { admissions, perMinute, atATime, ownerOf, isCounted = true, hook = 'onRequest', ...more }, done) => {
    const { chargeHere, requireAccess } = more
    if (!app.hasRequestDecorator('admittedWith')) app.decorateRequest('admittedWith', null)
    const admit = async (request: FastifyRequest, reply: FastifyReply) => {
      const owner = ownerOf(request)
      if (owner === null) return
      let found: Revocation | null | undefined
      try {
        const { record, revocation, holdPlace } = await admissions.admit({ owner, perMinute, atATime, isCounted })
        request.admittedWith = { record }
        found = revocation
        // If the client has already disconnected, the slot reserved for its request is released at once.
        request.heldPlaces?.add((by) => holdPlace(by === 1))
        if (request.heldPlaces === null) holdPlace(false)
      } catch (error) {
        if (error instanceof ToolError) throw error
        await chargeHere(request)
      }
      await requireAccess?.(request, reply, found)
    }
    if (hook === 'onRequest') app.addHook('onRequest', admit)
    else app.addHook('preParsing', admit)
    done()
  },
  { name: 'admission', dependencies: ['in-flight'] },
)
