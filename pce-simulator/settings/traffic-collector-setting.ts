import { Type } from '@sinclair/typebox'
import type { Json } from '../model.js'
import type { PlainKind } from '../kinds/plain-kind.js'
import { invalidInput } from '../refusal.js'
import { requireAddress } from '../validate/require-address.js'
import { CLOSED, Nullable, OneOf, Shape } from '../validate/shape.js'

const Transmission = OneOf('broadcast', 'multicast', 'unicast')
const Address = Type.Optional(Type.String())
const WHERE = {
  data_source: Type.Optional(OneOf('any', 'server', 'endpoint')),
  network: Type.Optional(OneOf('any', 'corporate', 'external')),
}
const Port = Type.Integer()
const Target = Type.Object(
  {
    src_port: Type.Optional(Port),
    dst_port: Type.Optional(Port),
    proto: Type.Integer(),
    dst_ip: Address,
    src_ip: Address,
  },
  CLOSED,
)
const CREATE = new Shape(
  'settings_traffic_collector_post',
  Type.Object(
    { transmission: Transmission, ...WHERE, target: Type.Optional(Target), action: OneOf('drop', 'aggregate') },
    CLOSED,
  ),
)

/** A port is taken out by null. */
const TargetChange = Type.Object(
  {
    src_port: Type.Optional(Nullable(Port)),
    dst_port: Type.Optional(Nullable(Port)),
    proto: Type.Optional(Type.Integer()),
    dst_ip: Address,
    src_ip: Address,
  },
  CLOSED,
)
const UPDATE = new Shape(
  'settings_traffic_collector_put',
  Type.Object({ transmission: Type.Optional(Transmission), ...WHERE, target: Type.Optional(TargetChange) }, CLOSED),
)

/** Which flows are dropped or merged before they are stored (P12, P49). Those of the estate are there already. */
export const trafficCollectorSetting: PlainKind = {
  segment: 'traffic_collector_settings',
  route: '/orgs/:org/settings/traffic_collector',
  noun: 'traffic_collector_setting',
  ids: 'uuid',
  store: (world) => world.store('traffic_collector_settings'),
  filters: {},

  build(_world, body) {
    const fields = CREATE.read(body)
    checkTarget(fields.target)
    return { data_source: 'any', network: 'any', ...fields }
  },

  change(_world, current, body) {
    const { target, ...fields } = UPDATE.read(body)
    if (!target) return fields
    const merged = Object.entries({ ...(current.target as Json | undefined), ...target })
    const next = Object.fromEntries(merged.filter(([, value]) => value !== null))
    if (next.proto === undefined) throw invalidInput('A target requires proto')
    checkTarget(next)
    return { ...fields, target: next }
  },

  remove: () => null,
  render: (_world, object) => object,
}

function checkTarget(target: { dst_ip?: string; src_ip?: string } | undefined): void {
  for (const address of [target?.dst_ip, target?.src_ip]) if (address !== undefined) requireAddress(address)
}
