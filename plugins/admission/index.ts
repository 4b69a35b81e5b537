import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Owner } from '../../schemas/caller.js'
import { ToolError } from '../../schemas/errors.js'
import type { Admissions, SealedCredentials } from '../../schemas/state.js'

export interface AdmissionOptions {
  admissions: Admissions
  /** Requests of one caller per minute; 0 for no limit. */
  perMinute: number
  /** Requests of one caller at a time; 0 for no limit. */
  atATime: number
  /** Whose request it is; null for strangers, who pass uncounted. */
  ownerOf: (request: FastifyRequest) => Owner | null
  /** False where something else counts the requests, and they only take places here. */
  isCounted?: boolean
  /** When it is asked: `preParsing` where a route itself finds out who it is from. Default onRequest. */
  hook?: 'onRequest' | 'preParsing'
  /** Counted here as long as the store does not answer, so that a caller without limits is no way around them. */
  chargeHere: (request: FastifyRequest) => Promise<void>
}

declare module 'fastify' {
  interface FastifyRequest {
    admittedWith?: { record: SealedCredentials | null } | null
  }
}

/**
 * The limits of a caller where they hold over all replicas: one round trip to the store counts the request, takes a place and reads what
 * the keystore has of the caller (D139). While the store does not answer, requests go on, counted by this process alone: what they need
 * of the store fails by itself, and changes are refused by a gate (D140).
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
        // Of a client that has left meanwhile the place is given back at once.
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
