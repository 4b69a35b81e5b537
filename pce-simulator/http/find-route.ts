import createRouter from 'find-my-way'
import type { Route } from './route.js'

/** The route that serves a path below `/api/v2`, with the decoded parameters of the path; null where there is none. */
export type FindRoute = (path: string) => { route: Route; params: Record<string, string> } | null

/** Longer segments of a path belong to no route. */
const LONGEST_SEGMENT = 500

/** Which route a path belongs to, whatever the method: a path that only takes POST is still a path (405, not 404). */
export function createFindRoute(routes: readonly Route[]): FindRoute {
  const router = createRouter({ maxParamLength: LONGEST_SEGMENT })
  for (const route of routes) router.on('GET', route.path, () => {}, route)
  return (path) => {
    const found = router.find('GET', path)
    return found && { route: found.store as Route, params: found.params as Record<string, string> }
  }
}
