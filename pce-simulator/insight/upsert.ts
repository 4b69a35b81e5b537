import type { PceObject } from '../../schemas/pce/reference.js'
import type { Action } from '../http/route.js'
import type { Json } from '../model.js'
import { changePlain, type PlainKind } from '../kinds/plain-kind.js'
import { describeChanges } from '../kinds/describe-changes.js'
import { UNCERTAIN } from '../uncertain.js'
import { birthStamp, type World } from '../world.js'

/** A PUT to an id of the caller's choice: it replaces what is there, or creates it (P12, P38). */
export function upsert(kind: PlainKind, read: (world: World, body: unknown) => Json): Action {
  return {
    event: `${kind.noun}.update`,
    handle: ({ world, path, query, body }) => {
      const fields = read(world, body)
      const store = kind.store(world)
      const current = store.get(path)
      if (current) return { status: 204, changes: [changePlain(kind, world, current, fields)] }
      const object: PceObject = { href: path, ...fields, ...birthStamp(world) }
      store.set(object)
      const status = UNCERTAIN.creatingPutStatus
      return {
        status,
        ...(status === 204 ? {} : { json: kind.render(world, object, query) }),
        changes: [
          {
            resource: { [kind.noun]: { href: path, name: fields.name } },
            type: 'create',
            changes: describeChanges({}, fields),
          },
        ],
      }
    },
  }
}
