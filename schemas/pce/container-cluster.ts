import { Type } from '@sinclair/typebox'
import { ENFORCEMENT_MODES } from './enforcement-modes.js'
import {
  AnyFields,
  List,
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
import { LabelRef } from './label.js'
import { VirtualService } from './virtual-service.js'

/**
 * A Kubernetes or OpenShift cluster, as reported by Kubelink. The token with which Kubelink joins is returned only
 * once, on creation.
 */
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
      audit_event: Maybe(Reference),
      duplicate_ids: MaybeList(Type.Unknown()),
      error_type: MaybeText,
    }),
  ),
  datacenter_nat_1to1: MaybeFlag,
  container_cluster_token: Type.Optional(Type.String()),
})
export type ContainerCluster = Read<typeof ContainerCluster>

const ProfileLabelValue = Type.Object({ href: Type.String(), value: Type.Optional(Type.String()) })

/**
 * The settings that decide how the workloads of a namespace are managed and labelled. The default profile has no
 * namespace (P24).
 */
export const ContainerWorkloadProfile = Type.Object({
  ...OBJECT_FIELDS,
  name: MaybeText,
  namespace: MaybeText,
  description: MaybeText,
  /** For each label key, the label that is assigned, or the labels from which the workload may choose. */
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

/** The progress of applying policy to a workload: how many of the workload's pods have adopted the policy. */
export const Convergence = Type.Object({
  total_pods_count: MaybeNumber,
  success_pods_count: MaybeNumber,
  pending_pods_count: MaybeNumber,
  errors_count: Maybe(Type.Integer()),
  acked_at: MaybeText,
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

/** A deployment or similar resource, as reported by Kubelink (P24). */
export const KubernetesWorkload = Type.Object({
  ...OBJECT_FIELDS,
  name: MaybeText,
  namespace: MaybeText,
  kind: MaybeText,
  labels: MaybeList(LabelRef),
  enforcement_mode: Maybe(OneOf(...ENFORCEMENT_MODES)),
  visibility_level: MaybeText,
  container_workload_profile: Maybe(ContainerWorkloadProfile),
  container_cluster: Maybe(ContainerCluster),
  container_cluster_service: Maybe(VirtualService),
  security_policy_applied_at: MaybeText,
  security_policy_sync_state: MaybeText,
  metadata: Maybe(
    Type.Object({ labels: Maybe(AnyFields), annotations: Maybe(AnyFields), external_service_uid: MaybeText }),
  ),
  private_ip_addresses: MaybeList(Type.String()),
  container_policy_convergence_status: Maybe(Convergence),
})
export type KubernetesWorkload = Read<typeof KubernetesWorkload>

/** A backend that serves traffic for a service of a container cluster. */
export const ServiceBackend = Type.Object({
  name: Type.String(),
  kind: Type.String(),
  namespace: MaybeText,
  created_at: Type.String(),
  updated_at: Type.String(),
  virtual_services: Maybe(Type.Unknown()),
})
export type ServiceBackend = Read<typeof ServiceBackend>
