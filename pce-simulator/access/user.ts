import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import { birthOf } from '../built-in-objects.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidInput, notAcceptable, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { exact } from '../validate/query-filters.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { principalOfUser } from './principals.js'
import { digest } from './digest.js'
import { permissionsOf } from './permission.js'
import { hasSession } from './sessions.js'

const Text = Type.Optional(Type.String({ maxLength: 255 }))
const CREATE = new Shape(
  'users_post',
  Type.Object({ username: Type.String(), full_name: Text, time_zone: Text, type: OneOf('local') }, CLOSED),
)
const UPDATE = new Shape(
  'users_put',
  Type.Object({ full_name: Text, time_zone: Text, locked: Type.Optional(Type.Boolean()) }, CLOSED),
)

const DEFAULTS = {
  full_name: '',
  time_zone: 'UTC',
  type: 'local',
  locked: false,
  login_count: 0,
  last_login_on: null,
  last_login_ip_address: null,
  local_profile: {},
}

/**
 * The object kind for users. Users belong to the whole PCE, so their path contains no organisation, and they cannot be
 * deleted (P12, P28).
 */
export const user: PlainKind = {
  segment: 'users',
  route: '/users',
  noun: 'user',
  ids: 'int',
  store: (world) => world.store('users'),
  filters: { type: exact('type') },

  build(world, body) {
    const fields = CREATE.read(body)
    if (!/^[^\s@]+@[^\s@]+$/.test(fields.username)) throw invalidInput('The username must be an email address')
    if (findUser(world, fields.username)) {
      const { token, message } = UNCERTAIN.takenUsername
      throw notAcceptable(token, message)
    }
    return { ...DEFAULTS, ...fields }
  },

  change: (_world, _current, body) => UPDATE.read(body),

  render(world, object) {
    const { href, username, full_name, type, time_zone, locked } = object
    return {
      ...{ href, id: Number(href.slice(href.lastIndexOf('/') + 1)), username, full_name, display_name: full_name },
      ...{ type, time_zone, locked },
      presence_status: hasSession(world, href) ? 'online' : 'offline',
      login_count: object.login_count,
      last_login_on: object.last_login_on,
      last_login_ip_address: object.last_login_ip_address,
      // Only users from an identity provider have groups, and the simulated users are local.
      ...(object.effective_groups === undefined ? {} : { effective_groups: object.effective_groups }),
      local_profile: object.local_profile,
      permissions: permissionsOf(world, principalOfUser(world, object)?.href),
      created_at: object.created_at,
      updated_at: object.updated_at,
    }
  },
}

export function findUser(world: World, username: string): PceObject | undefined {
  return world
    .store('users')
    .live()
    .find((one) => one.username === username)
}

export function requireUser(world: World, id: string): PceObject {
  const found = world.store('users').get(`/users/${id}`)
  if (!found) throw notFound()
  return found
}

/** Creates the estate's users. The first one can log in. */
export function seedUsers(
  world: World,
  people: readonly { href: string; username: string; full_name: string }[],
): void {
  for (const { href, username, full_name } of people) {
    const secret = username === world.login.username ? { password_digest: digest(world.login.password) } : {}
    const { created_at, updated_at } = birthOf(world)
    world.store('users').set({ href, ...DEFAULTS, username, full_name, ...secret, created_at, updated_at })
    world.ids.reserve('users', Number(href.slice(href.lastIndexOf('/') + 1)))
  }
}
