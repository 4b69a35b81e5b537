import { Type } from '@sinclair/typebox'
import type { Action, Answer, Call, Route } from '../http/route.js'
import type { Change } from '../store/event-log.js'
import type { Json } from '../model.js'
import { Refusal, notFound } from '../refusal.js'
import { Shape } from '../validate/shape.js'
import { requireDraftPath } from './policy-version.js'
import { changeVersioned, createVersioned } from './versioned-kind.js'
import { virtualService } from './virtual-service.js'

const Items = Type.Array(Type.Object({ href: Type.Optional(Type.String()) }), { maxItems: 1000 })

/** The routes of bulk calls on virtual services. They always answer 200, with a status for each item (P12, P32). */
export const virtualServiceBulkRoutes: Route[] = [
  bulk('create', (call, item, changes) => {
    const created = createVersioned(virtualService, call, item)
    changes.push(...(created.changes ?? []))
    return { href: (created.json as { href: string }).href, status: 'created' }
  }),
  bulk('update', (call, item, changes) => {
    const { href, ...fields } = item as { href?: string }
    const entry = call.world.policy.get('virtual_services', href ?? '')
    if (!entry) throw notFound()
    changes.push(...changeVersioned(virtualService, call.world, entry, fields))
    return { href, status: 'updated' }
  }),
]

function bulk(verb: 'create' | 'update', work: (call: Call, item: unknown, changes: Change[]) => Json): Route {
  const shape = new Shape(`sec_policy_virtual_services_bulk_${verb}_put`, Items)
  const handle = (call: Call): Answer => {
    requireDraftPath(call)
    const changes: Change[] = []
    const json = shape.read(call.body).map((item) => {
      try {
        return work(call, item, changes)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return {
          ...(item.href === undefined ? {} : { href: item.href }),
          status: 'validation_failure',
          ...error.errors[0],
        }
      }
    })
    return { status: 200, json, changes }
  }
  const action: Action = { event: `virtual_services.bulk_${verb}`, handle }
  return { path: `/orgs/:org/sec_policy/:pversion/virtual_services/bulk_${verb}`, verbs: { PUT: action } }
}
