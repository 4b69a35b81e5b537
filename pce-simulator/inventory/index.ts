import { workloadImportRoute } from '../kinds/workload-import.js'
import { workloadInterfaceRoutes } from '../kinds/workload-interface.js'
import { workloadUnpairRoute } from '../kinds/workload-unpair.js'
import type { Route } from '../http/route.js'
import type { Estate } from '../model.js'
import type { World } from '../world.js'
import { containerClusterRoutes } from './container-cluster.js'
import { containerWorkloadProfileRoutes } from './container-workload-profile.js'
import { kubernetesWorkloadRoutes } from './kubernetes-workload.js'
import { venReleaseRoutes } from './ven-release-routes.js'
import { seedVenReleases } from './ven-release.js'
import { venReportRoutes } from './ven-reports.js'
import { venRoutes } from './ven-routes.js'

/**
 * The routes of VENs and containers (P24), and the routes that unpair workloads, import workloads and manage their
 * interfaces.
 */
export const inventoryRoutes: Route[] = [
  workloadUnpairRoute,
  workloadImportRoute,
  ...workloadInterfaceRoutes,
  ...venRoutes,
  ...venReportRoutes,
  ...venReleaseRoutes,
  ...containerClusterRoutes,
  ...containerWorkloadProfileRoutes,
  ...kubernetesWorkloadRoutes,
]

/** Creates the inventory. Every PCE offers VEN releases; everything else comes from the estate. */
export function seedInventory(world: World, { inventory = {} }: Pick<Estate, 'inventory'>): void {
  seedVenReleases(world)
  const { virtual_services = [], ...plain } = inventory
  for (const service of virtual_services) world.policy.load('virtual_services', service)
  for (const [segment, objects] of Object.entries(plain)) {
    for (const object of objects) world.store(segment).set(object)
  }
}
