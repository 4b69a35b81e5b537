import type { PceObject } from '../../schemas/pce/reference.js'
import { passwordPolicy } from '../kinds/generic-kinds.js'
import { singleOf } from '../kinds/single-kind.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { digest } from './digest.js'

/** Number of milliseconds for which the token of a login can be exchanged for a session (P2). */
const AUTH_TOKEN_MS = 30_000
const MINUTE = 60_000

// Tokens and sessions are stored under the digest of their secret. The secret itself is never stored.
const authTokens = (world: World) => world.store('auth_tokens')
const sessions = (world: World) => world.store('sessions')

export function issueAuthToken(world: World, user: PceObject): string {
  for (const { href, issued } of authTokens(world).all()) {
    if (isOver(world, issued, AUTH_TOKEN_MS)) authTokens(world).remove(href)
  }
  const token = world.ids.hex('auth-token', 64)
  authTokens(world).set({ href: digest(token), user: user.href, issued: world.clock() })
  return token
}

/** Finds the user of a login token; returns undefined if the token is wrong or too old. */
export function redeemAuthToken(world: World, token: string): PceObject | undefined {
  const kept = authTokens(world).get(digest(token))
  if (!UNCERTAIN.authTokenIsReusable) authTokens(world).remove(digest(token))
  return kept && !isOver(world, kept.issued, AUTH_TOKEN_MS) ? world.store('users').get(kept.user as string) : undefined
}

/** Starts a session and returns its Basic credentials: `user_<id>` and a token. */
export function startSession(world: World, user: PceObject): { auth_username: string; session_token: string } {
  for (const { href, used } of sessions(world).all()) {
    if (isOver(world, used, idleMs(world))) sessions(world).remove(href)
  }
  const auth_username = `user_${user.href.slice(user.href.lastIndexOf('/') + 1)}`
  const session_token = world.ids.hex('session-token', 40)
  const href = digest(`${auth_username}:${session_token}`)
  sessions(world).set({ href, user: user.href, used: world.clock() })
  return { auth_username, session_token }
}

/** Finds the user of a session that has not been idle for too long, and restarts its idle time. */
export function useSession(world: World, credentials: string): PceObject | undefined {
  const session = sessions(world).get(digest(credentials))
  if (!session || isOver(world, session.used, idleMs(world))) return undefined
  sessions(world).set({ ...session, used: world.clock() })
  return world.store('users').get(session.user as string)
}

/** Ends the session with these credentials. If the credentials belong to an API key, all sessions of the user end. */
export function endSessions(world: World, user: PceObject, credentials: string): void {
  const own = sessions(world).get(digest(credentials))
  const ended = own ? [own] : sessions(world).all()
  for (const session of ended) if (session.user === user.href) sessions(world).remove(session.href)
}

export function hasSession(world: World, user: string): boolean {
  return sessions(world)
    .all()
    .some((session) => session.user === user && !isOver(world, session.used, idleMs(world)))
}

export function inactivityMinutes(world: World): number {
  return singleOf(world, passwordPolicy).session_timeout_minutes as number
}

function idleMs(world: World): number {
  return inactivityMinutes(world) * MINUTE
}

function isOver(world: World, since: unknown, lifetime: number): boolean {
  return world.clock() - (since as number) >= lifetime
}
