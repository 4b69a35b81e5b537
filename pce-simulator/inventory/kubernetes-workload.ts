import type { PceObject, VersionedObject } from '../../schemas/pce/reference.js'
import { readRoute, type Route } from '../http/route.js'
import type { Json } from '../model.js'
import { collectHrefs } from '../kinds/find-usage.js'
import { plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { renderLabels } from '../kinds/render-labels.js'
import { virtualService } from '../kinds/virtual-service.js'
import { notFound } from '../refusal.js'
import {
  exact,
  partial,
  pointsToAny,
  readFlag,
  readJsonList,
  timeBound,
  type Filter,
} from '../validate/query-filters.js'
import type { World } from '../world.js'
import { containerCluster } from './container-cluster.js'
import { assignedLabels, renderProfile } from './container-workload-profile.js'

/**
 * The object kind for Kubernetes workloads: deployments and similar resources, as Kubelink reports them. They are
 * read-only (P24). Their labels and enforcement are derived from the profile of the namespace, so that a change of the
 * profile takes effect at once.
 */
export const kubernetesWorkload: PlainKind = {
  segment: 'kubernetes_workloads',
  noun: 'kubernetes_workload',
  ids: 'uuid',
  store: (world) => world.store('kubernetes_workloads'),
  filters: {
    name: partial('name'),
    namespace: partial('namespace'),
    kind: exact('kind'),
    labels: (value, world) => {
      const wanted = readJsonList(value)
      return (object) => {
        const labels = collectHrefs(labelsOf(world, object))
        return wanted.every((href) => labels.has(href as string))
      }
    },
    no_labels: (value, world) => {
      const wanted = readFlag(value, 'no_labels')
      return (object) => (labelsOf(world, object).length === 0) === wanted
    },
    enforcement_mode: byProfile('enforcement_mode'),
    visibility_level: byProfile('visibility_level'),
    container_clusters: pointsToAny('container_cluster'),
    security_policy_sync_state: exact('security_policy_sync_state'),
    'security_policy_applied_at[gte]': timeBound(appliedAt, 'gte'),
    'security_policy_applied_at[lte]': timeBound(appliedAt, 'lte'),
  },

  render(world, object, query) {
    const { created_by: _by, updated_by: _of, ...rest } = object
    const profile = profileOf(world, object)
    const cluster = world.store('container_clusters').get((object.container_cluster as PceObject).href)
    const service = serviceOf(world, object)
    return {
      ...rest,
      labels: renderLabels(world, labelsOf(world, object)),
      enforcement_mode: profile?.enforcement_mode,
      visibility_level: profile?.visibility_level,
      container_workload_profile: profile && renderProfile(world, profile),
      container_cluster: cluster && containerCluster.render(world, cluster, query),
      container_cluster_service: service && virtualService.render?.(world, service, query),
    }
  },
}

export const kubernetesWorkloadRoutes: Route[] = [
  ...plainRoutes(kubernetesWorkload),
  readRoute('/orgs/:org/container_clusters/:cluster/service_backends', ({ world, path }) => {
    const cluster = path.replace(/\/service_backends$/, '')
    if (!world.store('container_clusters').get(cluster)) throw notFound()
    return { status: 200, json: backendsOf(world, cluster) }
  }),
]

/**
 * Lists the Kubernetes workloads of a cluster that have a virtual service, each with a reference to that service (P13).
 */
function backendsOf(world: World, cluster: string): Json[] {
  const workloads = world.store('kubernetes_workloads').all()
  return workloads.flatMap((object) => {
    const service = serviceOf(world, object)
    if (!service || (object.container_cluster as PceObject).href !== cluster) return []
    const { name, kind, namespace, created_at, updated_at } = object
    const virtual_services = { href: service.href, name: service.name }
    return [{ name, kind, namespace, created_at, updated_at, virtual_services }]
  })
}

function serviceOf(world: World, object: PceObject): VersionedObject | undefined {
  const href = (object.container_cluster_service as PceObject | undefined)?.href
  return href === undefined ? undefined : world.policy.get('virtual_services', href)?.draft
}

function profileOf(world: World, object: PceObject): PceObject | undefined {
  return world.store('container_workload_profiles').get((object.container_workload_profile as PceObject).href)
}

/** Returns the labels of the workload itself together with the labels that its profile assigns. */
function labelsOf(world: World, object: PceObject): { href: string }[] {
  const profile = profileOf(world, object)
  return [...(object.labels as { href: string }[]), ...(profile ? assignedLabels(profile) : [])]
}

function byProfile(field: string): Filter {
  return (value, world) => (object) => profileOf(world, object)?.[field] === value
}

function appliedAt(object: PceObject): string | null {
  return object.security_policy_applied_at as string | null
}
