import type { FastifyInstance } from 'fastify'
import { findCaller, type Caller } from '../access/find-caller.js'
import { Refusal } from '../refusal.js'
import type { World } from '../world.js'
import { readBasic } from './read-basic.js'

/** The paths that need no credentials, or whose handlers check the credentials themselves (P2, P5). */
const OPEN_PATHS = new Set(['/api/v2/node_available', '/api/v2/login_users/authenticate', '/api/v2/users/login'])

declare module 'fastify' {
  interface FastifyRequest {
    /** The user or service account that sent the request; null on paths that need no credentials. */
    caller: Caller | null
  }
}

/**
 * Requires Basic authentication by an API key or a session for every path below `/api`. Answers 401 without a JSON body
 * if the credentials are wrong or missing, and 403 if the path contains the id of another organisation (P2, P30).
 */
export function authenticate(app: FastifyInstance, world: World): void {
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request, reply) => {
    const path = (request.raw.url ?? '').split('?', 1)[0]!
    if (!path.startsWith('/api') || OPEN_PATHS.has(path)) return
    const refuse = (reason: string, status: number) =>
      world.events.recordRefusedRequest(`request.${reason}`, path, request.method, status, request.ip)
    const given = readBasic(request.headers.authorization)
    const found = given === null ? null : findCaller(world, given)
    if (found === null) {
      refuse('authentication_failed', 401)
      return reply
        .code(401)
        .header('www-authenticate', 'Basic realm="PCE"')
        .header('content-type', 'text/plain')
        .send('')
    }
    const org = /^\/api\/v2\/orgs\/([^/]+)/.exec(path)
    if (org && org[1] !== String(world.orgId)) {
      refuse('authorization_failed', 403)
      throw new Refusal(403, [{ token: 'forbidden_error', message: 'Forbidden' }])
    }
    request.caller = found
  })
}
