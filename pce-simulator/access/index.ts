import type { Route } from '../http/route.js'
import { plainRoutes } from '../kinds/plain-kind.js'
import type { Estate } from '../model.js'
import type { World } from '../world.js'
import { issueKey } from './api-key.js'
import { loginRoutes } from './login.js'
import { orgApiKeyRoutes } from './org-api-keys.js'
import { permission } from './permission.js'
import { seedPrincipal } from './principals.js'
import { role, roleHref, seedRoles } from './role.js'
import { serviceAccountKeyRoutes } from './service-account-keys.js'
import { serviceAccountRoutes } from './service-account.js'
import { userApiKeyRoutes } from './user-api-keys.js'
import { userRoutes } from './user-routes.js'
import { seedUsers } from './user.js'

/** The routes of access management: users, roles, permissions, keys and logins (P2, P28). */
export const accessRoutes: Route[] = [
  ...[permission, role].flatMap(plainRoutes),
  // The login routes come before the routes with the id of a user, so that the segment `login` is not read as an id.
  ...loginRoutes,
  ...userRoutes,
  ...userApiKeyRoutes,
  ...serviceAccountRoutes,
  ...serviceAccountKeyRoutes,
  ...orgApiKeyRoutes,
]

const NEVER = -1

/** Creates the roles and the estate's users, the first of whom is an owner with an API key. */
export function seedAccess(world: World, people: Estate['users']): void {
  seedRoles(world)
  const users = people.length > 0 ? people : [{ ...world.user, full_name: '' }]
  seedUsers(world, users)
  for (const { href, username, full_name } of users) {
    const principal = seedPrincipal(world, 'user', username, full_name)
    world.store('permissions').set({
      href: `/orgs/${world.orgId}/permissions/${world.ids.uuid('permissions')}`,
      role: { href: roleHref(world, href === world.user.href ? 'owner' : 'ruleset_manager') },
      scope: [],
      auth_security_principal: { href: principal.href },
    })
  }
  const { key, secret } = world.credentials
  const given = { username: key, secret }
  issueKey(world, world.user.href, { name: 'Default key', expires_in_seconds: NEVER }, given)
}
