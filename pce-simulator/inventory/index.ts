import { plainRoutes } from '../kinds/plain-kind.js'
import { workloadImportRoute } from '../kinds/workload-import.js'
import { workloadInterfaceRoutes } from '../kinds/workload-interface.js'
import { workloadRiskRoute } from '../kinds/workload-risk.js'
import { workloadUnpairRoute } from '../kinds/workload-unpair.js'
import type { Route } from '../http/route.js'
import type { Estate } from '../model.js'
import type { World } from '../world.js'
import { containerClusterRoutes } from './container-cluster.js'
import { containerWorkloadProfileRoutes } from './container-workload-profile.js'
import { discoveredVirtualServer } from './discovered-virtual-server.js'
import { enforcementInstructionRoutes } from './enforcement-instructions.js'
import { kubernetesWorkloadRoutes } from './kubernetes-workload.js'
import { networkDeviceRoutes } from './network-device.js'
import { networkEndpoint } from './network-endpoint.js'
import { networkEnforcementNodeRoutes } from './network-enforcement-node.js'
import { slb } from './slb.js'
import { venReleaseRoutes } from './ven-release-routes.js'
import { seedVenReleases } from './ven-release.js'
import { venRoutes } from './ven-routes.js'

/** Agents, containers, network devices and load balancers (P23, P24). */
export const inventoryRoutes: Route[] = [
  workloadUnpairRoute,
  workloadImportRoute,
  workloadRiskRoute,
  ...workloadInterfaceRoutes,
  ...venRoutes,
  ...venReleaseRoutes,
  ...containerClusterRoutes,
  ...containerWorkloadProfileRoutes,
  ...kubernetesWorkloadRoutes,
  ...networkEnforcementNodeRoutes,
  ...enforcementInstructionRoutes,
  ...networkDeviceRoutes,
  ...plainRoutes(networkEndpoint),
  ...plainRoutes(slb),
  ...plainRoutes(discoveredVirtualServer),
]

/** Every PCE offers releases of the VEN; all else is there because the estate brings it. */
export function seedInventory(world: World, { inventory = {} }: Pick<Estate, 'inventory'>): void {
  seedVenReleases(world)
  const { virtual_services = [], ...plain } = inventory
  for (const service of virtual_services) world.policy.load('virtual_services', service)
  for (const [segment, objects] of Object.entries(plain)) {
    for (const object of objects) world.store(segment).set(object)
  }
}
