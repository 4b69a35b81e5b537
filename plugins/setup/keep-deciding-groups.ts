import { ROLES, type Identity, type Role } from '../../schemas/caller.js'

/**
 * The same identity with no more groups than decide its role: one for each role that it has a group of. A person may be in hundreds of
 * groups, and a cookie holds 4 KB.
 */
export function keepDecidingGroups(
  identity: Identity,
  groupsOfRole: Readonly<Record<Role, readonly string[]>>,
): Identity {
  const own = new Set(identity.groups)
  const groups = ROLES.flatMap((role) => groupsOfRole[role].filter((group) => own.has(group)).slice(0, 1))
  return { ...identity, groups: [...new Set(groups)] }
}
