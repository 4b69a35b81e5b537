import { Type, type Static } from '@sinclair/typebox'
import type { Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { findPolicyUsage } from '../kinds/find-usage.js'
import { createPlain, plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { attempt } from '../kinds/workload-bulk.js'
import { notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { exact } from '../validate/query-filters.js'
import { CLOSED, Name, Shape, Text } from '../validate/shape.js'
import { orgPath, type World } from '../world.js'

const MAX_ITEMS = 2000
const Create = Type.Object({ sid: Name, name: Name, description: Type.Optional(Text) }, CLOSED)
const CREATE = new Shape('security_principals_post', Create)
const CREATE_MANY = new Shape('security_principals_bulk_create_put', Type.Array(Create, { maxItems: MAX_ITEMS }))
const UPDATE = new Shape(
  'security_principals_put',
  Type.Object(
    {
      name: Type.Optional(Name),
      description: Type.Optional(Text),
      members: Type.Optional(Type.Array(Type.Integer())),
    },
    CLOSED,
  ),
)

const SEGMENT = 'security_principals'

/** A Windows user group; its id is its SID (P12). Rules that name one may still show it when it is deleted. */
export const securityPrincipal: PlainKind = {
  segment: SEGMENT,
  noun: 'security_principal',
  ids: (_world, body) => (body as { sid: string }).sid,
  store: (world) => world.store(SEGMENT),
  filters: { sid: exact('sid'), name: exact('name') },
  page: { defaultMaxResults: 100, ceiling: 500 },

  build: (world, body) => complete(world, CREATE.read(body)),
  change: (_world, _current, body) => UPDATE.read(body),
  remove: () => (UNCERTAIN.deletedPrincipalIsKept ? { deleted: true } : null),

  render(world, { href, id, sid, name, description, deleted, members, ...rest }) {
    const used_by_ruleset = findPolicyUsage(world, href).ruleSets.length > 0
    return { href, id, sid, name, description, deleted, used_by_ruleset, members, ...rest }
  },
}

export const securityPrincipalRoutes: Route[] = [
  {
    path: `/orgs/:org/${SEGMENT}/bulk_create`,
    verbs: {
      PUT: {
        event: 'security_principals.bulk_create',
        handle: ({ world, body }) => {
          const changes: Change[] = []
          const json = CREATE_MANY.read(body).map((item) =>
            attempt(() => {
              const made = createPlain(securityPrincipal, complete(world, item), world)
              changes.push(...made.changes)
              return { href: made.json.href, status: 'created' }
            }),
          )
          return { status: 200, json, changes }
        },
      },
    },
  },
  ...plainRoutes(securityPrincipal),
]

function complete(world: World, { sid, name, description = '' }: Static<typeof Create>): Json {
  const known = world.store(SEGMENT).get(orgPath(world, `/${SEGMENT}/${encodeURIComponent(sid)}`))
  if (known && known.deleted !== true) {
    const { token, message } = UNCERTAIN.takenSid
    throw notAcceptable(token, message)
  }
  return { id: world.ids.int('security_principals'), sid, name, description, deleted: false, members: [] }
}
