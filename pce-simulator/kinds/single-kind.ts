import type { Answer, Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import type { Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { describeChanges } from './describe-changes.js'

/** One row of the table of kinds that are one object each: read and changed at the collection's path (P12). */
export interface SingleKind {
  /** The route, in Fastify's notation. */
  route: string
  /** In event types and resource changes: `workload_settings`. */
  noun: string
  /** What every PCE is born with. */
  defaults: Json
  /** What a PUT may send. Absent: there is no PUT. */
  shape?: Shape
  /** The fields that change; by default those that were sent. Throws 406. */
  change?: (world: World, current: Json, sent: Json) => Json
  /** What a GET shows; by default the fields behind the href. */
  render?: (world: World, fields: Json, path: string) => unknown
}

export function singleRoutes(kind: SingleKind): Route[] {
  const { route, noun, shape, render = (_world, fields, path) => ({ href: path, ...fields }) } = kind
  return [
    {
      path: route,
      verbs: {
        GET: { handle: ({ world, path }) => ({ status: 200, json: render(world, singleOf(world, kind), path) }) },
        ...(shape && { PUT: { event: `${noun}.update`, handle: (call: Call) => update(kind, shape, call) } }),
      },
    },
  ]
}

/** The fields as they are now. */
export function singleOf(world: World, { noun, defaults }: Pick<SingleKind, 'noun' | 'defaults'>): Json {
  return world.singles.get(noun) ?? defaults
}

function update(kind: SingleKind, shape: Shape, { world, path, body }: Call): Answer {
  const current = singleOf(world, kind)
  const sent = shape.read(body) as Json
  const fields = kind.change ? kind.change(world, current, sent) : sent
  world.singles.set(kind.noun, { ...current, ...fields })
  const changes = describeChanges(current, fields)
  return { status: 204, changes: [{ resource: { [kind.noun]: { href: path } }, type: 'update', changes }] }
}
