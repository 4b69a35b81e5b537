import type { PceObject } from '../../schemas/pce/reference.js'
import type { Answer, Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { readBasic } from '../http/read-basic.js'
import { changePlain } from '../kinds/plain-kind.js'
import { PRODUCT_VERSION } from '../status/routes.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { matchesDigest } from './digest.js'
import { endSessions, inactivityMinutes, issueAuthToken, redeemAuthToken, startSession } from './sessions.js'
import { orgsOf } from './user-routes.js'
import { findUser, requireUser, user } from './user.js'

/**
 * The routes of logins. A login has two steps (P2): a name and password are exchanged for a token, which is valid for
 * 30 seconds, and the token for a session. The paths of these steps do not belong to an organisation. Their handlers
 * check the credentials themselves, so `authenticate` lets all requests to them pass.
 */
export const loginRoutes: Route[] = [
  { path: '/login_users/authenticate', verbs: { POST: { emptyBody: true, handle: logIn } } },
  { path: '/users/login', verbs: { GET: { handle: exchange } } },
  {
    path: '/users/:id/logout',
    verbs: {
      PUT: {
        event: 'user.logout',
        handle: ({ world, params, headers }) => {
          const leaving = requireUser(world, params.id!)
          endSessions(world, leaving, readBasic(headers.authorization) ?? '')
          return { status: 204, changes: [{ resource: describe(leaving), type: 'update' }] }
        },
      },
    },
  },
]

/**
 * Logs a user in. The documented request has the name and the password in the Authorization header and yields a token.
 * One client sends them in the body instead and expects a session at once, so a request with such a body starts a
 * session too (P2).
 */
function logIn(call: Call): Answer {
  const { world, headers, body } = call
  const { username, password } = (body ?? {}) as { username?: unknown; password?: unknown }
  const asBody = typeof username === 'string' && typeof password === 'string'
  const given = asBody ? `${username}:${password}` : readBasic(headers.authorization)
  const found = given === null ? undefined : checkPassword(world, given)
  if (!found) return refuse(call, given?.slice(0, given.indexOf(':')))
  world.user = callerOf(found)
  const auth_token = issueAuthToken(world, found)
  const json: Json = { auth_token, ...(asBody && openSession(call, found)) }
  const status = UNCERTAIN.loginStatus
  world.events.recordLogin('user.login', call, {
    status,
    changes: [{ resource: describe(found), type: 'update' }],
  })
  return { status, json, changes: [] }
}

function exchange(call: Call): Answer {
  const { world, headers } = call
  const token = /^Token\s+token="?([^"\s]+)"?$/i.exec(headers.authorization ?? '')?.[1]
  const found = token === undefined ? undefined : redeemAuthToken(world, token)
  if (!found) return refuse(call)
  world.user = callerOf(found)
  return { status: 200, json: openSession(call, found) }
}

function openSession(call: Call, found: PceObject): Json {
  const { world, sourceIp } = call
  const { href, full_name, type, time_zone, last_login_on, last_login_ip_address, login_count } = found
  const json = {
    href,
    ...startSession(world, found),
    inactivity_expiration_minutes: inactivityMinutes(world),
    // These fields describe the user's previous login, not the present one.
    last_login_on,
    last_login_ip_address,
    full_name,
    type,
    time_zone,
    product_version: PRODUCT_VERSION,
    orgs: orgsOf(world, found),
  }
  const change = changePlain(user, world, found, {
    login_count: (login_count as number) + 1,
    last_login_on: world.now(),
    last_login_ip_address: sourceIp,
  })
  world.events.recordLogin('user.create_session', call, { status: 200, changes: [change] })
  return json
}

/** Refuses a login with 401, without a JSON body (P2). */
function refuse({ world, path, verb, sourceIp }: Call, username?: string): Answer {
  world.events.recordRefusedRequest('request.authentication_failed', `/api/v2${path}`, verb, 401, sourceIp, username)
  return {
    status: 401,
    file: { type: 'text/plain', content: '' },
    headers: { 'www-authenticate': 'Basic realm="PCE"' },
  }
}

/** Finds the user with this name and password, unless the account is locked. */
function checkPassword(world: World, given: string): PceObject | undefined {
  const cut = given.indexOf(':')
  const found = findUser(world, given.slice(0, cut))
  const matches = matchesDigest(given.slice(cut + 1), found?.password_digest)
  return matches && found?.locked !== true ? found : undefined
}

function callerOf({ href, username }: PceObject): World['user'] {
  return { href, username: username as string }
}

function describe({ href, username }: PceObject): Json {
  return { user: { href, username } }
}
