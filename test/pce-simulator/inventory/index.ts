import type { Route } from '../http/route.js'
import type { World } from '../world.js'

/** Agents, containers, network devices and load balancers (pce-api e.10, e.11). */
export const inventoryRoutes: Route[] = []

/** What every PCE has of these, and what follows from the estate. */
export function seedInventory(_world: World): void {}
