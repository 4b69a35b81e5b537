import { Type } from '@sinclair/typebox'
import type { Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import { CLOSED, Shape } from '../validate/shape.js'
import { issueKey, renderIssued, revokeKey } from './api-key.js'
import { Lifetime } from './service-account.js'

const CREATE = new Shape('service_accounts_api_keys_post', Type.Object({ expires_in_seconds: Lifetime }, CLOSED))

/**
 * The API routes for the keys of a service account. There is no route that lists the keys, because a GET of the account
 * returns them (P56).
 */
export const serviceAccountKeyRoutes: Route[] = [
  {
    path: '/orgs/:org/service_accounts/:account/api_keys',
    verbs: {
      POST: {
        event: 'api_key.create',
        handle: ({ world, path, body }) => {
          const account = world.store('service_accounts').get(path.replace(/\/api_keys$/, ''))
          if (!account) throw notFound()
          const { key, secret, change } = issueKey(world, account.href, CREATE.read(body))
          return { status: 201, json: renderIssued(key, secret), changes: [change] }
        },
      },
    },
  },
  {
    path: '/orgs/:org/service_accounts/:account/api_keys/:id',
    verbs: {
      DELETE: {
        event: 'api_key.delete',
        handle: ({ world, path }) => {
          const key = world.store('api_keys').get(path)
          if (!key) throw notFound()
          return { status: 204, changes: [revokeKey(world, key)] }
        },
      },
    },
  },
]
