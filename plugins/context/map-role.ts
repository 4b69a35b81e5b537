import { ROLES, type Identity, type Role } from '../../schemas/caller.js'
import type { RoleMapping } from '../../schemas/config.js'
import { ToolError } from '../../schemas/errors.js'

/**
 * The highest role that one of the identity's groups or app roles is mapped to: compared exactly and case-sensitively, empty
 * entries never match (S13). Whoever is on no list has the default, but not where the provider left the groups out (Entra ID, more
 * than 200 of them): nobody can say then that they are on no list, so they have what their app roles give, or nothing (D45).
 */
export function mapRole(identity: Identity, mapping: RoleMapping): Role | null {
  const groups = new Set(identity.groups.filter((group) => group !== ''))
  const role = ROLES.findLast((candidate) => mapping.groups[candidate].some((group) => groups.has(group)))
  return role ?? (identity.hasGroupsOverage ? null : mapping.otherwise)
}

/** What an identity without a role is told where there is more to say than that its groups give none. */
export function explainNoRole(identity: Identity): ToolError | undefined {
  if (!identity.hasGroupsOverage) return undefined
  return new ToolError(
    'forbidden_no_role',
    'Your access token leaves your groups out, because they are too many for it, so they give you no role here.',
    { reason: 'groups_overage' },
    {
      hint: 'Ask the operator to assign you an app role, which stays in the token, or to limit the groups that go into tokens to those assigned to this application.',
    },
  )
}
