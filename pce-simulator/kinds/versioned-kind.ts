import type { ChangeSubsetType } from '../../schemas/pce/words.js'
import type { VersionedObject } from '../../schemas/pce/reference.js'
import type { Action, Answer, Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { notFound } from '../refusal.js'
import type { Entry } from '../store/policy-store.js'
import type { Filters } from '../validate/query-filters.js'
import { UNCERTAIN } from '../uncertain.js'
import { birthStamp, draftPath, updateStamp, type World } from '../world.js'
import { answerCollection } from './answer-collection.js'
import { describeChanges } from './describe-changes.js'
import { bodiesAt, draftHref, inVersion, requireDraftPath, type Version } from './policy-version.js'

/**
 * The definition of a kind whose objects have a draft and an active version (P4). Stored versions contain only draft
 * hrefs.
 */
export interface VersionedKind {
  type: ChangeSubsetType
  /** The name of the kind in event types and in lists of changed objects, such as `ip_list`. */
  noun: string
  ids: 'int' | 'uuid'
  filters: Filters
  /**
   * Builds the fields of a new object. The caller adds the time and author of its creation. Throws 406 for invalid
   * fields. `takeHref` returns the future href of the object, with which the hrefs of its rules begin.
   */
  build(world: World, body: unknown, takeHref: () => string): Json
  /** Returns the fields that a PUT changes. Throws 406 for invalid fields. */
  change(world: World, entry: Entry, body: unknown): Json
  /** Checks that the object may be deleted. Throws 406 if it is built in or in use. */
  refuseRemoval(world: World, entry: Entry): void
  /** Renders the object for a GET, with draft hrefs. The caller adds `update_type` and `caps`. */
  render?(world: World, body: VersionedObject, query: URLSearchParams): VersionedObject
  /** Converts the draft of an object to the form that it has after provisioning. */
  settle?(draft: VersionedObject): VersionedObject
}

export function versionedRoutes(kind: VersionedKind): Route[] {
  const path = `/orgs/:org/sec_policy/:pversion/${kind.type}`
  const write = (verb: string, handle: Action['handle']): Action => ({ event: `${kind.noun}.${verb}`, handle })
  return [
    {
      path,
      verbs: { GET: { handle: (call) => list(kind, call) }, POST: write('create', (call) => create(kind, call)) },
    },
    {
      path: `${path}/:id`,
      verbs: {
        GET: {
          handle: (call) => {
            const found = bodiesAt(call.world, kind.type, call.params.pversion!).find(
              ({ body }) => body.href === draftHref(call),
            )
            if (!found) throw notFound()
            return { status: 200, json: show(kind, call, found) }
          },
        },
        PUT: write('update', (call) => update(kind, call)),
        DELETE: write('delete', (call) => remove(kind, call)),
      },
    },
  ]
}

export function show(
  kind: VersionedKind,
  call: Pick<Call, 'world' | 'params' | 'query'>,
  { body, updateType }: Version,
): unknown {
  const rendered = kind.render ? kind.render(call.world, body, call.query) : body
  const { pversion } = call.params
  const own = pversion === 'draft' ? rendered : inVersionOf(rendered, pversion!)
  return { ...own, update_type: updateType, caps: ['write', 'provision'] }
}

/** The objects of the active policy with its hrefs, by their bodies, which never change. */
const inActive = new WeakMap<VersionedObject, VersionedObject>()

/** Renders an object with the hrefs of this version; that of the active one only once, because it is read most often. */
function inVersionOf(body: VersionedObject, pversion: string): VersionedObject {
  if (pversion !== 'active') return inVersion(body, pversion) as VersionedObject
  let known = inActive.get(body)
  if (known === undefined) inActive.set(body, (known = inVersion(body, pversion) as VersionedObject))
  return known
}

function list(kind: VersionedKind, call: Call): Answer {
  const versions = new Map(
    bodiesAt(call.world, kind.type, call.params.pversion!).map((version) => [version.body, version]),
  )
  return answerCollection(call, {
    objects: [...versions.keys()],
    filters: kind.filters,
    render: (body) => show(kind, call, versions.get(body)!),
  })
}

function create(kind: VersionedKind, call: Call): Answer {
  requireDraftPath(call)
  return createVersioned(kind, call, call.body)
}

/** Creates an object. Throws the errors of the kind's `build`. */
export function createVersioned(
  kind: VersionedKind,
  call: Pick<Call, 'world' | 'params' | 'query'>,
  given: unknown,
): Answer {
  const { world } = call
  let taken: string | null = null
  const takeHref = () => (taken ??= draftPath(world, `/${kind.type}/${takeId(kind, world)}`))
  const fields = kind.build(world, given, takeHref)
  const body: VersionedObject = {
    href: takeHref(),
    ...fields,
    ...birthStamp(world),
    deleted_at: null,
    deleted_by: null,
  }
  world.policy.create(kind.type, body)
  return {
    status: 201,
    json: show(kind, call, { body, updateType: 'create' }),
    changes: [{ resource: nameOf(kind.noun, body), type: 'create', changes: describeChanges({}, fields) }],
  }
}

function takeId(kind: VersionedKind, world: World): string {
  return kind.ids === 'int' ? String(world.ids.int(kind.type)) : world.ids.uuid(kind.type)
}

function update(kind: VersionedKind, call: Call): Answer {
  requireDraftPath(call)
  return { status: 204, changes: changeVersioned(kind, call.world, requireEntry(kind, call), call.body) }
}

/** Changes an object. Throws the errors of the kind's `change`. */
export function changeVersioned(kind: VersionedKind, world: World, entry: Entry, given: unknown): Change[] {
  const fields = kind.change(world, entry, given)
  const changes = describeChanges(entry.draft, fields)
  if (Object.keys(fields).length > 0) world.policy.change(entry, { ...entry.draft, ...fields, ...updateStamp(world) })
  return [{ resource: nameOf(kind.noun, entry.draft), type: 'update', changes }]
}

function remove(kind: VersionedKind, call: Call): Answer {
  requireDraftPath(call)
  const { world } = call
  const entry = requireEntry(kind, call)
  if (entry.updateType === 'delete') return { status: UNCERTAIN.secondDeletionStatus }
  kind.refuseRemoval(world, entry)
  const by = { href: world.user.href }
  world.policy.remove(entry, { deleted_at: world.now(), deleted_by: by, ...updateStamp(world) })
  return { status: 204, changes: [{ resource: nameOf(kind.noun, entry.draft), type: 'delete' }] }
}

function requireEntry(kind: VersionedKind, call: Call): Entry {
  const entry = call.world.policy.get(kind.type, draftHref(call))
  if (!entry) throw notFound()
  return entry
}

function nameOf(noun: string, { href, name }: VersionedObject): Json {
  return { [noun]: { href, ...(name === undefined ? {} : { name }) } }
}
