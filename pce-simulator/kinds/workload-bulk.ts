import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Action, Answer, Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { Refusal, notFound } from '../refusal.js'
import { Href, Shape } from '../validate/shape.js'
import { changePlain, createPlain, removePlain } from './plain-kind.js'
import { workload } from './workload.js'
import { WorkloadCreate } from './workload-shapes.js'

const MAX_ITEMS = 1000
const CREATE = new Shape('workloads_bulk_create_put', Type.Array(WorkloadCreate, { maxItems: MAX_ITEMS }))
const UPDATE = new Shape('workloads_bulk_update_put', Type.Array(Href, { maxItems: MAX_ITEMS }))
const DELETE = new Shape('workloads_bulk_delete_put', Type.Array(Href, { maxItems: MAX_ITEMS }))

/**
 * The routes of bulk calls on workloads. They always answer 200, with a status for each item; the answer to a deletion
 * lists only the items that failed (P12, P32).
 */
export const workloadBulkRoutes: Route[] = [
  bulk('create', (call) => {
    const { world, body } = call
    const changes: Change[] = []
    const json = CREATE.read(body).map((item) =>
      attempt(() => {
        const created = createPlain(workload, workload.build!(world, item, call), world)
        changes.push(...created.changes)
        return { href: (created.json as PceObject).href, status: 'created' }
      }),
    )
    return { status: 200, json, changes }
  }),
  bulk('update', (call) => {
    const changes: Change[] = []
    const json = UPDATE.read(call.body).map((item) =>
      attempt(() => {
        const current = find(call, item.href)
        changes.push(changePlain(workload, call.world, current, workload.change!(call.world, current, item)))
        return { href: item.href, status: 'updated' }
      }, item.href),
    )
    return { status: 200, json, changes }
  }),
  bulk('delete', (call) => {
    const changes: Change[] = []
    const failures: Json[] = []
    for (const { href } of DELETE.read(call.body)) {
      try {
        changes.push(removePlain(workload, call.world, find(call, href)))
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        failures.push({ href, errors: error.errors })
      }
    }
    return { status: 200, json: failures, changes }
  }),
]

function bulk(verb: 'create' | 'update' | 'delete', handle: (call: Call) => Answer): Route {
  const action: Action = { event: `workloads.bulk_${verb}`, handle }
  return { path: `/orgs/:org/workloads/bulk_${verb}`, verbs: { PUT: action } }
}

/** Runs the work for one item of a bulk call, and returns its result or its error. */
export function attempt(work: () => Json, href?: string): Json {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ...(href === undefined ? {} : { href }), status: 'validation_failure', ...error.errors[0] }
  }
}

/** Finds a workload by its href, or by `/orgs/1/workloads?external_data_set=x&external_data_reference=y`. */
function find({ world }: Call, href: string): PceObject {
  const query = new URLSearchParams(href.split('?')[1] ?? '')
  const set = query.get('external_data_set')
  const found =
    set === null
      ? world.workloads.get(href)
      : world.workloads.live().find((candidate) => {
          return (
            candidate.external_data_set === set &&
            candidate.external_data_reference === query.get('external_data_reference')
          )
        })
  if (!found || found.deleted === true) throw notFound()
  return found
}
