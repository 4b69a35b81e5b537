import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import { LabelRef } from './label.js'
import {
  AnyFields,
  List,
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  Reference,
  type Read,
} from './reference.js'

const PortCounts = Type.Optional(
  Type.Object({ num_protected_ports: Type.Integer(), num_unprotected_ports: Type.Integer() }),
)

const RansomwareSummary = Type.Object({
  num_total_workloads: Type.Integer(),
  num_protected_workloads: Type.Integer(),
  ransomware_protection_coverage_percent: Maybe(Type.Number()),
  workloads_by_exposure: Type.Object({
    critical: MaybeNumber,
    high: MaybeNumber,
    medium: MaybeNumber,
    low: MaybeNumber,
    fully_protected: MaybeNumber,
  }),
  risky_ports_by_severity: Type.Object({
    critical: PortCounts,
    high: PortCounts,
    medium: PortCounts,
    low: PortCounts,
  }),
  risky_ports_by_category: Type.Object({ admin: PortCounts, legacy: PortCounts }),
  top_risky_applications: List(
    Type.Object({
      app_group: Reference,
      labels: List(LabelRef),
      num_workloads: Type.Integer(),
      ransomware_protection_percent: Type.Number(),
    }),
  ),
  top_risky_services: List(
    Type.Object({ href: Type.String(), name: Type.String(), ransomware_protection_percent: Type.Number() }),
  ),
  num_risky_services: Type.Integer(),
  num_unenforced_workloads: Type.Integer(),
  last_updated_at: Type.String(),
})

/** The organisation's exposure to ransomware; null until the PCE has computed it. */
export const RiskSummary = Type.Object({ ransomware: Nullable(RansomwareSummary) })
export type RiskSummary = Read<typeof RiskSummary>

/** How exposed one application group is to risks. */
export const AppGroupRisk = Type.Object({
  app_group: Reference,
  labels: List(LabelRef),
  risk_summary: Type.Object({
    ransomware: Nullable(
      Type.Object({
        workload_exposure_severity: Type.String(),
        ransomware_protection_percent: Type.Number(),
        last_updated_at: Type.String(),
      }),
    ),
  }),
})
export type AppGroupRisk = Read<typeof AppGroupRisk>

/** The facts that put a workload or an application group at risk. No source describes the fields in `risk_details`. */
export const RiskDetails = Type.Object({ risk_details: Maybe(AnyFields) })
export type RiskDetails = Read<typeof RiskDetails>

/** The numbers of recommended, accepted and rejected core services of one type. */
export const CoreServicesSummary = Type.Object({
  href: Type.Optional(Type.String()),
  core_service_type: Type.Unknown(),
  recommended: MaybeNumber,
  accepted: MaybeNumber,
  rejected: MaybeNumber,
})
export type CoreServicesSummary = Read<typeof CoreServicesSummary>

/**
 * Application groups with their sizes. The summary is a single object without an href. Its form is known only from other
 * clients of the PCE (P28).
 */
export const AppGroupSummary = Type.Object({
  nodes: MaybeList(AnyFields),
  labels: Maybe(AnyFields),
  mode_key: MaybeList(Type.Unknown()),
  visibility_level_key: MaybeList(Type.Unknown()),
  signature: MaybeText,
  updated_at: MaybeText,
  version: Type.Optional(Type.Unknown()),
  cached: Type.Optional(Type.Boolean()),
})
export type AppGroupSummary = Read<typeof AppGroupSummary>

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

/** A workload or address that appears to provide an infrastructure service. */
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
