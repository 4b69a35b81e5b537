import type { PceObject } from '../../schemas/pce/reference.js'
import { UNCERTAIN } from '../uncertain.js'
import type { World } from '../world.js'
import { admits } from './access-restriction.js'
import { keysOf, ownerOf, stateOf } from './api-key.js'
import { principalOfUser } from './principals.js'
import { matchesDigest } from './digest.js'
import { useSession } from './sessions.js'

/** Who sent a request. */
export type Caller = World['user']

/**
 * Whose API key or session the name and secret of Basic authentication are, or the status that refuses them: 401 also for what has
 * expired (P2).
 */
export function findCaller(world: World, credentials: string, address: string): Caller | 401 | 403 {
  const session = useSession(world, credentials)
  if (session) return admitted(world, session, 'user_sessions', address)
  const cut = credentials.indexOf(':')
  const [name, secret] = [credentials.slice(0, cut), credentials.slice(cut + 1)]
  const key = keysOf(world).find(({ auth_username }) => auth_username === name)
  if (!key || !matchesDigest(secret, key.secret_digest) || stateOf(world, key) === 'expired') return 401
  const owner = world.store('users').get(ownerOf(key)) ?? world.store('service_accounts').get(ownerOf(key))
  if (!owner) return 401
  world.store('api_keys').set({ ...key, last_login_on: world.now() })
  return admitted(world, owner, 'api_keys', address)
}

/** A user's restriction is that of the principal of the same name; an account has its own. */
function admitted(
  world: World,
  owner: PceObject,
  means: 'user_sessions' | 'api_keys',
  address: string,
): Caller | 401 | 403 {
  const isUser = owner.username !== undefined
  const bearer = isUser ? principalOfUser(world, owner) : owner
  if (bearer && !admits(world, bearer, means, address)) return UNCERTAIN.excludedAddressStatus
  return { href: owner.href, username: (isUser ? owner.username : owner.name) as string }
}
