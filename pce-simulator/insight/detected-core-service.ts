import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Workload } from '../../schemas/pce/workload.js'
import { readRoute, type Route } from '../http/route.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { osType } from '../policy/resolve-observations.js'
import { requireWorkload } from '../validate/check-references.js'
import { exact } from '../validate/query-filters.js'
import { CLOSED, OneOf, Shape } from '../validate/shape.js'
import type { World } from '../world.js'
import { coreServiceTypes } from './core-service-type.js'

const UPDATE = new Shape(
  'detected_core_services_put',
  Type.Object(
    {
      action: Type.Optional(OneOf('accept', 'skip', 'reject', 'recommended')),
      feedback: Type.Optional(Type.String({ maxLength: 512 })),
      labels_applied: Type.Optional(Type.Boolean()),
      workload: Type.Optional(Type.Object({ href: Type.String() }, CLOSED)),
    },
    CLOSED,
  ),
)

/** Core services that the traffic shows; nobody creates them (P49). */
export const detectedCoreService: PlainKind = {
  segment: 'detected_core_services',
  noun: 'detected_core_service',
  ids: 'uuid',
  store: (world) => world.store('detected_core_services'),
  filters: {
    action: exact('action'),
    // By href or by name: no source shows a value.
    core_service_type: (value, world) => (object) =>
      typeHref(object) === value ||
      coreServiceTypes(world).some((type) => type.name === value && type.href === typeHref(object)),
  },

  change(world, _current, body) {
    const fields = UPDATE.read(body)
    if (fields.workload) requireWorkload(world, fields.workload.href)
    return fields
  },

  render(world, object) {
    const { created_by: _creator, updated_by: _updater, ...shown } = object
    const type = coreServiceTypes(world).find(({ href }) => href === typeHref(object))
    return {
      ...shown,
      core_service_type: { href: typeHref(object), name: type?.name },
      workload: describeWorkload(world, (object.workload as { href: string }).href),
    }
  },
}

/** GET /detected_core_services_summary: what became of the detected ones, by type (P13). */
export const detectedCoreServiceRoutes: Route[] = [
  readRoute('/orgs/:org/detected_core_services_summary', ({ world }) => {
    const detected = world.store('detected_core_services').all()
    const json = coreServiceTypes(world).map(({ href, name }) => {
      const count = (action: string) =>
        detected.filter((object) => typeHref(object) === href && object.action === action).length
      return {
        href,
        core_service_type: name,
        recommended: count('recommended'),
        accepted: count('accept'),
        rejected: count('reject'),
      }
    })
    return { status: 200, json }
  }),
]

function typeHref(object: PceObject): string {
  return (object.core_service_type as { href: string }).href
}

function describeWorkload(world: World, href: string): Record<string, unknown> {
  const workload = world.workloads.get(href) as Workload | undefined
  if (!workload) return { href, hostname: '', managed: false }
  return {
    href,
    hostname: workload.hostname ?? '',
    name: workload.name ?? workload.hostname ?? '',
    os_type: osType(workload),
    enforcement_mode: workload.enforcement_mode ?? 'visibility_only',
    labels: (workload.labels ?? []).map((label) => ({ href: label.href })),
    managed: workload.managed !== false,
  }
}
