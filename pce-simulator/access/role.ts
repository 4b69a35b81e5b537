import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidUri } from '../refusal.js'
import { orgPath, type World } from '../world.js'

export const ROLES = [
  'owner',
  'admin',
  'read_only',
  'global_object_provisioner',
  'ruleset_manager',
  'limited_ruleset_manager',
  'ruleset_provisioner',
  'ruleset_viewer',
  'workload_manager',
]

/**
 * The object kind for roles. Roles are read-only and consist only of an href, which ends in the role's name (P12, P28).
 */
export const role: PlainKind = {
  segment: 'roles',
  noun: 'role',
  ids: (_world, body) => String(body),
  store: (world) => world.store('roles'),
  filters: {},
  render: (_world, object) => object,
}

export function seedRoles(world: World): void {
  for (const name of ROLES) world.store('roles').set({ href: roleHref(world, name) })
}

export function roleHref(world: World, name: string): string {
  return orgPath(world, `/roles/${name}`)
}

export function requireRole(world: World, { href }: Reference): Reference {
  if (!world.store('roles').get(href)) throw invalidUri(href)
  return { href }
}

/** Returns true if one of the permissions grants the role `wanted`, which is the role's href or only its name. */
export function hasRole(permissions: readonly PceObject[], wanted: string): boolean {
  return permissions.some(({ role }) => {
    const { href } = role as Reference
    return href === wanted || href.endsWith(`/roles/${wanted}`)
  })
}
