import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Call, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { CLOSED, OneOf, Port, Shape, Text } from '../validate/shape.js'
import type { Filter } from '../validate/query-filters.js'
import { advanceInstructions, renderInstructions } from './enforcement-instructions.js'

const Config = Type.Object(
  {
    name: Type.Optional(Type.String()),
    description: Type.Optional(Text),
    device_type: Type.Optional(Type.String()),
    manufacturer: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    ip_address: Type.Optional(Type.String()),
    credentials: Type.Optional(
      Type.Object(
        {
          type: Type.Optional(OneOf('cli', 'api')),
          port: Type.Optional(Port),
          username: Type.Optional(Type.String()),
          password: Type.Optional(Type.String()),
        },
        CLOSED,
      ),
    ),
    rules_format: Type.Optional(OneOf('cli', 'json')),
  },
  CLOSED,
)
const CREATE = new Shape('network_enforcement_nodes_network_devices_post', Config)
const UPDATE = new Shape('network_devices_put', Config)

/** Of a model that its enforcement node does not know. */
const USUAL_ENDPOINT_TYPE = 'switch_port'

/** Made below its enforcement node, then an object of its own (P12, P38). */
export const networkDevice: PlainKind = {
  segment: 'network_devices',
  noun: 'network_device',
  ids: 'uuid',
  store: (world) => world.store('network_devices'),
  filters: {
    name: inConfig('name'),
    device_type: inConfig('device_type'),
    manufacturer: inConfig('manufacturer'),
    model: inConfig('model'),
  },

  change(_world, current, body) {
    return { config: { ...(current.config as Json), ...withoutPassword(UPDATE.read(body)) } }
  },

  remove(world, { href }) {
    const endpoints = world.store('network_endpoints')
    for (const endpoint of endpoints.all()) if (endpoint.href.startsWith(`${href}/`)) endpoints.remove(endpoint.href)
    return null
  },

  render(world, object) {
    const { created_at: _at, created_by: _by, updated_at: _on, updated_by: _of, instructions: _own, ...rest } = object
    const endpoints = world.store('network_endpoints').all()
    return {
      ...rest,
      ...renderInstructions(object),
      network_endpoints: endpoints
        .filter(({ href }) => href.startsWith(`${object.href}/`))
        .map(({ href }) => ({ href })),
    }
  },
}

/** Reading a device advances the work on its instructions. */
export const networkDeviceRoutes: Route[] = plainRoutes(networkDevice).map((route) => {
  const { GET } = route.verbs
  if (!GET || !route.path.endsWith('/:id')) return route
  const handle = (call: Call) => {
    advanceInstructions(call.world, call.path)
    return GET.handle(call)
  }
  return { ...route, verbs: { ...route.verbs, GET: { handle } } }
})

export function buildDevice(node: PceObject, body: unknown): Json {
  const config = CREATE.read(body)
  return {
    config: withoutPassword(config),
    configure: false,
    supported_endpoint_type: endpointTypeOf(node, config.model),
    network_enforcement_node: { href: node.href },
    status: 'active',
  }
}

/** Nobody ever reads it again, and no event may tell it. */
function withoutPassword<T extends { credentials?: { password?: string } }>(config: T): Json {
  if (!config.credentials) return { ...config }
  const { password: _secret, ...credentials } = config.credentials
  return { ...config, credentials }
}

function endpointTypeOf(node: PceObject, model: string | undefined): string {
  const devices = node.supported_devices as {
    manufacturers: { models: { model: string; endpoint_type: string }[] }[]
  }[]
  const models = devices.flatMap(({ manufacturers }) => manufacturers.flatMap((one) => one.models))
  return models.find((known) => known.model === model)?.endpoint_type ?? USUAL_ENDPOINT_TYPE
}

function inConfig(field: string): Filter {
  return (value) => (device) => (device.config as Json)[field] === value
}
