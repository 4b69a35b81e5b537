import { Type, type Static } from '@sinclair/typebox'
import { Convergence } from './container-cluster.js'
import { ENFORCEMENT_MODES, type EnforcementMode } from './enforcement-modes.js'
import { LabelRef } from './label.js'
import {
  AnyFields,
  EXTERNAL_FIELDS,
  Maybe,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  Reference,
  type Read,
} from './reference.js'
import { DetectedVulnerabilities, VulnerabilitySummary } from './vulnerability.js'

export { ENFORCEMENT_MODES, type EnforcementMode }

export const WorkloadInterface = Type.Object({
  name: Type.String(),
  address: Type.Optional(Type.String()),
  cidr_block: Maybe(Type.Integer()),
  default_gateway_address: MaybeText,
  link_state: MaybeText,
  friendly_name: MaybeText,
  network: Maybe(Type.Object({ href: Type.String(), name: MaybeText })),
  network_detection_mode: MaybeText,
  loopback: MaybeFlag,
})
export type WorkloadInterface = Static<typeof WorkloadInterface>

const OpenServicePort = Type.Object({
  protocol: Type.Integer(),
  address: MaybeText,
  port: Type.Integer(),
  process_name: MaybeText,
  user: MaybeText,
  package: MaybeText,
  win_service_name: MaybeText,
})

const RansomwareRisk = Type.Object({
  workload_exposure_severity: OneOf('critical', 'high', 'medium', 'low', 'fully_protected'),
  ransomware_protection_percent: Type.Number(),
  last_updated_at: Type.String(),
})

/**
 * The VEN of a workload in the form of older releases. The contents of `config` and `status` vary, and the VEN of an
 * unmanaged workload has no href (P16).
 */
const Agent = Type.Object({
  href: Type.Optional(Type.String()),
  config: Type.Optional(AnyFields),
  status: Type.Optional(AnyFields),
  secure_connect: Maybe(Type.Object({ matching_issuer_name: MaybeText })),
  active_pce_fqdn: MaybeText,
  target_pce_fqdn: MaybeText,
  type: MaybeText,
})

/** A machine that either has a VEN (`managed`), or is known only by name and address (P16). */
export const Workload = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Type.Union([Type.String(), Type.Null()]),
  hostname: Type.Union([Type.String(), Type.Null()]),
  description: MaybeText,
  managed: MaybeFlag,
  deleted: MaybeFlag,
  delete_type: MaybeText,
  deleted_at: MaybeText,
  deleted_by: Maybe(Reference),
  public_ip: MaybeText,
  interfaces: MaybeList(WorkloadInterface),
  ignored_interface_names: MaybeList(Type.String()),
  labels: MaybeList(LabelRef),
  service_principal_name: MaybeText,
  agent_to_pce_certificate_authentication_id: MaybeText,
  distinguished_name: MaybeText,
  service_provider: MaybeText,
  data_center: MaybeText,
  data_center_zone: MaybeText,
  datacenter_nat_1to1: MaybeFlag,
  os_id: MaybeText,
  os_detail: MaybeText,
  online: MaybeFlag,
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  visibility_level: Type.Optional(Type.String()),
  selectively_enforced_services: MaybeList(
    Type.Object({ port: MaybeNumber, to_port: MaybeNumber, proto: Type.Integer() }),
  ),
  num_enforcement_boundaries: MaybeNumber,
  containers_inherit_host_policy: MaybeFlag,
  blocked_connection_action: Type.Optional(Type.String()),
  firewall_coexistence: Maybe(Type.Object({ illumio_primary: MaybeFlag })),
  /** The services that the machine listens on, as last reported by its VEN. */
  services: Maybe(
    Type.Object({
      uptime_seconds: Maybe(Type.Integer()),
      created_at: MaybeText,
      open_service_ports: MaybeList(OpenServicePort),
    }),
  ),
  ven: Maybe(
    Type.Object({
      href: Type.String(),
      hostname: MaybeText,
      name: MaybeText,
      status: Type.Optional(Type.String()),
      ven_type: Type.Optional(Type.String()),
    }),
  ),
  agent: Maybe(Agent),
  container_cluster: Maybe(Type.Object({ href: Type.String(), name: MaybeText })),
  container_policy_convergence_status: Maybe(Convergence),
  vulnerabilities_summary: Maybe(VulnerabilitySummary),
  detected_vulnerabilities: Maybe(DetectedVulnerabilities),
  risk_summary: Maybe(Type.Object({ ransomware: Maybe(RansomwareRisk) })),
  ike_authentication_certificate: Maybe(AnyFields),
})
export type Workload = Read<typeof Workload>

/** The PCE's result for one row of an import; no source describes it well (P54). */
export const ImportResult = Type.Object({
  href: Type.Optional(Type.String()),
  status: MaybeText,
  token: MaybeText,
  message: MaybeText,
})
export type ImportResult = Read<typeof ImportResult>
