import type { PceObject } from '../../../schemas/pce/reference.js'
import type { Action, Call, Change, Json, Route } from '../http/route.js'
import { notFound } from '../refusal.js'
import type { PlainStore } from '../store/plain-store.js'
import type { Filters } from '../validate/query-filters.js'
import { readFlag } from '../validate/query-filters.js'
import { birthStamp, orgPath, updateStamp, type World } from '../world.js'
import { answerCollection } from './answer-collection.js'
import { describeChanges } from './describe-changes.js'

/** One row of the table of kinds that are not versioned: their writes act at once. */
export interface PlainKind {
  /** The path segment: `labels`. */
  segment: string
  /** In event types and resource changes: `label`. */
  noun: string
  ids: 'int' | 'uuid'
  store(world: World): PlainStore
  filters: Filters
  /** The fields of a new object, without href and stamps; throws 406. Absent: there is no POST. */
  build?: (world: World, body: unknown) => Json
  /** The fields that change; throws 406. */
  change?: (world: World, current: PceObject, body: unknown) => Json
  /** Fields that mark an object as deleted, or null to erase it; throws when it must stay. Absent: there is no DELETE. */
  remove?: (world: World, current: PceObject) => Json | null
  /** What a GET shows. */
  render(world: World, object: PceObject, query: URLSearchParams): unknown
}

export function plainRoutes(kind: PlainKind): Route[] {
  const { segment, noun } = kind
  const write = (verb: string, handle: Action['handle']): Action => ({ event: `${noun}.${verb}`, handle })
  const { build, change, remove } = kind
  return [
    {
      path: `/orgs/:org/${segment}`,
      verbs: {
        GET: { handle: (call) => list(kind, call) },
        ...(build && {
          POST: write('create', ({ world, body, query }) => createPlain(kind, build(world, body), world, query)),
        }),
      },
    },
    {
      path: `/orgs/:org/${segment}/:id`,
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

function list(kind: PlainKind, call: Call) {
  const store = kind.store(call.world)
  const withDeleted = ['include_deleted', 'soft_deleted'].some((name) => {
    const value = call.query.get(name)
    return value !== null && readFlag(value, name)
  })
  return answerCollection(call, {
    objects: withDeleted ? store.all() : store.live(),
    filters: kind.filters,
    render: (object) => kind.render(call.world, object, call.query),
  })
}

export function createPlain(
  kind: PlainKind,
  fields: Json,
  world: World,
  query: URLSearchParams = new URLSearchParams(),
) {
  const id = kind.ids === 'int' ? String(world.ids.int(kind.segment)) : world.ids.uuid(kind.segment)
  const object: PceObject = { href: orgPath(world, `/${kind.segment}/${id}`), ...fields, ...birthStamp(world) }
  kind.store(world).set(object)
  const changes = [{ resource: name(kind, object), type: 'create' as const, changes: describeChanges({}, fields) }]
  return { status: 201, json: kind.render(world, object, query), changes }
}

export function changePlain(kind: PlainKind, world: World, current: PceObject, fields: Json): Change {
  const next: PceObject = { ...current, ...fields, ...updateStamp(world) }
  kind.store(world).set(next)
  return { resource: name(kind, next), type: 'update', changes: describeChanges(current, fields) }
}

/** Throws what the kind's `remove` throws. */
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
