import { Type } from '@sinclair/typebox'
import { ENFORCEMENT_MODES } from './enforcement-mode.js'
import { LabelRef } from './label.js'
import { AnyFields, Maybe, MaybeFlag, MaybeList, MaybeText, OBJECT_FIELDS, OneOf, type Read } from './reference.js'
import { WorkloadInterface } from './workload.js'

/** What a VEN says of its workload: a part of the workload's own shape. */
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

/** Something to mend, named by the event that told of it. */
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

/** The enforcement node on a machine (P24). */
export const Ven = Type.Object({
  ...OBJECT_FIELDS,
  name: MaybeText,
  description: MaybeText,
  hostname: Type.String(),
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
