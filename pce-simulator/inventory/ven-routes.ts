import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import { answerCollection } from '../kinds/answer-collection.js'
import { notFound } from '../refusal.js'
import { CLOSED, Nullable, OneOf, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { renderVen } from './render-ven.js'
import { venActionRoutes } from './ven-actions.js'
import { VEN_FILTERS } from './ven-filters.js'
import { venStatisticsRoute } from './ven-statistics.js'
import { agentOf, changeVen, findPaired, pairedWorkloads } from './ven.js'

const UPDATE = new Shape(
  'vens_put',
  Type.Object(
    {
      target_pce_fqdn: Type.Optional(Type.String()),
      name: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
      description: Type.Optional(Nullable(Text)),
      status: Type.Optional(OneOf('active', 'suspended')),
      golden_image: Type.Optional(Type.Boolean()),
    },
    CLOSED,
  ),
)

/** The routes of VENs. There is no POST or DELETE, because pairing creates a VEN and unpairing removes it (P12). */
export const venRoutes: Route[] = [
  {
    path: '/orgs/:org/vens',
    verbs: {
      GET: {
        handle: (call) =>
          answerCollection(call, {
            objects: pairedWorkloads(call.world),
            filters: VEN_FILTERS,
            render: (workload) => renderVen(call.world, workload),
          }),
      },
    },
  },
  ...venActionRoutes,
  venStatisticsRoute,
  {
    path: '/orgs/:org/vens/:id',
    verbs: {
      GET: { handle: (call) => ({ status: 200, json: renderVen(call.world, requirePaired(call)) }) },
      PUT: {
        event: 'ven.update',
        handle: (call) => {
          const { world } = call
          const workload = requirePaired(call)
          const fields = UPDATE.read(call.body)
          const { name, status, target_pce_fqdn } = fields
          const change = changeVen(world, workload, fields)
          tellWorkload(world, workload, { name, status, target_pce_fqdn })
          return { status: 204, changes: [change] }
        },
      },
    },
  },
]

/** Copies changed fields of a VEN to its workload, which shows them too, so that both agree. */
function tellWorkload(
  world: World,
  workload: PceObject,
  { name, status, target_pce_fqdn }: { name?: string | null; status?: string; target_pce_fqdn?: string },
): void {
  const ven = { ...(workload.ven as object), ...(name !== undefined && { name }), ...(status && { status }) }
  const agent = agentOf(workload)
  world.workloads.set({
    ...workload,
    ven,
    ...(workload.agent != null && {
      agent: {
        ...agent,
        ...(target_pce_fqdn !== undefined && { target_pce_fqdn }),
        ...(status && agent.status && { status: { ...agent.status, status } }),
      },
    }),
  })
}

function requirePaired({ world, path }: Call): PceObject {
  const workload = findPaired(world, path)
  if (!workload) throw notFound()
  return workload
}
