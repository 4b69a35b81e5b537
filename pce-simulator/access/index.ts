import type { Route } from '../http/route.js'
import { plainRoutes } from '../kinds/plain-kind.js'
import { singleRoutes } from '../kinds/single-kind.js'
import type { Estate } from '../model.js'
import type { World } from '../world.js'
import { accessRestriction } from './access-restriction.js'
import { issueKey } from './api-key.js'
import { authSecurityPrincipal, seedPrincipal } from './principals.js'
import { authenticationSettings } from './authentication-settings.js'
import { ldapConfigRoutes } from './ldap-config.js'
import { loginRoutes } from './login.js'
import { orgApiKeyRoutes } from './org-api-keys.js'
import { passwordPolicy } from './password-policy.js'
import { permission } from './permission.js'
import { role, roleHref, seedRoles } from './role.js'
import { samlConfigRoutes, seedSamlConfig } from './saml-config.js'
import { securityPrincipalRoutes } from './security-principal.js'
import { serviceAccountKeyRoutes } from './service-account-keys.js'
import { serviceAccountRoutes } from './service-account.js'
import { userApiKeyRoutes } from './user-api-keys.js'
import { userRoutes } from './user-routes.js'
import { seedUsers } from './user.js'

/** Who may do what: users, roles, permissions, keys, logins and the ways to log in (P2, P28). */
export const accessRoutes: Route[] = [
  ...[accessRestriction, authSecurityPrincipal, permission, role].flatMap(plainRoutes),
  ...[authenticationSettings, passwordPolicy].flatMap(singleRoutes),
  ...ldapConfigRoutes,
  ...samlConfigRoutes,
  // Before those of one user: `login` is no id.
  ...loginRoutes,
  ...userRoutes,
  ...userApiKeyRoutes,
  ...serviceAccountRoutes,
  ...serviceAccountKeyRoutes,
  ...orgApiKeyRoutes,
  ...securityPrincipalRoutes,
]

const NEVER = -1

/** The roles, the people of the estate, the first of them an owner with an API key, and an identity provider. */
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
  seedSamlConfig(world)
}
