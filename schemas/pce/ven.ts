import { Type, type Static } from '@sinclair/typebox'
import { ENFORCEMENT_MODES } from './enforcement-modes.js'
import type { VEN_PROPERTIES } from './words.js'
import { LabelRef } from './label.js'
import {
  AnyFields,
  List,
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
import { WorkloadInterface } from './workload.js'
import { Nullable } from '../common.js'

/** The workload of a VEN, as it is included in the VEN's object; it has only some of the fields of a workload. */
const VenWorkload = Type.Object({
  href: Type.String(),
  name: MaybeText,
  hostname: MaybeText,
  managed: MaybeFlag,
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  visibility_level: Type.Optional(Type.String()),
  online: MaybeFlag,
  public_ip: MaybeText,
  labels: MaybeList(LabelRef),
  interfaces: MaybeList(WorkloadInterface),
  security_policy_applied_at: MaybeText,
  security_policy_received_at: MaybeText,
  security_policy_sync_state: Type.Optional(Type.String()),
})

/** A problem of a VEN that needs to be fixed, with the latest event that reported it. */
const VenCondition = Type.Object({
  first_reported_timestamp: Type.Optional(Type.String()),
  latest_event: Type.Optional(
    Type.Object({
      notification_type: Type.Optional(Type.String()),
      severity: Type.Optional(OneOf('err', 'warning')),
      href: Type.Optional(Type.String()),
      info: Maybe(AnyFields),
      timestamp: Type.Optional(Type.String()),
    }),
  ),
})

/** A VEN, the PCE's enforcement agent on a machine (P24). */
export const Ven = Type.Object({
  ...OBJECT_FIELDS,
  name: MaybeText,
  description: MaybeText,
  hostname: MaybeText,
  uid: MaybeText,
  os_id: MaybeText,
  os_detail: MaybeText,
  os_platform: MaybeText,
  version: Type.Optional(Type.String()),
  status: Type.Optional(Type.String()),
  ven_type: Type.Optional(OneOf('server', 'endpoint', 'containerized')),
  activation_type: Type.Optional(Type.String()),
  active_pce_fqdn: MaybeText,
  target_pce_fqdn: MaybeText,
  golden_image: MaybeFlag,
  authentication_recovery: MaybeFlag,
  labels: MaybeList(LabelRef),
  interfaces: MaybeList(WorkloadInterface),
  workloads: MaybeList(VenWorkload),
  container_cluster: Maybe(Type.Object({ href: Type.String(), name: MaybeText })),
  secure_connect: Maybe(Type.Object({ matching_issuer_name: MaybeText })),
  conditions: MaybeList(VenCondition),
  last_heartbeat_at: MaybeText,
  last_goodbye_at: MaybeText,
  unpair_allowed: MaybeFlag,
  upgrade_expires_at: MaybeText,
  upgrade_target_version: MaybeText,
})
export type Ven = Read<typeof Ven>
export type VenProperty = (typeof VEN_PROPERTIES)[number]

/** The number of VENs for each value of one property. */
export const VenPropertyCounts = Type.Object({
  property: Type.String(),
  counts: Type.Array(
    Type.Object({ value: Type.String(), filtered_count: Type.Integer(), unfiltered_count: Type.Integer() }),
  ),
  total_filtered_count: Type.Integer(),
})
export type VenPropertyCounts = Static<typeof VenPropertyCounts>

/** The numbers of VENs for each counted property, by the property's name. */
export const VenStatistics = Type.Record(Type.String(), VenPropertyCounts)
export type VenStatistics = Partial<Record<VenProperty, VenPropertyCounts>>

const VenTypes = MaybeList(Type.String())
/** The software package of a VEN release for one operating system. */
export const VenImage = Type.Object({
  href: Type.String(),
  release: Type.String(),
  distribution: Type.String(),
  architecture: Type.String(),
  major_version: Type.Integer(),
  min_minor_version: Type.Integer(),
  max_minor_version: Maybe(Type.Integer()),
  filename: Type.String(),
  ven_types: VenTypes,
})
export type VenImage = Read<typeof VenImage>

/** One release of the VEN software that the PCE holds. */
export const VenRelease = Type.Object({
  href: Type.String(),
  release: Type.String(),
  default: Type.Boolean(),
  default_release_ven_types: VenTypes,
  org_id: MaybeNumber,
  ven_types: VenTypes,
  images: MaybeList(VenImage),
})
export type VenRelease = Read<typeof VenRelease>

/** A limit: a number, or the word `unlimited`. */
const Limit = Type.Union([Type.Integer(), Type.String()])
/** A pairing profile: the initial settings of VENs that pair with one of its pairing keys (P24). */
export const PairingProfile = Type.Object({
  ...OBJECT_FIELDS,
  ...EXTERNAL_FIELDS,
  name: Nullable(Type.String()),
  description: MaybeText,
  enabled: Type.Boolean(),
  is_default: Type.Boolean(),
  status: Type.Optional(Type.String()),
  mode: OneOf('idle', 'illuminated', 'enforced', 'selective'),
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  visibility_level: Type.String(),
  log_traffic: Type.Boolean(),
  labels: List(LabelRef),
  role_label_lock: Type.Boolean(),
  app_label_lock: Type.Boolean(),
  env_label_lock: Type.Boolean(),
  loc_label_lock: Type.Boolean(),
  mode_lock: Type.Boolean(),
  enforcement_mode_lock: MaybeFlag,
  visibility_level_lock: Type.Boolean(),
  log_traffic_lock: Type.Boolean(),
  status_lock: MaybeFlag,
  allowed_uses_per_key: Limit,
  /** The lifetime, in seconds, of the pairing keys of this profile. */
  key_lifespan: Limit,
  total_use_count: Type.Integer(),
  last_pairing_at: Nullable(Type.String()),
  last_pairing_key_generated_at: Nullable(Type.String()),
  last_pairing_key_generated_by: Nullable(Reference),
  agent_software_release: MaybeText,
  ven_type: Type.Optional(OneOf('specified_during_activation', 'server', 'endpoint')),
})
export type PairingProfile = Read<typeof PairingProfile>

/** The reason why an action on several objects failed for some of them. The PCE answers 200 nevertheless (P32). */
export const ActionError = Type.Object({
  token: Type.String(),
  message: Type.String(),
  /** The objects for which the action failed; empty if the PCE named none. */
  hrefs: Type.Array(Type.String()),
})
export type ActionError = Static<typeof ActionError>

/** The state of a VEN's firewall after unpairing: as before the pairing, as the PCE recommends, or disabled. */
export type FirewallRestore = 'saved' | 'default' | 'disable'
