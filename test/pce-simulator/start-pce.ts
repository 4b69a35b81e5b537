import { createCaller } from './call-pce.js'
import { createPceSimulator } from '../../pce-simulator/index.js'
import type { PceSimulatorOptions } from '../../pce-simulator/options.js'
import { smallEstate } from '../../pce-simulator/small-estate.js'

/** Noon of 1 March 2026: what the clock of a `startPce` simulator says unless told otherwise. */
export const START_OF_TEST = Date.UTC(2026, 2, 1, 12)

/**
 * A listening simulator with the small estate and a clock that stands still, closed when the test ends. `org` calls paths below
 * the organisation or whole hrefs, `call` any path below `/api/v2`.
 */
export async function startPce(
  test: { teardown(end: () => Promise<void>): unknown },
  options: PceSimulatorOptions = {},
) {
  const simulator = await createPceSimulator({ estate: smallEstate(), now: () => START_OF_TEST, ...options })
  await simulator.listen()
  test.teardown(() => simulator.close())
  const call = createCaller(simulator)
  const org = (method: string, path: string, json?: unknown, headers?: Record<string, string>) =>
    call(method, path.startsWith('/orgs/') ? path : `/orgs/${simulator.orgId}${path}`, json, headers)
  return { simulator, call, org }
}
