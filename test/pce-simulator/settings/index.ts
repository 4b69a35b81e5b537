import type { Route } from '../http/route.js'
import type { World } from '../world.js'

/** The settings of an organisation and of the whole PCE (pce-api e.15). */
export const settingsRoutes: Route[] = []

/** What every PCE has of these, and what follows from the estate. */
export function seedSettings(_world: World): void {}
