import { Type } from '@sinclair/typebox'
import { ENFORCEMENT_MODES } from './enforcement-mode.js'
import {
  List,
  MaybeFlag,
  MaybeList,
  MaybeNumber,
  MaybeText,
  OBJECT_FIELDS,
  OneOf,
  Reference,
  type Read,
} from './reference.js'

/** Kubernetes or OpenShift as Kubelink reports it. The token that Kubelink joins with is answered once, on creation. */
export const ContainerCluster = Type.Object({
  ...OBJECT_FIELDS,
  name: MaybeText,
  description: MaybeText,
  pce_fqdn: MaybeText,
  manager_type: MaybeText,
  container_runtime: MaybeText,
  kubelink_version: MaybeText,
  cluster_mode: Type.Optional(Type.String()),
  last_connected: MaybeText,
  online: MaybeFlag,
  nodes: MaybeList(Type.Object({ name: MaybeText, pod_subnet: MaybeText, machine_id: MaybeText })),
  errors: MaybeList(
    Type.Object({
      audit_event: Type.Optional(Reference),
      duplicate_ids: MaybeList(Type.Unknown()),
      error_type: Type.String(),
    }),
  ),
  datacenter_nat_1to1: MaybeFlag,
  container_cluster_token: Type.Optional(Type.String()),
})
export type ContainerCluster = Read<typeof ContainerCluster>

const ProfileLabelValue = Type.Object({ href: Type.String(), value: Type.Optional(Type.String()) })

/** How the workloads of a namespace are managed and labelled. The default profile has no namespace (P24). */
export const ContainerWorkloadProfile = Type.Object({
  ...OBJECT_FIELDS,
  name: MaybeText,
  namespace: MaybeText,
  description: MaybeText,
  /** Per key, the label that is given, or the ones that the workload may choose from. */
  labels: MaybeList(
    Type.Union([
      Type.Object({ key: Type.String(), assignment: ProfileLabelValue }),
      Type.Object({ key: Type.String(), restriction: List(ProfileLabelValue) }),
    ]),
  ),
  assign_labels: MaybeList(Reference),
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  visibility_level: Type.Optional(Type.String()),
  managed: MaybeFlag,
  linked: MaybeFlag,
})
export type ContainerWorkloadProfile = Read<typeof ContainerWorkloadProfile>

/** How far the pods of a workload have taken over its policy. */
export const Convergence = Type.Object({
  total_pods_count: MaybeNumber,
  success_pods_count: MaybeNumber,
  pending_pods_count: MaybeNumber,
  errors_count: Type.Integer(),
  acked_at: Type.String(),
  fully_converged_at: MaybeText,
  errors: MaybeList(
    Type.Object({
      pod_name: MaybeText,
      workload: Type.Optional(Reference),
      token: Type.String(),
      message: Type.String(),
    }),
  ),
})
