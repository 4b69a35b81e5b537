import createRouter from 'find-my-way'
import type { Route } from './route.js'

/**
 * Finds the route of a path below `/api/v2`, with the decoded parameters of the path. Returns null if there is none.
 */
export type FindRoute = (path: string) => { route: Route; params: Record<string, string> } | null

/** Maximum length of a path segment. A path with a longer segment matches no route. */
const LONGEST_SEGMENT = 500

/**
 * Creates a lookup of routes by path, whatever the method: a path that only accepts POST must answer 405 to a GET, not
 * 404.
 */
export function createFindRoute(routes: readonly Route[]): FindRoute {
  const router = createRouter({ maxParamLength: LONGEST_SEGMENT })
  for (const route of routes) router.on('GET', route.path, () => {}, route)
  return (path) => {
    const found = router.find('GET', path)
    return found && { route: found.store as Route, params: found.params as Record<string, string> }
  }
}
