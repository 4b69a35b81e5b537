import type { Route } from '../http/route.js'
import type { World } from '../world.js'

/** Reports, risk, vulnerabilities, core services and label mapping (pce-api e.15). */
export const insightRoutes: Route[] = []

/** What every PCE has of these, and what follows from the estate. */
export function seedInsight(_world: World): void {}
