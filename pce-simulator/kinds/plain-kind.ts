import type { PceObject } from '../../schemas/pce/reference.js'
import type { Action, Answer, Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { invalidInput, notFound } from '../refusal.js'
import type { PlainStore } from '../store/plain-store.js'
import { requireFreeExternalData } from '../validate/check-references.js'
import { type Filters, readFlag } from '../validate/query-filters.js'
import { birthStamp, orgPath, updateStamp, type World } from '../world.js'
import { answerCollection } from './answer-collection.js'
import { describeChanges } from './describe-changes.js'

/** The definition of an object kind without draft and active versions. Writes to its objects take effect at once. */
export interface PlainKind {
  /** The last segment of the collection's path, such as `labels`. */
  segment: string
  /** The name of the kind in event types and in lists of changed objects, such as `label`. */
  noun: string
  /**
   * The route of the collection, by default `/orgs/:org/<segment>`. If the collection lives below another object, it
   * lists only the objects that belong to this object.
   */
  route?: string
  /**
   * The form of ids. If the caller chooses the id (a SID, a reference_id), a function reads it from the body of the
   * POST.
   */
  ids: 'int' | 'uuid' | ((world: World, body: unknown) => string)
  store(world: World): PlainStore
  filters: Filters
  /** The default and maximum number of objects in an answer. If absent, the default is 500, and there is no maximum. */
  page?: { defaultMaxResults?: number; ceiling?: number }
  /** Checks the object below which the collection lives. Throws 404 if that object does not exist. */
  requireParent?: (call: Call) => void
  /**
   * Builds the fields of a new object. The caller adds its href and the time and author of its creation. Throws 406 for
   * invalid fields. A kind without this function has no POST.
   */
  build?: (world: World, body: unknown, call: Call) => Json
  /**
   * The settings for a POST whose body is an array. Either all objects of the array are created or none, and the answer
   * is an array too (P38). Absent if a POST creates a single object.
   */
  arrayCreate?: { minItems: 0 | 1 }
  /** Returns the secrets of a new object. Only the answer to the POST that creates the object contains them (P40). */
  revealOnce?: (world: World, object: PceObject) => Json
  /** Returns the fields that a PUT changes. Throws 406 for invalid fields. */
  change?: (world: World, current: PceObject, body: unknown) => Json
  /**
   * Returns the fields that mark an object as deleted, or null to erase the object. Throws if it must not be deleted. A
   * kind without this function has no DELETE.
   */
  remove?: (world: World, current: PceObject) => Json | null
  /** Returns the object in the form in which a GET shows it. */
  render(world: World, object: PceObject, query: URLSearchParams): unknown
}

export function plainRoutes(kind: PlainKind): Route[] {
  const { segment, noun, route = `/orgs/:org/${segment}` } = kind
  const write = (verb: string, handle: Action['handle']): Action => ({ event: `${noun}.${verb}`, handle })
  const { build, change, remove } = kind
  return [
    {
      path: route,
      verbs: {
        GET: { handle: (call) => list(kind, call) },
        ...(build && { POST: write('create', (call) => create(kind, build, call)) }),
      },
    },
    {
      path: `${route}/:id`,
      verbs: {
        GET: { handle: (call) => ({ status: 200, json: kind.render(call.world, find(kind, call), call.query) }) },
        ...(change && {
          PUT: write('update', (call) => {
            const current = find(kind, call)
            if (current.deleted === true) throw notFound()
            return {
              status: 204,
              changes: [changePlain(kind, call.world, current, change(call.world, current, call.body))],
            }
          }),
        }),
        ...(remove && {
          DELETE: write('delete', (call) => ({
            status: 204,
            changes: [removePlain(kind, call.world, find(kind, call))],
          })),
        }),
      },
    },
  ]
}

function list(kind: PlainKind, call: Call): Answer {
  kind.requireParent?.(call)
  const store = kind.store(call.world)
  const withDeleted = ['include_deleted', 'soft_deleted'].some((name) => {
    const value = call.query.get(name)
    return value !== null && readFlag(value, name)
  })
  const objects = withDeleted ? store.all() : store.live()
  return answerCollection(call, {
    ...kind.page,
    objects: kind.requireParent ? objects.filter(({ href }) => href.startsWith(`${call.path}/`)) : objects,
    filters: kind.filters,
    render: (object) => kind.render(call.world, object, call.query),
  })
}

/** Creates one object, or several from an array. All of them are checked before the first one is created. */
function create(kind: PlainKind, build: NonNullable<PlainKind['build']>, call: Call): Answer {
  kind.requireParent?.(call)
  const { world, path, query } = call
  if (!kind.arrayCreate) {
    return createPlain(kind, build(world, call.body, call), world, { path, query }, call.body)
  }
  if (!Array.isArray(call.body)) throw invalidInput('The body must be an array')
  if (call.body.length < kind.arrayCreate.minItems) throw invalidInput('The array must not be empty')
  const built = call.body.map((body: unknown) => ({ body, fields: build(world, body, call) }))
  for (const [place, { fields }] of built.entries()) {
    requireFreeExternalData(
      built.slice(0, place).map((earlier) => earlier.fields as PceObject),
      fields,
    )
  }
  const made = built.map(({ body, fields }) => createPlain(kind, fields, world, { path, query }, body))
  return { status: 201, json: made.map(({ json }) => json), changes: made.flatMap(({ changes }) => changes) }
}

/** Creates an object in the collection at `path`. If the caller chose the id, it is read from `body`. */
export function createPlain(
  kind: PlainKind,
  fields: Json,
  world: World,
  {
    path = orgPath(world, `/${kind.segment}`),
    query = new URLSearchParams(),
  }: { path?: string; query?: URLSearchParams } = {},
  body: unknown = fields,
) {
  const object: PceObject = { href: `${path}/${takeId(kind, world, body)}`, ...fields, ...birthStamp(world) }
  kind.store(world).set(object)
  const changes = [{ resource: name(kind, object), type: 'create' as const, changes: describeChanges({}, fields) }]
  const json = kind.render(world, object, query)
  return { status: 201, json: { ...(json as Json), ...kind.revealOnce?.(world, object) }, changes }
}

function takeId(kind: PlainKind, world: World, body: unknown): string {
  if (kind.ids === 'int') return String(world.ids.int(kind.segment))
  return kind.ids === 'uuid' ? world.ids.uuid(kind.segment) : encodeURIComponent(kind.ids(world, body))
}

export function changePlain(kind: PlainKind, world: World, current: PceObject, fields: Json): Change {
  const next: PceObject = { ...current, ...fields, ...updateStamp(world) }
  kind.store(world).set(next)
  return { resource: name(kind, next), type: 'update', changes: describeChanges(current, fields) }
}

/** Deletes an object. Throws the errors of the kind's `remove`. */
export function removePlain(kind: PlainKind, world: World, current: PceObject): Change {
  const mark = kind.remove!(world, current)
  const store = kind.store(world)
  if (mark === null) store.remove(current.href)
  else store.set({ ...current, ...mark, ...updateStamp(world) })
  return { resource: name(kind, current), type: 'delete' }
}

function find(kind: PlainKind, call: Call): PceObject {
  const object = kind.store(call.world).get(call.path)
  if (!object) throw notFound()
  return object
}

function name(kind: PlainKind, { href, name, hostname, key, value }: PceObject): Json {
  return { [kind.noun]: { href, ...(key === undefined ? { name: name ?? hostname } : { key, value }) } }
}
