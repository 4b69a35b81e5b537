import { Type } from '@sinclair/typebox'
import { ContainerCluster, ContainerWorkloadProfile, Convergence } from './container-cluster.js'
import { ENFORCEMENT_MODES } from './enforcement-mode.js'
import { LabelRef } from './label.js'
import { AnyFields, Maybe, MaybeList, MaybeText, OBJECT_FIELDS, OneOf, type Read } from './reference.js'
import { VirtualService } from './virtual-service.js'

/** A deployment or the like, as Kubelink reports it (P24). */
export const KubernetesWorkload = Type.Object({
  ...OBJECT_FIELDS,
  name: Type.String(),
  namespace: Type.String(),
  kind: Type.String(),
  labels: MaybeList(LabelRef),
  enforcement_mode: Type.Optional(OneOf(...ENFORCEMENT_MODES)),
  visibility_level: Type.Optional(Type.String()),
  container_workload_profile: Maybe(ContainerWorkloadProfile),
  container_cluster: Maybe(ContainerCluster),
  container_cluster_service: Maybe(VirtualService),
  security_policy_applied_at: MaybeText,
  security_policy_sync_state: Type.Optional(Type.String()),
  metadata: Maybe(
    Type.Object({ labels: Maybe(AnyFields), annotations: Maybe(AnyFields), external_service_uid: MaybeText }),
  ),
  private_ip_addresses: MaybeList(Type.String()),
  container_policy_convergence_status: Maybe(Convergence),
})
export type KubernetesWorkload = Read<typeof KubernetesWorkload>
