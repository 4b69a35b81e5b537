import { Type } from '@sinclair/typebox'
import { LabelRef } from './label.js'
import {
  EXTERNAL_FIELDS,
  List,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  Reference,
  VERSIONED_FIELDS,
  type Read,
} from './reference.js'

const ServiceAddress = Type.Union([
  Type.Object({ ip: Type.String(), network: Type.Optional(Reference), port: MaybeNumber }),
  Type.Object({ fqdn: Type.String(), description: MaybeText, port: MaybeNumber }),
])

/** A service that workloads offer under a name of its own; either `service` or `service_ports` (P23). */
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

/** That a workload takes part in a virtual service. */
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
