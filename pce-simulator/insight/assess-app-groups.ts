import type { World } from '../world.js'
import { assessRisk, type WorkloadRisk } from './assess-risk.js'
import { findAppGroups, type AppGroup } from './find-app-groups.js'

/** Every app group with the risks of its managed workloads. */
export function assessAppGroups(world: World, risks = assessRisk(world)): { group: AppGroup; risks: WorkloadRisk[] }[] {
  const byWorkload = new Map(risks.map((risk) => [risk.workload.href, risk]))
  return findAppGroups(world).map((group) => ({
    group,
    risks: group.workloads.flatMap(({ href }) => byWorkload.get(href) ?? []),
  }))
}
