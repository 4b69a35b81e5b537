import { Type, type Static } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Json } from '../model.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidUri, notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { exact, partial, readFlag } from '../validate/query-filters.js'
import { CLOSED, Href, Name, Nullable, OneOf, Port, Shape, Text } from '../validate/shape.js'
import { orgPath, type World } from '../world.js'
import { virtualServerOf } from './discovered-virtual-server.js'

const DeviceConfig = Type.Object(
  {
    host: Type.Optional(Type.String()),
    port: Type.Optional(Port),
    credential_type: Type.Optional(OneOf('password')),
    username: Type.Optional(Type.String()),
    credential: Type.Optional(Nullable(Type.String())),
    check_certificate: Type.Optional(Type.Boolean()),
  },
  CLOSED,
)
const NODES = { nfc: Type.Optional(Href), network_enforcement_node: Type.Optional(Href) }
const CREATE = new Shape(
  'slbs_post',
  Type.Object(
    {
      name: Name,
      description: Type.Optional(Text),
      ...NODES,
      device_type: Type.String(),
      devices: Type.Array(Type.Object({ config: DeviceConfig }, CLOSED), { minItems: 1 }),
    },
    CLOSED,
  ),
)
const UPDATE = new Shape(
  'slbs_put',
  Type.Object(
    {
      name: Type.Optional(Name),
      description: Type.Optional(Text),
      ...NODES,
      device_type: Type.Optional(Type.String()),
      devices: Type.Optional(
        Type.Array(Type.Object({ href: Type.String(), config: Type.Optional(DeviceConfig) }, CLOSED), { minItems: 1 }),
      ),
    },
    CLOSED,
  ),
)

interface Device {
  href: string
  config: Json
  status: { status: string }
}

/** A server load balancer; its password can never be read back (P23). */
export const slb: PlainKind = {
  segment: 'slbs',
  noun: 'slb',
  ids: 'uuid',
  store: (world) => world.store('slbs'),
  filters: {
    name: partial('name'),
    description: partial('description'),
    device_type: exact('device_type'),
    num_devices: (value) => (object) => String(devicesOf(object).length) === value,
    status: (value) => (object) => devicesOf(object).some(({ status }) => status.status === value),
    has_virtual_server: (value, world) => {
      const wanted = readFlag(value, 'has_virtual_server')
      return (object) => discoveredBy(world, object).some((found) => virtualServerOf(world, found)) === wanted
    },
  },

  build(world, body) {
    const { devices, description = '', nfc, network_enforcement_node = nfc, ...rest } = CREATE.read(body)
    const made = devices.map(({ config }): Device => {
      const href = orgPath(world, `/slb_devices/${world.ids.uuid('slb_devices')}`)
      return { href, config: withoutCredential(config), status: { status: UNCERTAIN.newSlbDeviceStatus } }
    })
    return { ...rest, description, ...requireNode(world, network_enforcement_node), devices: made }
  },

  change(world, current, body) {
    const { devices, nfc, network_enforcement_node = nfc, ...rest } = UPDATE.read(body)
    const known = devicesOf(current)
    const kept = devices?.map(({ href, config }) => {
      const device = known.find((candidate) => candidate.href === href)
      if (!device) throw invalidUri(href)
      return { ...device, config: { ...device.config, ...withoutCredential(config ?? {}) } }
    })
    return { ...rest, ...requireNode(world, network_enforcement_node), ...(kept && { devices: kept }) }
  },

  remove(world, object) {
    const found = discoveredBy(world, object)
    if (found.some((server) => virtualServerOf(world, server))) {
      throw notAcceptable(UNCERTAIN.virtualServerInUse.token, 'A virtual server uses what this load balancer serves')
    }
    for (const { href } of found) world.store('discovered_virtual_servers').remove(href)
    return null
  },

  render: (_world, object) => object,
}

function devicesOf(object: PceObject): Device[] {
  return object.devices as Device[]
}

function discoveredBy(world: World, { href }: PceObject): PceObject[] {
  const servers = world.store('discovered_virtual_servers').all()
  return servers.filter((server) => (server.slb as PceObject).href === href)
}

function withoutCredential({ credential: _secret, ...config }: Static<typeof DeviceConfig>): Json {
  return config
}

function requireNode(world: World, node: { href: string } | undefined): Json {
  if (!node) return {}
  if (!world.store('network_enforcement_nodes').get(node.href)) throw invalidUri(node.href)
  return { network_enforcement_node: { href: node.href } }
}
