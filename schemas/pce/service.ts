import { Type, type Static } from '@sinclair/typebox'
import { EXTERNAL_FIELDS, Maybe, MaybeList, MaybeText, VERSIONED_FIELDS, type Read } from './reference.js'

const MaybeInteger = Maybe(Type.Integer())

export const ServicePort = Type.Object({
  /** The port number. If absent, the entry covers every port of the protocol. */
  port: MaybeInteger,
  to_port: MaybeInteger,
  /** IANA protocol number; -1 (any) occurs only in the built-in All Services. */
  proto: Type.Integer(),
  icmp_type: MaybeInteger,
  icmp_code: MaybeInteger,
})
export type ServicePort = Static<typeof ServicePort>

export const WindowsService = Type.Object({
  service_name: MaybeText,
  process_name: MaybeText,
  port: MaybeInteger,
  to_port: MaybeInteger,
  proto: MaybeInteger,
  icmp_type: MaybeInteger,
  icmp_code: MaybeInteger,
})
export type WindowsService = Static<typeof WindowsService>

const RansomwareRisk = Type.Object({
  category: Type.String(),
  severity: Type.String(),
  average_protection_percent: Type.Optional(Type.Number()),
  os_platforms: MaybeList(Type.String()),
})

/** A service: either ports and protocols or Windows processes. Exactly one of the three lists is used (P18). */
export const Service = Type.Object({
  ...VERSIONED_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.String(),
  description: MaybeText,
  description_url: MaybeText,
  process_name: MaybeText,
  service_ports: MaybeList(ServicePort),
  windows_services: MaybeList(WindowsService),
  windows_egress_services: MaybeList(Type.Object({ service_name: MaybeText, process_name: MaybeText })),
  risk_details: Maybe(Type.Object({ ransomware: Maybe(RansomwareRisk) })),
})
export type Service = Read<typeof Service>
