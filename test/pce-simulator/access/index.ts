import type { Route } from '../http/route.js'
import type { World } from '../world.js'

/** Who may do what: users, roles, permissions, keys, logins and the ways to log in (pce-api a.2, e.15). */
export const accessRoutes: Route[] = []

/** What every PCE has of these, and what follows from the estate. */
export function seedAccess(_world: World): void {}
