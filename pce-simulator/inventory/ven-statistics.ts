import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Route } from '../http/route.js'
import { OneOf, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { conditionsOf, healthOf } from './ven-health.js'
import { ownVen, pairedWorkloads, versionOf } from './ven.js'

/**
 * The properties by which VENs can be counted. Each function returns the values that one VEN has: any number for the
 * health conditions, at most one for every other property.
 */
const PROPERTIES = {
  status: (_world: World, workload: PceObject) => [ownVen(workload)!.status ?? 'active'],
  version: (_world: World, workload: PceObject) => [versionOf(workload)],
  health: (_world: World, workload: PceObject) => [healthOf(workload)],
  condition: (_world: World, workload: PceObject) =>
    conditionsOf(workload).map(({ latest_event }) => latest_event.notification_type),
  os_id: (_world: World, { os_id }: PceObject) => (typeof os_id === 'string' ? [os_id] : []),
  enforcement_mode: (_world: World, workload: PceObject) => [workload.enforcement_mode as string],
  ven_type: (_world: World, workload: PceObject) => [ownVen(workload)!.ven_type ?? 'server'],
} satisfies Record<string, (world: World, workload: PceObject) => readonly string[]>

type Property = keyof typeof PROPERTIES
const PropertyName = OneOf(...(Object.keys(PROPERTIES) as Property[]))

const STATISTICS = new Shape(
  'vens_statistics_post',
  Type.Object({
    property_counts: Type.Array(
      Type.Object({
        property: PropertyName,
        values: Type.Optional(Type.Array(Type.String())),
        filters: Type.Optional(
          Type.Array(Type.Object({ filter_property: PropertyName, values: Type.Optional(Type.Array(Type.String())) })),
        ),
      }),
    ),
  }),
)

/**
 * The route that counts VENs by the values of a property: once among all VENs, and once among the VENs that pass every
 * filter (P13).
 */
export const venStatisticsRoute: Route = {
  path: '/orgs/:org/vens/statistics',
  verbs: {
    POST: {
      handle: ({ world, body }) => {
        const { property_counts } = STATISTICS.read(body)
        const workloads = pairedWorkloads(world)
        return { status: 200, json: property_counts.map((wanted) => count(world, workloads, wanted)) }
      },
    },
  },
}

interface Wanted {
  property: Property
  values?: string[]
  filters?: { filter_property: Property; values?: string[] }[]
}

function count(world: World, workloads: readonly PceObject[], { property, values, filters = [] }: Wanted) {
  const tests = filters.flatMap(({ filter_property, values: allowed }) => {
    if (allowed === undefined) return []
    const set = new Set(allowed)
    return [(workload: PceObject) => PROPERTIES[filter_property](world, workload).some((value) => set.has(value))]
  })
  const unfiltered = new Map<string, number>()
  const filtered = new Map<string, number>()
  let total = 0
  for (const workload of workloads) {
    const passes = tests.every((test) => test(workload))
    if (passes) total += 1
    for (const value of PROPERTIES[property](world, workload)) {
      unfiltered.set(value, (unfiltered.get(value) ?? 0) + 1)
      if (passes) filtered.set(value, (filtered.get(value) ?? 0) + 1)
    }
  }
  return {
    property,
    counts: (values ?? [...unfiltered.keys()].sort()).map((value) => ({
      value,
      filtered_count: filtered.get(value) ?? 0,
      unfiltered_count: unfiltered.get(value) ?? 0,
    })),
    total_filtered_count: total,
  }
}
