import { Type } from '@sinclair/typebox'
import type { Route } from '../http/route.js'
import { unpair } from '../inventory/unpair.js'
import { ownVen } from '../inventory/ven.js'
import { invalidUri } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { CLOSED, Href, OneOf, Shape } from '../validate/shape.js'
import { orgPath } from '../world.js'

const UNPAIR = new Shape(
  'workloads_unpair_put',
  Type.Object(
    {
      workloads: Type.Array(Href, { minItems: 1, maxItems: 1000 }),
      ip_table_restore: Type.Optional(OneOf('saved', 'default', 'disable')),
    },
    CLOSED,
  ),
)

/** The route `workloads/unpair`, the older form of `vens/unpair`. One of its fields has a different name (P13, P44). */
export const workloadUnpairRoute: Route = {
  path: '/orgs/:org/workloads/unpair',
  verbs: {
    PUT: {
      event: 'workloads.unpair',
      handle: ({ world, body }) => {
        const hrefs = UNPAIR.read(body).workloads.map(({ href }) => href)
        const stranger = hrefs.find((href) => !href.startsWith(orgPath(world, '/workloads/')))
        if (stranger !== undefined) throw invalidUri(stranger)
        const { errors, changes } = unpair(world, hrefs, (href) => {
          const workload = world.workloads.get(href)
          return workload && workload.deleted !== true && ownVen(workload) ? workload : undefined
        })
        if (errors.length > 0) return { status: 200, json: { errors }, changes }
        return { status: UNCERTAIN.workloadsUnpairedStatus, changes }
      },
    },
  },
}
