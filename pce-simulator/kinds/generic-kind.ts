import type { PceObject } from '../../schemas/pce/reference.js'
import { birthOf } from '../built-in-objects.js'
import type { Action, Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { invalidInput, notFound } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { birthStamp, type World } from '../world.js'
import { describeChanges } from './describe-changes.js'
import { changePlain, createPlain, plainRoutes, type PlainKind } from './plain-kind.js'
import { readFields } from './read-fields.js'

/** A kind of objects that are only stored: they can be written and read again, but have no further effect. */
export interface GenericKind {
  /** The last segment of the collection's path, which is also the name of the store. */
  segment: string
  /** The name of the kind in event types and in lists of changed objects, such as `syslog_destination`. */
  noun: string
  /** The route of the collection; `/orgs/:org/<segment>` by default. */
  route?: string
  /** The writes that the API offers for the kind. Every kind can be listed and read. */
  writes: readonly ('create' | 'update' | 'delete')[]
  /**
   * The form of the objects' ids; by default they are UUIDs. With `{field}`, the caller chooses the id and sends it in
   * that field of the POST.
   */
  ids?: 'int' | 'uuid' | { field: string }
  /** The path segment of the parent kind, if the objects of this kind live below other objects. */
  parent?: string
  /** True if the body of a POST is an array (P38). */
  isArrayCreate?: true
  /** True if a PUT to an unused id, which the caller chooses, creates an object (P38). */
  isUpsert?: true
  /** True if many objects can be created at once with the API's `bulk_create` (P12). */
  isBulkCreate?: true
  /** The default and maximum number of objects in an answer. */
  page?: PlainKind['page']
  /** The fields that a new object has in addition to those of its body. */
  defaults?: Json
  /** The objects with which every PCE starts, by their ids. The id `null` stands for a new UUID. */
  seeds?: readonly (readonly [id: string | null, fields: Json])[]
}

/** Creates the routes of one generic kind. The list of its objects can be filtered by a part of their name. */
export function genericRoutes(generic: GenericKind): Route[] {
  const kind = plainOf(generic)
  const [collection, item] = plainRoutes(kind)
  const { isUpsert, isBulkCreate } = generic
  return [
    ...(isBulkCreate ? [bulkCreateRoute(kind, collection!.path)] : []),
    collection!,
    isUpsert ? { ...item!, verbs: { ...item!.verbs, PUT: upsert(kind, generic) } } : item!,
  ]
}

/** Stores the objects that every PCE has from the start. */
export function seedGeneric(world: World, { segment, route, seeds = [], defaults }: GenericKind): void {
  const path = (route ?? `/orgs/:org/${segment}`).replace(':org', String(world.orgId))
  for (const [id, fields] of seeds) {
    const href = `${path}/${id ?? world.ids.uuid(segment)}`
    world.store(segment).set({ href, ...defaults, ...fields, ...birthOf(world) })
  }
}

function plainOf({ segment, noun, route, writes, ids = 'uuid', parent, ...rest }: GenericKind): PlainKind {
  const store = (world: World) => world.store(segment)
  const { isArrayCreate, page, defaults } = rest
  return {
    segment,
    noun,
    store,
    ids: typeof ids === 'string' ? ids : (_world, body) => chosenId(body, ids.field),
    ...(route !== undefined && { route }),
    ...(page && { page }),
    filters: {
      name: (value) => (object) => nameOf(object).toLowerCase().includes(value.toLowerCase()),
    },
    ...(parent !== undefined && {
      requireParent: ({ world, path }: Call) => {
        if (!world.store(parent).get(path.slice(0, path.lastIndexOf('/')))) throw notFound()
      },
    }),
    ...(writes.includes('create') && {
      build: (_world: World, body: unknown) => ({ ...defaults, ...readFields(body) }),
    }),
    ...(isArrayCreate && { arrayCreate: { minItems: 0 as const } }),
    ...(writes.includes('update') && {
      change: (_world: World, _current: PceObject, body: unknown) => readFields(body),
    }),
    ...(writes.includes('delete') && { remove: () => null }),
    render: (_world, object) => object,
  }
}

function chosenId(body: unknown, field: string): string {
  const id = readFields(body)[field]
  if (typeof id !== 'string' || id === '') throw invalidInput(`The field ${field} must be a text`)
  return id
}

/** Returns the name of an object. In network devices, the name is inside `config`. */
function nameOf({ name, config }: PceObject): string {
  const text = name ?? (config as { name?: unknown } | undefined)?.name
  return typeof text === 'string' ? text : ''
}

function upsert(kind: PlainKind, { noun, defaults }: GenericKind): Action {
  return {
    event: `${noun}.update`,
    handle: ({ world, path, query, body }) => {
      const fields = readFields(body)
      const current = kind.store(world).get(path)
      if (current) return { status: 204, changes: [changePlain(kind, world, current, fields)] }
      const object: PceObject = { href: path, ...defaults, ...fields, ...birthStamp(world) }
      kind.store(world).set(object)
      const status = UNCERTAIN.creatingPutStatus
      const resource = { [noun]: { href: path, name: fields.name } }
      return {
        status,
        ...(status === 201 && { json: kind.render(world, object, query) }),
        changes: [{ resource, type: 'create', changes: describeChanges({}, fields) }],
      }
    },
  }
}

function bulkCreateRoute(kind: PlainKind, path: string): Route {
  return {
    path: `${path}/bulk_create`,
    verbs: {
      PUT: {
        event: `${kind.segment}.bulk_create`,
        handle: (call) => {
          if (!Array.isArray(call.body)) throw invalidInput('The body must be an array')
          const fields = call.body.map((body: unknown) => kind.build!(call.world, body, call))
          const made = fields.map((one) => createPlain(kind, one, call.world))
          const json = made.map(({ json }) => ({ href: json.href, status: 'created' }))
          return { status: 200, json, changes: made.flatMap(({ changes }) => changes) }
        },
      },
    },
  }
}
