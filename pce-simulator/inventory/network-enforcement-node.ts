import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Route } from '../http/route.js'
import type { Json } from '../model.js'
import { createPlain, plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { notFound } from '../refusal.js'
import type { Filter } from '../validate/query-filters.js'
import { CLOSED, Shape } from '../validate/shape.js'
import { orgPath } from '../world.js'
import { buildDevice, networkDevice } from './network-device.js'

const UPDATE = new Shape(
  'network_enforcement_nodes_put',
  Type.Object({ target_pce_fqdn: Type.Optional(Type.String()) }, CLOSED),
)

interface SupportedDevice {
  device_type?: string
  manufacturers?: { manufacturer?: string; models?: { model: string; endpoint_type?: string }[] }[]
}

/** The program that speaks to switches and load balancers (P12). */
export const networkEnforcementNode: PlainKind = {
  segment: 'network_enforcement_nodes',
  noun: 'network_enforcement_node',
  ids: 'uuid',
  store: (world) => world.store('network_enforcement_nodes'),
  filters: {
    device_type: supports(({ device_type }) => [device_type]),
    manufacturer: supports(({ manufacturers = [] }) => manufacturers.map(({ manufacturer }) => manufacturer)),
    model: supports(({ manufacturers = [] }) =>
      manufacturers.flatMap(({ models = [] }) => models.map(({ model }) => model)),
    ),
    health: (value) => (node) => healthOf(node) === value,
    condition: (value) => (node) => conditionsOf(node).some((condition) => JSON.stringify(condition).includes(value)),
  },
  change: (_world, _current, body) => UPDATE.read(body),

  render(world, object) {
    const { created_at: _at, created_by: _by, updated_at: _on, updated_by: _of, ...rest } = object
    const devices = world.store('network_devices').all()
    return {
      ...rest,
      network_devices: devices
        .filter((device) => (device.network_enforcement_node as PceObject).href === object.href)
        .map(({ href }) => ({ href })),
    }
  },
}

export const networkEnforcementNodeRoutes: Route[] = [
  ...plainRoutes(networkEnforcementNode),
  {
    path: '/orgs/:org/network_enforcement_nodes/:node/network_devices',
    verbs: {
      POST: {
        event: 'network_device.create',
        handle: ({ world, path, body }) => {
          const node = world.store('network_enforcement_nodes').get(path.replace(/\/network_devices$/, ''))
          if (!node) throw notFound()
          const fields = buildDevice(node, body)
          return createPlain(networkDevice, fields, world, { path: orgPath(world, '/network_devices') })
        },
      },
    },
  },
]

function supports(namesOf: (device: SupportedDevice) => readonly (string | undefined)[]): Filter {
  return (value) => (node) => (node.supported_devices as SupportedDevice[]).some((one) => namesOf(one).includes(value))
}

function conditionsOf(node: PceObject): Json[] {
  return node.conditions as Json[]
}

function healthOf(node: PceObject): string {
  return conditionsOf(node).length === 0 ? 'healthy' : 'warning'
}
