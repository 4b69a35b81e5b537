import type { Answer, Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import type { World } from '../world.js'
import { describeChanges } from './describe-changes.js'
import { readFields } from './read-fields.js'

/** A kind that consists of a single object, which is read and changed at the path of its collection (P12). */
export interface SingleKind {
  /** The path of the object's route, in Fastify's notation. */
  route: string
  /** The name of the kind in event types and in lists of changed objects, such as `workload_settings`. */
  noun: string
  /** The fields that the object has in every new PCE. */
  defaults: Json
  /** True if the object cannot be changed, so that it has no PUT. */
  isReadOnly?: true
}

/** Creates the routes of the kind. A PUT changes only the fields that it contains. */
export function singleRoutes(kind: SingleKind): Route[] {
  const { route, noun, isReadOnly } = kind
  return [
    {
      path: route,
      verbs: {
        GET: { handle: ({ world, path }) => ({ status: 200, json: { href: path, ...singleOf(world, kind) } }) },
        ...(!isReadOnly && { PUT: { event: `${noun}.update`, handle: (call: Call) => update(kind, call) } }),
      },
    },
  ]
}

/** Returns the current fields of the kind's only object. */
export function singleOf(world: World, { noun, defaults }: SingleKind): Json {
  return world.singles.get(noun) ?? defaults
}

function update(kind: SingleKind, { world, path, body }: Call): Answer {
  const current = singleOf(world, kind)
  const fields = readFields(body)
  world.singles.set(kind.noun, { ...current, ...fields })
  const changes = describeChanges(current, fields)
  return { status: 204, changes: [{ resource: { [kind.noun]: { href: path } }, type: 'update', changes }] }
}
