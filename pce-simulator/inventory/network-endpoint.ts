import { Type } from '@sinclair/typebox'
import type { Json } from '../model.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { notFound } from '../refusal.js'
import { requireWorkload } from '../validate/check-references.js'
import { CLOSED, Href, Shape } from '../validate/shape.js'
import type { World } from '../world.js'

const Config = Type.Object(
  {
    endpoint_type: Type.Optional(Type.String()),
    name: Type.Optional(Type.String()),
    traffic_flow_id: Type.Optional(Type.String()),
    workload_discovery: Type.Optional(Type.Boolean()),
  },
  CLOSED,
)
const Workloads = Type.Optional(Type.Array(Href))
const CREATE = new Shape(
  'network_devices_network_endpoints_post',
  Type.Object({ config: Config, workloads: Workloads }, CLOSED),
)
const UPDATE = new Shape(
  'network_devices_network_endpoints_put',
  Type.Object({ config: Type.Optional(Config), workloads: Workloads }, CLOSED),
)

/** A port of a device and the workloads behind it (P12). */
export const networkEndpoint: PlainKind = {
  segment: 'network_endpoints',
  noun: 'network_endpoint',
  route: '/orgs/:org/network_devices/:device/network_endpoints',
  ids: 'uuid',
  store: (world) => world.store('network_endpoints'),
  filters: {},
  requireParent: ({ world, path }) => {
    if (!world.store('network_devices').get(deviceOf(path))) throw notFound()
  },
  build: (world, body) => ({ workloads: [], ...check(world, CREATE.read(body)) }),
  change: (world, _current, body) => check(world, UPDATE.read(body)),
  remove: () => null,

  render(_world, object) {
    const { created_at: _at, created_by: _by, updated_at: _on, updated_by: _of, ...rest } = object
    const { workload_discovery = false } = object.config as { workload_discovery?: boolean }
    const network_device = { href: deviceOf(object.href) }
    return { ...rest, workload_discovery, network_device, status: 'unmonitored' }
  },
}

function check(world: World, { workloads, ...rest }: { config?: Json; workloads?: { href: string }[] }): Json {
  if (!workloads) return rest
  return { ...rest, workloads: workloads.map(({ href }) => ({ href: requireWorkload(world, href).href })) }
}

function deviceOf(path: string): string {
  return path.replace(/\/network_endpoints.*$/, '')
}
