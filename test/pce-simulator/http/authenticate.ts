import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Refusal } from '../refusal.js'
import type { World } from '../world.js'

/** Needs no credentials (pce-api a.5). */
const OPEN_PATH = '/api/v2/node_available'

/**
 * Basic authentication of every path below `/api`: 401 without a JSON body for wrong or missing credentials, 403 for the id of
 * another organisation (pce-api a.2, f.2).
 */
export function authenticate(app: FastifyInstance, world: World): void {
  const expected = digest(`${world.credentials.key}:${world.credentials.secret}`)
  app.addHook('onRequest', async (request, reply) => {
    const path = (request.raw.url ?? '').split('?', 1)[0]!
    if (!path.startsWith('/api') || path === OPEN_PATH) return
    const basic = /^Basic\s+([A-Za-z0-9+/=]+)$/i.exec(request.headers.authorization ?? '')
    const given = basic ? Buffer.from(basic[1]!, 'base64').toString('utf8') : null
    if (given === null || !timingSafeEqual(digest(given), expected)) {
      world.events.recordRefusedRequest('request.authentication_failed', path, request.method, 401, request.ip)
      return reply
        .code(401)
        .header('www-authenticate', 'Basic realm="PCE"')
        .header('content-type', 'text/plain')
        .send('')
    }
    const org = /^\/api\/v2\/orgs\/([^/]+)/.exec(path)
    if (org && org[1] !== String(world.orgId)) {
      world.events.recordRefusedRequest('request.authorization_failed', path, request.method, 403, request.ip)
      throw new Refusal(403, [{ token: 'forbidden_error', message: 'Forbidden' }])
    }
  })
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
