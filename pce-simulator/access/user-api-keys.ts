import { Type } from '@sinclair/typebox'
import type { Route } from '../http/route.js'
import { plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { CLOSED, Name, Shape, Text } from '../validate/shape.js'
import { issueKey, renderIssued } from './api-key.js'
import { requireUser } from './user.js'

const CREATE = new Shape('users_api_keys_post', Type.Object({ name: Name, description: Type.Optional(Text) }, CLOSED))
const UPDATE = new Shape(
  'users_api_keys_put',
  Type.Object({ name: Type.Optional(Name), description: Type.Optional(Text) }, CLOSED),
)

const userApiKey: PlainKind = {
  segment: 'api_keys',
  route: '/users/:user/api_keys',
  noun: 'api_key',
  ids: 'int',
  store: (world) => world.store('api_keys'),
  requireParent: ({ world, params }) => void requireUser(world, params.user!),
  filters: {},
  change: (_world, _current, body) => UPDATE.read(body),
  remove: () => null,
  render(_world, { href, key_id, auth_username, name, description, created_at }) {
    return { href, key_id, auth_username, name, description, created_at }
  },
}

const [collection, item] = plainRoutes(userApiKey)

/** The routes of one user's API keys (P13). */
export const userApiKeyRoutes: Route[] = [
  {
    ...collection!,
    verbs: {
      ...collection!.verbs,
      POST: {
        event: 'api_key.create',
        handle: ({ world, params, body }) => {
          const user = requireUser(world, params.user!)
          const { key, secret, change } = issueKey(world, user.href, CREATE.read(body))
          return { status: 201, json: renderIssued(key, secret), changes: [change] }
        },
      },
    },
  },
  item!,
]
