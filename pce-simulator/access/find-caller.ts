import type { PceObject } from '../../schemas/pce/reference.js'
import type { World } from '../world.js'
import { keysOf, ownerOf, stateOf } from './api-key.js'
import { matchesDigest } from './digest.js'
import { useSession } from './sessions.js'

/** The user or service account that sent a request. */
export type Caller = World['user']

/**
 * Finds the user or service account to whom the credentials belong: the `name:secret` of a Basic Authorization header,
 * where name and secret are those of an API key or of a session. Returns null if the credentials are wrong or have
 * expired (P2).
 */
export function findCaller(world: World, credentials: string): Caller | null {
  const session = useSession(world, credentials)
  if (session) return callerOf(session)
  const cut = credentials.indexOf(':')
  const [name, secret] = [credentials.slice(0, cut), credentials.slice(cut + 1)]
  const key = keysOf(world).find(({ auth_username }) => auth_username === name)
  if (!key || !matchesDigest(secret, key.secret_digest) || stateOf(world, key) === 'expired') return null
  const owner = world.store('users').get(ownerOf(key)) ?? world.store('service_accounts').get(ownerOf(key))
  if (!owner) return null
  world.store('api_keys').set({ ...key, last_login_on: world.now() })
  return callerOf(owner)
}

function callerOf({ href, username, name }: PceObject): Caller {
  return { href, username: (username ?? name) as string }
}
