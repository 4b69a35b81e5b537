import { createHash } from 'node:crypto'
import { ENFORCEMENT_MODES } from '../../schemas/pce/workload.js'
import type { PceObject } from '../../schemas/pce/reference.js'
import { collectHrefs } from '../kinds/find-usage.js'
import type { World } from '../world.js'
import { findAppGroups, idOf, type AppGroup } from './find-app-groups.js'

const VISIBILITY_LEVELS = [
  'flow_full_detail',
  'flow_summary',
  'flow_drops',
  'flow_off',
  'enhanced_data_collection',
] as const

/** GET /app_group_summary (P28): one node per app group; `mode` and `visibility_level` count by the order of their keys. */
export function describeAppGroups(world: World): Record<string, unknown> {
  const groups = findAppGroups(world)
  const virtualServices = world.policy.entries('virtual_services').flatMap(({ active }) => active ?? [])
  const virtualServers = world.policy.entries('virtual_servers').flatMap(({ active }) => active ?? [])
  const containers = world.store('kubernetes_workloads').live()
  const nodes = groups.map((group) => {
    const inside = bearers(group)
    const containerWorkloads = containers.filter(inside)
    return {
      type: 'app_group',
      href: group.href,
      label_ids: group.labels.map(({ href }) => Number(idOf(href))),
      num_workloads: group.workloads.length,
      num_container_workloads: containerWorkloads.length,
      num_virtual_services: virtualServices.filter(inside).length,
      num_virtual_servers: virtualServers.filter(inside).length,
      mode: tally(group.workloads, 'enforcement_mode', ENFORCEMENT_MODES),
      container_workload_mode: tally(containerWorkloads, 'enforcement_mode', ENFORCEMENT_MODES),
      visibility_level: tally(group.workloads, 'visibility_level', VISIBILITY_LEVELS),
      caps: [],
    }
  })
  const labels = Object.fromEntries(
    groups.flatMap((group) => group.labels.map((label) => [idOf(label.href), { label }] as const)),
  )
  return {
    nodes,
    labels,
    mode_key: ENFORCEMENT_MODES,
    visibility_level_key: VISIBILITY_LEVELS,
    signature: createHash('md5').update(JSON.stringify(nodes)).digest('hex'),
    updated_at: world.now(),
    version: world.versions.at(-1)!.version.version,
    cached: false,
  }
}

function bearers({ labels }: AppGroup): (object: PceObject) => boolean {
  return (object) => {
    const bears = collectHrefs(object.labels)
    return labels.every(({ href }) => bears.has(href))
  }
}

function tally(objects: readonly PceObject[], field: string, values: readonly string[]): number[] {
  return values.map((value) => objects.filter((object) => object[field] === value).length)
}
