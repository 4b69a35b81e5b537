import { Type } from '@sinclair/typebox'
import { LabelRef } from './label.js'
import { List, MaybeFlag, MaybeList, MaybeNumber, MaybeText, OBJECT_FIELDS, Reference, type Read } from './reference.js'

const Ports = MaybeList(Type.Object({ port: Type.Integer(), to_port: MaybeNumber }))

/** An infrastructure service, such as DNS, that can be recognised by its ports. */
export const CoreServiceType = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  required_ports: Ports,
  optional_ports: Ports,
  num_optional_ports_required: MaybeNumber,
  labels: List(LabelRef),
  provider: MaybeFlag,
  priority: MaybeNumber,
})
export type CoreServiceType = Read<typeof CoreServiceType>

/** A workload or address that looks like one of those services. */
export const DetectedCoreService = Type.Object({
  ...OBJECT_FIELDS,
  ip_address: Type.String(),
  workload: Type.Optional(
    Type.Object({
      href: Type.String(),
      hostname: Type.String(),
      name: MaybeText,
      os_type: Type.Optional(Type.String()),
      enforcement_mode: Type.Optional(Type.String()),
      managed: Type.Boolean(),
      managed_by: MaybeText,
      labels: MaybeList(Reference),
    }),
  ),
  core_service_type: Type.Unknown(),
  confidence: MaybeNumber,
  feedback: MaybeText,
  action: MaybeText,
  method_name: Type.String(),
  labels_applied: MaybeFlag,
  last_detected_at: MaybeText,
})
export type DetectedCoreService = Read<typeof DetectedCoreService>
