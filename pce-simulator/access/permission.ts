import { Type } from '@sinclair/typebox'
import type { PceObject, Reference } from '../../schemas/pce/reference.js'
import { collectHrefs } from '../kinds/find-usage.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidUri } from '../refusal.js'
import { pointsTo, type Filter } from '../validate/query-filters.js'
import { Href, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { PermissionScope, readScope, renderScope } from './permission-scope.js'
import { requireRole } from './role.js'

// The schema for creating a permission allows further properties, unlike nearly all other request schemas (P49).
const CREATE = new Shape(
  'permissions_post',
  Type.Object({ role: Href, scope: PermissionScope, auth_security_principal: Href }),
)
const UPDATE = new Shape(
  'permissions_put',
  Type.Object({
    role: Type.Optional(Href),
    scope: Type.Optional(PermissionScope),
    auth_security_principal: Type.Optional(Href),
  }),
)

/**
 * The object kind for permissions (P28). A permission gives one principal a role within a scope. The filters for the
 * list of permissions take JSON values (P12).
 */
export const permission: PlainKind = {
  segment: 'permissions',
  noun: 'permission',
  ids: 'uuid',
  store: (world) => world.store('permissions'),
  filters: {
    role: byJsonHref('role'),
    auth_security_principal: byJsonHref('auth_security_principal'),
    scope: (value) => {
      const wanted = hrefsOf(parse(value))
      return ({ scope }) => hrefsOf(scope) === wanted
    },
  },

  build(world, body) {
    const { role, scope, auth_security_principal } = CREATE.read(body)
    return {
      role: requireRole(world, role),
      scope: readScope(world, scope),
      auth_security_principal: requirePrincipal(world, auth_security_principal),
    }
  },

  change(world, _current, body) {
    const { role, scope, auth_security_principal } = UPDATE.read(body)
    return {
      ...(role && { role: requireRole(world, role) }),
      ...(scope && { scope: readScope(world, scope) }),
      ...(auth_security_principal && { auth_security_principal: requirePrincipal(world, auth_security_principal) }),
    }
  },

  remove: () => null,

  render(world, { href, role, scope, auth_security_principal }) {
    return { href, role, scope: renderScope(world, scope), auth_security_principal }
  },
}

/** Lists the permissions of a principal. */
export function permissionsOf(world: World, principal: string | undefined): PceObject[] {
  return world
    .store('permissions')
    .live()
    .filter(({ auth_security_principal }) => (auth_security_principal as Reference).href === principal)
    .map((object) => permission.render(world, object, new URLSearchParams()) as PceObject)
}

function requirePrincipal(world: World, { href }: Reference): Reference {
  if (!world.store('auth_security_principals').get(href)) throw invalidUri(href)
  return { href }
}

/**
 * Creates a filter whose value is an href in JSON, either as a string with its quotes (`role="/orgs/1/roles/owner"`) or
 * as an object (`role={"href":"/orgs/1/roles/owner"}`).
 */
function byJsonHref(field: string): Filter {
  return (value, world) => {
    const parsed = parse(value)
    const href = typeof parsed === 'string' ? parsed : (parsed as Partial<Reference> | null)?.href
    if (typeof href !== 'string') throw invalidUri(value)
    return pointsTo(field)(href, world)
  }
}

function parse(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw invalidUri(value)
  }
}

/** Normalises a scope for comparison. Two scopes are equal if they name the same labels and groups in any order. */
function hrefsOf(scope: unknown): string {
  if (!Array.isArray(scope)) throw invalidUri(JSON.stringify(scope))
  return [...collectHrefs(scope)].sort().join()
}
