import { Type } from '@sinclair/typebox'
import {
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  Reference,
  Maybe,
  type Read,
} from './reference.js'

/** A switch that an enforcement node configures. Its name is in `config`. */
export const NetworkDevice = Type.Object({
  ...OBJECT_FIELDS,
  config: Type.Object({
    name: MaybeText,
    description: MaybeText,
    device_type: MaybeText,
    manufacturer: MaybeText,
    model: MaybeText,
    ip_address: MaybeText,
    credentials: Maybe(
      Type.Object({ type: Type.Optional(OneOf('cli', 'api')), port: MaybeNumber, username: MaybeText }),
    ),
    rules_format: Type.Optional(OneOf('cli', 'json')),
  }),
  configure: MaybeFlag,
  enforcement_instructions_generation_in_progress: MaybeFlag,
  enforcement_instructions_data_href: MaybeText,
  enforcement_instructions_data_timestamp: MaybeText,
  enforcement_instructions_ack_href: MaybeText,
  enforcement_instructions_ack_timestamp: MaybeText,
  supported_endpoint_type: Type.String(),
  network_endpoints: MaybeList(Reference),
  network_enforcement_node: Reference,
  status: MaybeText,
})
export type NetworkDevice = Read<typeof NetworkDevice>

/** A port of a network device, and the workloads behind it. */
export const NetworkEndpoint = Type.Object({
  ...OBJECT_FIELDS,
  config: Type.Optional(
    Type.Object({
      endpoint_type: MaybeText,
      name: MaybeText,
      traffic_flow_id: MaybeText,
      workload_discovery: MaybeFlag,
    }),
  ),
  workload_discovery: MaybeFlag,
  network_device: Type.Optional(Reference),
  workloads: MaybeList(Reference),
  status: MaybeText,
})
export type NetworkEndpoint = Read<typeof NetworkEndpoint>

const SupportedDevice = Type.Object({
  device_type: MaybeText,
  manufacturers: MaybeList(
    Type.Object({
      manufacturer: MaybeText,
      models: MaybeList(Type.Object({ model: Type.String(), endpoint_type: MaybeText })),
    }),
  ),
})

/** The program that configures network devices and load balancers on behalf of the PCE. */
export const NetworkEnforcementNode = Type.Object({
  ...OBJECT_FIELDS,
  uuid: MaybeText,
  org_id: MaybeNumber,
  hostname: MaybeText,
  name: MaybeText,
  public_ip: MaybeText,
  software_version: MaybeText,
  last_status_at: MaybeText,
  uptime_seconds: Maybe(Type.Integer()),
  network_devices: MaybeList(Type.Unknown()),
  supported_devices: MaybeList(SupportedDevice),
  conditions: MaybeList(Type.Unknown()),
  target_pce_fqdn: MaybeText,
  active_pce_fqdn: MaybeText,
})
export type NetworkEnforcementNode = Read<typeof NetworkEnforcementNode>

/**
 * The network devices to which a request about enforcement instructions applies: those in a list, or all network
 * devices of the organisation.
 */
export interface EnforcementTargets {
  network_devices?: readonly Reference[]
  all_devices?: boolean
}

/** The enforcement instructions that have been applied to a network device (P55). */
export interface AppliedInstructions {
  /** The href of the instructions: the device's `enforcement_instructions_data_href`. */
  enforcement_instructions_data_href?: string
  [field: string]: unknown
}
