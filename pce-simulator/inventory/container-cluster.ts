import { Type } from '@sinclair/typebox'
import type { PceObject } from '../../schemas/pce/reference.js'
import type { Action, Route } from '../http/route.js'
import type { Json } from '../model.js'
import { plainRoutes, type PlainKind } from '../kinds/plain-kind.js'
import { notAcceptable } from '../refusal.js'
import { UNCERTAIN } from '../uncertain.js'
import { partial, readFlag } from '../validate/query-filters.js'
import { CLOSED, Name, Shape, Text } from '../validate/shape.js'
import type { World } from '../world.js'
import { addDefaultProfile } from './container-workload-profile.js'

const FIELDS = Type.Object(
  { name: Type.Optional(Name), description: Type.Optional(Text), datacenter_nat_1to1: Type.Optional(Type.Boolean()) },
  CLOSED,
)
const CREATE = new Shape('container_clusters_post', FIELDS)
const UPDATE = new Shape('container_clusters_put', FIELDS)

/** The fields that Kubelink fills in when it joins with the cluster's token. */
const UNJOINED = {
  pce_fqdn: null,
  manager_type: null,
  container_runtime: null,
  kubelink_version: null,
  cluster_mode: UNCERTAIN.newClusterMode,
  last_connected: null,
  online: false,
  nodes: [],
  errors: [],
}

/** The object kind for container clusters (P24). */
export const containerCluster: PlainKind = {
  segment: 'container_clusters',
  noun: 'container_cluster',
  ids: 'uuid',
  store: (world) => world.store('container_clusters'),
  filters: {
    name: partial('name'),
    clas_mode: (value) => {
      const wanted = readFlag(value, 'clas_mode')
      return ({ cluster_mode }) => (cluster_mode === 'clas') === wanted
    },
  },

  build(world, body) {
    const { name = '', description = '', datacenter_nat_1to1 = false } = CREATE.read(body)
    requireFreeName(world, name, null)
    return { name, description, ...UNJOINED, datacenter_nat_1to1 }
  },

  revealOnce: (world) => ({ container_cluster_token: `1_${world.ids.hex('container-cluster-token', 64)}` }),

  change(world, current, body) {
    const fields = UPDATE.read(body)
    if (fields.name !== undefined) requireFreeName(world, fields.name, current.href)
    return fields
  },

  remove(world, { href }) {
    for (const segment of ['container_workload_profiles', 'kubernetes_workloads']) {
      const store = world.store(segment)
      for (const object of store.all()) if (isPartOf(object, href)) store.remove(object.href)
    }
    return null
  },

  render: (_world, object) => ({ ...withoutStamps(object), caps: ['write'] }),
}

/**
 * The routes of container clusters. Creating a cluster also creates the default profile, for namespaces without a
 * profile of their own (P12).
 */
export const containerClusterRoutes: Route[] = plainRoutes(containerCluster).map((route) => {
  const { POST } = route.verbs
  return POST ? { ...route, verbs: { ...route.verbs, POST: withDefaultProfile(POST) } } : route
})

function withDefaultProfile(create: Action): Action {
  return {
    ...create,
    handle: (call) => {
      const answer = create.handle(call)
      addDefaultProfile(call.world, (answer.json as PceObject).href)
      return answer
    },
  }
}

function isPartOf(object: PceObject, cluster: string): boolean {
  return (
    object.href.startsWith(`${cluster}/`) ||
    (object.container_cluster as { href: string } | undefined)?.href === cluster
  )
}

function withoutStamps({
  created_at: _at,
  created_by: _by,
  updated_at: _on,
  updated_by: _of,
  ...rest
}: PceObject): Json {
  return rest
}

function requireFreeName(world: World, name: string, own: string | null): void {
  const clusters = world.store('container_clusters').all()
  if (name === '' || !clusters.some((other) => other.name === name && other.href !== own)) return
  throw notAcceptable(UNCERTAIN.duplicateName.token, UNCERTAIN.duplicateName.message)
}
