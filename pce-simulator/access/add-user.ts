import type { GivenRole, RoleKey } from '../options.js'
import type { World } from '../world.js'
import { issueKey } from './api-key.js'
import { seedPrincipal } from './principals.js'
import { roleHref, ROLES } from './role.js'
import { seedUsers } from './user.js'

/**
 * The value of `expires_in_seconds` for a key that never expires. It is used for the users in the simulator's options.
 */
const NEVER = -1

/** Creates a user with one role and an API key. Throws if the role or a label does not exist. */
export function addUser(world: World, { role, scope = {} }: GivenRole): RoleKey {
  if (!ROLES.includes(role)) throw new Error(`There is no role ${role}; the roles are ${ROLES.join(', ')}`)
  const labels = Object.entries(scope).map(([key, value]) => {
    const found = world.labels.live().find((label) => label.key === key && label.value === value)
    if (!found) throw new Error(`The estate has no label ${key}=${value}`)
    return { label: { href: found.href } }
  })
  const id = world.ids.int('users')
  const user = { href: `/users/${id}`, username: `${role}-${id}@example.com`, full_name: role.replaceAll('_', ' ') }
  seedUsers(world, [user])
  const principal = seedPrincipal(world, 'user', user.username, user.full_name)
  world.store('permissions').set({
    href: `/orgs/${world.orgId}/permissions/${world.ids.uuid('permissions')}`,
    role: { href: roleHref(world, role) },
    scope: labels,
    auth_security_principal: { href: principal.href },
  })
  const { key, secret } = issueKey(world, user.href, { name: role, expires_in_seconds: NEVER })
  return { role, scope, key: key.auth_username as string, secret }
}
