import type { PceObject, VersionedObject } from '../../schemas/pce/reference.js'
import type { EstateOptions, Inventory } from '../model.js'
import { CLUSTERS, NAMESPACES, type NamespaceSeed } from './data/containers.js'
import { CREATED_AT, type LabelBook } from './number-labels.js'
import { createRandom } from './random.js'
import { HEARTBEAT_AT } from './shape-workload.js'

/**
 * Minimum number of workloads in an organisation that has Kubernetes workloads. In a smaller organisation, the clusters
 * exist but contain no workloads.
 */
const FEWEST_WORKLOADS_WITH_PODS = 50

/**
 * Creates the clusters, the profiles of their namespaces and the workloads in them. A separate random sequence is used
 * for these objects, so that they do not affect the ids of anything else.
 */
export function placeContainers({ seed, workloads, orgId }: EstateOptions, labels: LabelBook): Inventory {
  const random = createRandom(seed ^ 0xc0)
  const org = (path: string) => `/orgs/${orgId}/${path}/${random.uuid()}`
  const stamped = (author: string) => ({
    created_at: CREATED_AT,
    updated_at: CREATED_AT,
    created_by: { href: author },
    updated_by: { href: author },
  })

  const clusters = CLUSTERS.map((cluster) => ({ ...cluster, href: org('container_clusters') }))
  const profiles = clusters.flatMap((cluster) => {
    const profile = (seeded: NamespaceSeed | null): PceObject & { cluster: (typeof clusters)[number] } => ({
      href: `${cluster.href}/container_workload_profiles/${random.uuid()}`,
      name: seeded === null ? 'Default Profile' : null,
      namespace: seeded?.namespace ?? null,
      description: null,
      managed: seeded !== null,
      linked: seeded !== null,
      enforcement_mode: seeded === null ? 'idle' : 'visibility_only',
      visibility_level: 'flow_summary',
      labels: seeded
        ? [
            { key: 'app', assignment: { href: labels.find('app', seeded.app).href } },
            { key: 'env', assignment: { href: labels.find('env', cluster.env).href } },
          ]
        : [],
      is_default: seeded === null,
      ...stamped(cluster.href),
      cluster,
    })
    return [profile(null), ...NAMESPACES.map(profile)]
  })

  const virtualServices: VersionedObject[] = []
  const deployments = profiles.flatMap(({ href, namespace, cluster }) => {
    const seeded = cluster.mode === 'clas' && NAMESPACES.find((candidate) => candidate.namespace === namespace)
    if (!seeded || workloads < FEWEST_WORKLOADS_WITH_PODS) return []
    return seeded.deployments.map(({ name, kind, published }, index): PceObject => {
      const service =
        published === undefined ? undefined : publish(orgId, random.uuid(), `${name}.${seeded.namespace}`, published)
      if (service) virtualServices.push({ ...service, ...stamped(cluster.href) })
      return {
        href: org('kubernetes_workloads'),
        name,
        namespace: seeded.namespace,
        kind,
        labels: [],
        container_workload_profile: { href },
        container_cluster: { href: cluster.href },
        ...(service && { container_cluster_service: { href: service.href } }),
        security_policy_applied_at: CREATED_AT,
        security_policy_sync_state: 'applied',
        metadata: { labels: { app: name }, annotations: {}, external_service_uid: random.uuid() },
        private_ip_addresses: [`${cluster.subnet}.${NAMESPACES.indexOf(seeded)}.${index + 2}`],
        container_policy_convergence_status: {
          total_pods_count: 2,
          success_pods_count: 2,
          pending_pods_count: 0,
          errors_count: 0,
          acked_at: CREATED_AT,
          fully_converged_at: CREATED_AT,
          errors: [],
        },
        created_at: CREATED_AT,
        updated_at: CREATED_AT,
      }
    })
  })

  return {
    container_clusters: clusters.map(({ href, name, mode, manager, subnet, online }) => ({
      href,
      name,
      description: '',
      pce_fqdn: null,
      manager_type: manager,
      container_runtime: 'containerd',
      kubelink_version: '5.1.0',
      cluster_mode: mode,
      last_connected: HEARTBEAT_AT,
      online,
      nodes: [0, 1].map((index) => ({
        name: `${name}-node-${index + 1}`,
        pod_subnet: `${subnet}.${index}.0/24`,
        machine_id: null,
      })),
      errors: [],
      datacenter_nat_1to1: false,
    })),
    container_workload_profiles: profiles.map(({ cluster: _own, ...profile }) => profile),
    kubernetes_workloads: deployments,
    virtual_services: virtualServices,
  }
}

/** Creates the virtual service that Kubelink reports for a Kubernetes service with its own address. */
function publish(orgId: number, uuid: string, name: string, port: number): VersionedObject {
  return {
    href: `/orgs/${orgId}/sec_policy/draft/virtual_services/${uuid}`,
    name,
    description: null,
    pce_fqdn: null,
    labels: [],
    service_ports: [{ port, proto: 6 }],
    service_addresses: [],
    ip_overrides: [],
    apply_to: 'host_only',
    external_data_set: null,
    external_data_reference: null,
    deleted_at: null,
    deleted_by: null,
  }
}
