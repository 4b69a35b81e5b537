import createRouter from 'find-my-way'
import type { Route } from './route.js'

/**
 * Finds the route for a path below `/api/v2`, and the decoded parameters in the path. Returns null if there is no such
 * route.
 */
export type FindRoute = (path: string) => { route: Route; params: Record<string, string> } | null

/** Maximum length of a path segment. A path with a longer segment matches no route. */
const LONGEST_SEGMENT = 500

/**
 * Creates the function that finds routes by path, without regard to the method: if a path accepts only POST, a GET must
 * be answered with 405 and not with 404.
 */
export function createFindRoute(routes: readonly Route[]): FindRoute {
  const router = createRouter({ maxParamLength: LONGEST_SEGMENT })
  for (const route of routes) router.on('GET', route.path, () => {}, route)
  return (path) => {
    const found = router.find('GET', path)
    return found && { route: found.store as Route, params: found.params as Record<string, string> }
  }
}
