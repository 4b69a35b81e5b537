import type { PceObject } from '../../schemas/pce/reference.js'
import { UNCERTAIN } from '../uncertain.js'
import { orgPath, type World } from '../world.js'

/** Workloads that have the same labels of the keys that make an application. */
export interface AppGroup {
  href: string
  labels: { href: string; key: string; value: string }[]
  workloads: PceObject[]
}

/** The app groups in the order in which their first workloads were made; a workload without one of the keys is in none. */
export function findAppGroups(world: World): AppGroup[] {
  const groups = new Map<string, AppGroup>()
  for (const workload of world.workloads.live()) {
    const bears = ((workload.labels ?? []) as { href: string }[]).map(({ href }) => world.labels.get(href))
    const labels = UNCERTAIN.appGroupKeys.flatMap((key) => {
      const label = bears.find((candidate) => candidate?.key === key)
      return label ? [{ href: label.href, key, value: String(label.value) }] : []
    })
    if (labels.length < UNCERTAIN.appGroupKeys.length) continue
    const id = labels.map(({ href }) => idOf(href)).join('x')
    const known = groups.get(id)
    if (known) known.workloads.push(workload)
    else groups.set(id, { href: orgPath(world, `/app_groups/${id}`), labels, workloads: [workload] })
  }
  return [...groups.values()]
}

export function idOf(href: string): string {
  return href.slice(href.lastIndexOf('/') + 1)
}
