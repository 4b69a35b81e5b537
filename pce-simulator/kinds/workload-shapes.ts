import { isIP } from 'node:net'
import { Type, type Static } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import { ENFORCEMENT_MODES } from '../../schemas/pce/workload.js'
import { notAcceptable } from '../refusal.js'
import { CLOSED, EXTERNAL_DATA, Href, Nullable, OneOf, Shape, Text } from '../validate/shape.js'

/** The enforcement mode for each value of `agent.config.mode`, a field of old releases. */
export const LEGACY_MODES: Readonly<Record<string, (typeof ENFORCEMENT_MODES)[number]>> = {
  idle: 'idle',
  illuminated: 'visibility_only',
  selective: 'selective',
  enforced: 'full',
}

const Id255 = Nullable(Type.String({ maxLength: 255 }))
const Interface = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    link_state: Type.Optional(OneOf('up', 'down', 'unknown')),
    address: Type.String(),
    cidr_block: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: 128 }))),
    default_gateway_address: Type.Optional(Nullable(Type.String())),
    friendly_name: Type.Optional(Nullable(Type.String())),
    network: Type.Optional(Href),
  },
  CLOSED,
)
const AgentConfig = Type.Object(
  { mode: OneOf('idle', 'illuminated', 'enforced', 'selective'), log_traffic: Type.Optional(Type.Boolean()) },
  CLOSED,
)

/** The fields of a workload that can be written whether or not it has a VEN. */
const COMMON = {
  description: Type.Optional(Nullable(Text)),
  ...EXTERNAL_DATA,
  service_principal_name: Type.Optional(Id255),
  agent_to_pce_certificate_authentication_id: Type.Optional(Id255),
  service_provider: Type.Optional(Type.String()),
  data_center: Type.Optional(Type.String()),
  data_center_zone: Type.Optional(Type.String()),
  labels: Type.Optional(Type.Array(Href)),
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
}
/** The fields of a workload that can be written only if it has no VEN, because a VEN would report them. */
const UNMANAGED = {
  hostname: Type.Optional(Type.String({ maxLength: 255 })),
  distinguished_name: Type.Optional(Type.String()),
  public_ip: Type.Optional(Nullable(Type.String())),
  interfaces: Type.Optional(Type.Array(Interface)),
  os_id: Type.Optional(Type.String()),
  os_detail: Type.Optional(Type.String()),
  online: Type.Optional(Type.Boolean()),
}
const CHANGE = {
  href: Type.Optional(Type.String()),
  name: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
  // The public schema lacks `visibility_level`, but the web console and clients send it (P16).
  visibility_level: Type.Optional(
    OneOf('flow_full_detail', 'flow_summary', 'flow_drops', 'flow_off', 'enhanced_data_collection'),
  ),
  datacenter_nat_1to1: Type.Optional(Type.Boolean()),
  agent: Type.Optional(
    Type.Object(
      {
        href: Type.Optional(Type.String()),
        config: Type.Optional(AgentConfig),
        status: Type.Optional(Type.Object({ status: OneOf('active', 'suspended') }, CLOSED)),
      },
      CLOSED,
    ),
  ),
}

export const WorkloadCreate = Type.Object(
  {
    name: Type.Optional(Type.String({ maxLength: 255 })),
    ...COMMON,
    ...UNMANAGED,
    agent: Type.Optional(Type.Object({ config: AgentConfig }, CLOSED)),
  },
  CLOSED,
)
const CREATE = new Shape('workloads_post', WorkloadCreate)
const CHANGE_MANAGED = new Shape('workloads_put', Type.Object({ ...CHANGE, ...COMMON }, CLOSED))
const CHANGE_UNMANAGED = new Shape('workloads_put', Type.Object({ ...CHANGE, ...COMMON, ...UNMANAGED }, CLOSED))

export type WorkloadFields = Static<typeof WorkloadCreate>

export function readCreation(body: unknown): WorkloadFields {
  return checkAddresses(CREATE.read(body))
}

/**
 * Reads the body of a change to a workload. Which fields are allowed depends on whether the workload has a VEN (P16).
 */
export function readChange(body: unknown, current: PceObject) {
  const { href: _own, ...fields } = checkAddresses(
    (current.managed === true ? CHANGE_MANAGED : CHANGE_UNMANAGED).read(body),
  )
  return fields as Omit<Static<(typeof CHANGE_UNMANAGED)['schema']>, 'href'>
}

function checkAddresses<T extends object>(fields: T): T {
  const { public_ip, interfaces = [] } = fields as Partial<WorkloadFields>
  const addresses = [public_ip, ...interfaces.flatMap((one) => [one.address, one.default_gateway_address])]
  for (const address of addresses) {
    if (address != null && isIP(address) === 0)
      throw notAcceptable('invalid_ip_address', 'Invalid IP address specified')
  }
  return fields
}
