import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import { birthOf } from '../built-in-objects.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { renderLabels } from '../kinds/render-labels.js'
import { invalidInput } from '../refusal.js'
import { requireLabels } from '../validate/check-references.js'
import { CLOSED, Port, Shape } from '../validate/shape.js'
import { orgPath, type World } from '../world.js'
import { CORE_SERVICES, type PortRange } from './data/core-services.js'

const Ports = Type.Optional(Type.Array(Type.Object({ port: Port, to_port: Type.Optional(Port) }, CLOSED)))
const UPDATE = new Shape(
  'core_service_types_put',
  Type.Object(
    {
      labels: Type.Optional(
        Type.Array(
          Type.Object(
            {
              href: Type.Optional(Type.String()),
              key: Type.Optional(Type.String()),
              value: Type.Optional(Type.String()),
            },
            CLOSED,
          ),
        ),
      ),
      required_ports: Ports,
      optional_ports: Ports,
      num_optional_ports_required: Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535 })),
      provider: Type.Optional(Type.Boolean()),
      priority: Type.Optional(Type.Integer({ minimum: 1 })),
    },
    CLOSED,
  ),
)

/** A core service type as it is kept; `labels` as references. */
export interface CoreServiceType extends PceObject {
  name: string
  required_ports: PortRange[]
  optional_ports: PortRange[]
  num_optional_ports_required: number
}

/** Built-in types of core services: only what they are recognised by and labelled with can change (P49). */
export const coreServiceType: PlainKind = {
  segment: 'core_service_types',
  noun: 'core_service_type',
  ids: 'uuid',
  store: (world) => world.store('core_service_types'),
  filters: {},

  change(world, _current, body) {
    const { labels, ...fields } = UPDATE.read(body)
    for (const { port, to_port } of [...(fields.required_ports ?? []), ...(fields.optional_ports ?? [])]) {
      if (to_port !== undefined && to_port < port) throw invalidInput('to_port must not be below port')
    }
    if (!labels) return fields
    return {
      ...fields,
      labels: requireLabels(
        world,
        labels.map(({ href, key, value }) => findLabel(world, href, key, value)),
      ),
    }
  },

  render(world, { provider: _written, created_by, updated_by, ...object }) {
    return { ...object, labels: renderLabels(world, object.labels), created_by, updated_by }
  },
}

/** A label given by its href, or by its key and value. */
function findLabel(world: World, href?: string, key?: string, value?: string): { href: string } {
  if (href !== undefined) return { href }
  const found = world.labels.live().find((label) => label.key === key && label.value === value)
  if (!found) throw invalidInput(`There is no label ${key}=${value}`)
  return { href: found.href }
}

export function coreServiceTypes(world: World): CoreServiceType[] {
  return world.store('core_service_types').all() as CoreServiceType[]
}

export function seedCoreServiceTypes(world: World): void {
  for (const [index, { name, required, optional = [], optionalRequired = 0 }] of CORE_SERVICES.entries()) {
    world.store('core_service_types').set({
      href: orgPath(world, `/core_service_types/${world.ids.uuid('core_service_types')}`),
      name,
      required_ports: [...required],
      optional_ports: [...optional],
      num_optional_ports_required: optionalRequired,
      labels: [],
      priority: index + 1,
      ...birthOf(world),
    })
  }
}
