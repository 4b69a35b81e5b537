import type { PceObject } from '../../schemas/pce/reference.js'
import { readRoute, type Call, type Route } from '../http/route.js'
import type { Json } from '../model.js'
import { changePlain, createPlain, plainRoutes } from '../kinds/plain-kind.js'
import { invalidInput } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { orgPath, type World } from '../world.js'
import { principalOfUser } from './principals.js'
import { permissionsOf } from './permission.js'
import { requireUser, user } from './user.js'

const [collection, item] = plainRoutes(user)

export const userRoutes: Route[] = [
  { ...collection!, verbs: { ...collection!.verbs, POST: { event: 'user.create', handle: create } } },
  item!,
  readRoute('/users/:id/orgs', ({ world, params }) => ({
    status: 200,
    json: orgsOf(world, requireUser(world, params.id!)),
  })),
  {
    path: '/users/:id/local_profile',
    verbs: {
      POST: {
        event: 'user.create_local_profile',
        handle: ({ world, params }) => {
          const current = requireUser(world, params.id!)
          if (current.local_profile !== null) throw invalidInput('The user has a local profile')
          const change = changePlain(user, world, current, { local_profile: {}, type: 'local' })
          return { status: 201, json: {}, changes: [change] }
        },
      },
      DELETE: {
        event: 'user.delete_local_profile',
        handle: ({ world, params }) => {
          const current = requireUser(world, params.id!)
          if (current.local_profile === null) throw invalidInput('The user has no local profile')
          // Without a local profile, the user has no password and can no longer log in at this PCE.
          const { password_digest: _forgotten, ...rest } = current
          world.store('users').set(rest)
          const change = changePlain(user, world, rest, { local_profile: null, type: 'external' })
          return { status: 204, changes: [change] }
        },
      },
    },
  },
]

/** Lists the organisations that a user may enter. This PCE has only one. */
export function orgsOf(world: World, of: PceObject): Json[] {
  const permissions = permissionsOf(world, principalOfUser(world, of)?.href)
  return [{ href: orgPath(world, ''), org_id: world.orgId, display_name: `Organization ${world.orgId}`, permissions }]
}

/**
 * Creates a user. With the fault `job-failed`, the user is created but the answer is 501, which means that the
 * invitation was not sent (P30).
 */
function create(call: Call) {
  const { world, path } = call
  const made = createPlain(user, user.build!(world, call.body, call), world, { path })
  if (call.fault?.kind !== 'job-failed') return made
  return { ...made, status: 501, json: [UNCERTAIN.invitationNotSent] }
}
