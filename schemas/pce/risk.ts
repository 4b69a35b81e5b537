import { Type } from '@sinclair/typebox'
import { Nullable } from '../common.js'
import { LabelRef } from './label.js'
import { AnyFields, List, Maybe, MaybeNumber, Reference, type Read } from './reference.js'

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

/** How exposed the organisation is; null until the PCE has computed it. */
export const RiskSummary = Type.Object({ ransomware: Nullable(RansomwareSummary) })
export type RiskSummary = Read<typeof RiskSummary>

/** How exposed one application group is. */
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

/** What makes a workload or an application group a risk; no source says what the details hold. */
export const RiskDetails = Type.Object({ risk_details: Maybe(AnyFields) })
export type RiskDetails = Read<typeof RiskDetails>

/** How many detected core services of a type are recommended, accepted and rejected. */
export const CoreServicesSummary = Type.Object({
  href: Type.Optional(Type.String()),
  core_service_type: Type.Unknown(),
  recommended: MaybeNumber,
  accepted: MaybeNumber,
  rejected: MaybeNumber,
})
export type CoreServicesSummary = Read<typeof CoreServicesSummary>
