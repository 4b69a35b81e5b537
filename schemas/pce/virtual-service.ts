import { Type } from '@sinclair/typebox'
import { LabelRef } from './label.js'
import {
  AnyFields,
  EXTERNAL_FIELDS,
  List,
  MaybeFlag,
  Maybe,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  Reference,
  UpdateType,
  VERSIONED_FIELDS,
  type Read,
} from './reference.js'
import { Nullable } from '../common.js'

const ServiceAddress = Type.Union([
  Type.Object({ ip: Type.String(), network: Type.Optional(Reference), port: MaybeNumber }),
  Type.Object({ fqdn: Type.String(), description: MaybeText, port: MaybeNumber }),
])

/** A virtual service: a named service that workloads provide. It has either `service` or `service_ports` (P23). */
export const VirtualService = Type.Object({
  ...VERSIONED_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.String(),
  description: MaybeText,
  pce_fqdn: MaybeText,
  labels: List(LabelRef),
  service: Type.Optional(Type.Object({ href: Type.String(), name: MaybeText })),
  service_ports: MaybeList(Type.Object({ port: MaybeNumber, to_port: MaybeNumber, proto: Type.Integer() })),
  service_addresses: MaybeList(ServiceAddress),
  ip_overrides: MaybeList(Type.String()),
  apply_to: Type.Optional(OneOf('host_only', 'internal_bridge_network')),
})
export type VirtualService = Read<typeof VirtualService>

/** A service binding, which makes a workload provide a virtual service. */
export const ServiceBinding = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  bound_service: Type.Object({ href: Type.String(), name: MaybeText, labels: MaybeList(LabelRef) }),
  virtual_service: Type.Optional(Reference),
  workload: Type.Optional(Type.Object({ href: Type.String(), name: MaybeText, hostname: MaybeText })),
  container_workload: Type.Optional(Reference),
  port_overrides: MaybeList(
    Type.Object({ port: MaybeNumber, proto: MaybeNumber, new_port: Type.Integer(), new_to_port: MaybeNumber }),
  ),
})
export type ServiceBinding = Read<typeof ServiceBinding>

const VirtualAddress = Type.Object({ vip: Type.String(), protocol: Type.Integer(), port: Type.String() })
/** A virtual server: an address on a load balancer, to which policy applies (P23). */
export const VirtualServer = Type.Object({
  ...VERSIONED_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.String(),
  description: MaybeText,
  labels: List(LabelRef),
  service: Reference,
  providers: List(Type.Object({ label: Type.Optional(Reference), workload: Type.Optional(Reference) })),
  mode: Type.String(),
  discovered_virtual_server: Nullable(
    Type.Object({
      href: Type.String(),
      dvs_identifier: Type.String(),
      name: Type.String(),
      mode: Type.String(),
      vip_port: VirtualAddress,
    }),
  ),
})
export type VirtualServer = Read<typeof VirtualServer>

/** A discovered virtual server: an address that was found on a load balancer. */
export const DiscoveredVirtualServer = Type.Object({
  ...OBJECT_FIELDS,
  dvs_identifier: Type.String(),
  name: Type.String(),
  vip_port: VirtualAddress,
  local_ips: List(Type.String()),
  mode: Type.String(),
  slb: Reference,
  snat_type: MaybeText,
  snat_pool_ips: MaybeList(Type.String()),
  service_checks: List(Type.Object({ protocol: Type.Integer(), port: MaybeNumber })),
  network_enforcement_node: Reference,
  /** The older name of the field `network_enforcement_node`. */
  nfc: Maybe(Reference),
  virtual_server: Maybe(
    Type.Object({
      href: Type.String(),
      update_type: Nullable(UpdateType),
      mode: Type.String(),
      labels: List(LabelRef),
    }),
  ),
})
export type DiscoveredVirtualServer = Read<typeof DiscoveredVirtualServer>

/** A server load balancer. The PCE never returns the passwords of its devices. */
export const Slb = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  description: MaybeText,
  device_type: Type.Optional(Type.String()),
  network_enforcement_node: Maybe(Reference),
  nfc: Maybe(Reference),
  devices: MaybeList(
    Type.Object({
      href: Type.Optional(Type.String()),
      config: Type.Optional(
        Type.Object({
          host: MaybeText,
          port: MaybeNumber,
          credential_type: MaybeText,
          username: MaybeText,
          check_certificate: MaybeFlag,
        }),
      ),
      status: Maybe(AnyFields),
    }),
  ),
})
export type Slb = Read<typeof Slb>
