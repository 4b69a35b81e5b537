import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Owner } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'
import type { Admissions, SealedCredentials } from '../../schemas/state.js'

export interface AdmissionOptions {
  admissions: Admissions
  /** Maximum number of requests per minute from one caller; 0 means no limit. */
  perMinute: number
  /** Maximum number of simultaneous requests from one caller; 0 means no limit. */
  atATime: number
  /** Returns the caller of a request, or null for unknown senders, who are not counted. */
  ownerOf: (request: FastifyRequest) => Owner | null
  /** If false, the requests per minute are counted elsewhere, and only simultaneous requests are limited here. */
  isCounted?: boolean
  /**
   * The hook in which the limit is checked: `preParsing` for routes that identify the sender of a request themselves.
   * The default is `onRequest`.
   */
  hook?: 'onRequest' | 'preParsing'
  /**
   * Counts the request in this process while the store does not respond, so that an outage does not lift the limits.
   */
  chargeHere: (request: FastifyRequest) => Promise<void>
}

declare module 'fastify' {
  interface FastifyRequest {
    admittedWith?: { record: SealedCredentials | null } | null
  }
}

/**
 * Applies a caller's limits across all replicas: one round trip to the store counts the request, reserves a place among
 * the caller's simultaneous requests, and reads the caller's keystore record (D139). While the store does not respond,
 * requests continue and are counted by this process alone. If a request needs anything else from the store, that step
 * fails separately, and calls that change something are refused by a gate of their own (D140).
 */
export default fp<AdmissionOptions>(
  (app, { admissions, perMinute, atATime, ownerOf, isCounted = true, hook = 'onRequest', chargeHere }, done) => {
    if (!app.hasRequestDecorator('admittedWith')) app.decorateRequest('admittedWith', null)
    const admit = async (request: FastifyRequest) => {
      const owner = ownerOf(request)
      if (owner === null) return
      try {
        const { record, holdPlace } = await admissions.admit({ owner, perMinute, atATime, isCounted })
        request.admittedWith = { record }
        // If the client has disconnected in the meantime, this frees the place of its request at once.
        request.heldPlaces?.add((by) => holdPlace(by === 1))
        if (request.heldPlaces === null) holdPlace(false)
      } catch (error) {
        if (error instanceof ToolError) throw error
        await chargeHere(request)
      }
    }
    if (hook === 'onRequest') app.addHook('onRequest', admit)
    else app.addHook('preParsing', admit)
    done()
  },
  { name: 'admission', dependencies: ['in-flight'] },
)
