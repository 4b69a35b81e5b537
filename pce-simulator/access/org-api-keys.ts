import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import { answerCollection } from '../kinds/answer-collection.js'
import { invalidInput, notFound } from '../refusal.js'
import { exact, type Filters } from '../validate/query-filters.js'
import type { World } from '../world.js'
import { keysOf, ownerOf, renderKey, revokeKey } from './api-key.js'
import { principalOfAccount, principalOfUser } from './principals.js'
import { permissionsOf } from './permission.js'
import { hasRole } from './role.js'

interface Account {
  href: string
  type: string
  name: unknown
  access_restriction: unknown
  permissions: PceObject[]
}

const accountOf = (key: PceObject) => key.account as Account

const FILTERS: Filters = {
  type: (value) => (key) => accountOf(key).type === value,
  username: (value) => (key) => accountOf(key).name === value,
  role: (value) => (key) => hasRole(accountOf(key).permissions, value),
  name: exact('name'),
  state: exact('state'),
}

/**
 * The routes of all API keys of the organisation, both of users and of service accounts (P56). In these routes, the
 * href of each key begins with the organisation's path.
 */
export const orgApiKeyRoutes: Route[] = [
  {
    path: '/orgs/:org/api_keys',
    verbs: {
      GET: {
        handle: (call) => {
          requireType(call)
          const objects = keysOf(call.world).map((key) => describe(call.world, key))
          return answerCollection(call, { objects, filters: FILTERS, render: (key) => key })
        },
      },
    },
  },
  {
    path: '/orgs/:org/api_keys/:id',
    verbs: {
      DELETE: {
        event: 'api_key.delete',
        handle: ({ world, params }) => {
          const key = keysOf(world).find(({ key_id }) => key_id === params.id)
          if (!key) throw notFound()
          return { status: 204, changes: [revokeKey(world, key)] }
        },
      },
    },
  },
]

function requireType({ query }: Call): void {
  const type = query.get('type')
  if (type !== 'user' && type !== 'service_account') {
    throw invalidInput('The parameter type must be user or service_account')
  }
}

function describe(world: World, key: PceObject): PceObject {
  return { ...(renderKey(world, key) as PceObject), account: describeAccount(world, ownerOf(key)) }
}

function describeAccount(world: World, href: string): Account {
  const user = world.store('users').get(href)
  if (user) {
    const principal = principalOfUser(world, user)
    return {
      href,
      type: 'user',
      name: user.username,
      access_restriction: principal?.access_restriction ?? null,
      permissions: permissionsOf(world, principal?.href),
    }
  }
  const account = world.store('service_accounts').get(href)
  return {
    href,
    type: 'service_account',
    name: account?.name,
    access_restriction: account?.access_restriction ?? null,
    permissions: permissionsOf(world, principalOfAccount(world, href)),
  }
}
