import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidInput } from '../refusal.js'
import { exact, partial } from '../validate/query-filters.js'
import { CLOSED, Href, Name, Nullable, OneOf, Shape } from '../validate/shape.js'
import { birthOf } from '../built-in-objects.js'
import { orgPath, type World } from '../world.js'
import { requireRestriction } from './access-restriction.js'
import { permissionsOf } from './permission.js'

const Restriction = Type.Optional(Nullable(Href))
// Open, unlike nearly all request schemas (P49).
const CREATE = new Shape(
  'auth_security_principals_post',
  Type.Object({
    type: OneOf('user', 'group', 'service_account'),
    name: Name,
    display_name: Type.Optional(Type.String()),
    uuid: Type.Optional(Type.String({ minLength: 1 })),
    access_restriction: Restriction,
  }),
)
const UPDATE = new Shape(
  'auth_security_principals_put',
  Type.Object(
    {
      type: Type.Optional(OneOf('user', 'group')),
      name: Type.Optional(Name),
      display_name: Type.Optional(Type.String()),
      access_restriction: Restriction,
    },
    CLOSED,
  ),
)

const SEGMENT = 'auth_security_principals'

/** The holders of permissions; users are identified by their user names (P12, P28). */
export const authSecurityPrincipal: PlainKind = {
  segment: SEGMENT,
  noun: 'auth_security_principal',
  ids: (world, body) => (body as { uuid?: string }).uuid ?? world.ids.uuid(SEGMENT),
  store: (world) => world.store(SEGMENT),
  filters: { name: partial('name'), type: exact('type') },

  build(world, body) {
    const { type, name, display_name = null, uuid, access_restriction = null } = CREATE.read(body)
    requireRestriction(world, access_restriction)
    if (uuid !== undefined && world.store(SEGMENT).get(orgPath(world, `/${SEGMENT}/${encodeURIComponent(uuid)}`))) {
      throw invalidInput(`The principal ${uuid} exists`)
    }
    return { type, name, display_name, access_restriction }
  },

  change(world, _current, body) {
    const fields = UPDATE.read(body)
    requireRestriction(world, fields.access_restriction)
    return fields
  },

  remove(world, { href }) {
    removePermissions(world, href)
    return null
  },

  render(_world, { href, type, name, display_name, access_restriction }) {
    const uuid = decodeURIComponent(href.slice(href.lastIndexOf('/') + 1))
    return { href, uuid, type, name, display_name, access_restriction }
  },
}

/** A permission of nobody would be none. */
export function removePermissions(world: World, principal: string): void {
  for (const { href } of permissionsOf(world, principal)) world.store('permissions').remove(href)
}

/** The principal of a user, when permissions were ever given to that name. */
export function principalOfUser(world: World, { username }: PceObject): PceObject | undefined {
  return world
    .store(SEGMENT)
    .live()
    .find(({ type, name }) => type === 'user' && name === username)
}

/** Bears the permissions of a service account; its id is the account's. */
export function principalOfAccount(world: World, account: string): string {
  return account.replace(/^.*\/service_accounts\//, orgPath(world, `/${SEGMENT}/`))
}

export function seedPrincipal(world: World, type: string, name: string, displayName: string): PceObject {
  const principal: PceObject = {
    href: orgPath(world, `/${SEGMENT}/${world.ids.uuid(SEGMENT)}`),
    type,
    name,
    display_name: displayName,
    access_restriction: null,
    ...birthOf(world),
  }
  world.store(SEGMENT).set(principal)
  return principal
}
