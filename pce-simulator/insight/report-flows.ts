import type { TrafficFlow } from '../../schemas/pce/traffic.js'
import { collectTraffic, type TrafficQueryBody, type TrafficState } from '../policy/run-traffic-query.js'
import { readTrafficState } from '../traffic/query-run.js'
import type { World } from '../world.js'
import { readWindow, type Parameters } from './report-parameters.js'

const ANY_SIDE = { include: [], exclude: [] }
const EVERYTHING = {
  sources: ANY_SIDE,
  destinations: ANY_SIDE,
  services: { include: [], exclude: [] },
  policy_decisions: [],
  max_results: 200_000,
}

/** The flows of a report's days, those its filters let through. `more` adds to the state they are answered from. */
export function reportFlows(
  world: World,
  parameters: Parameters,
  more: Partial<TrafficState> = {},
): Iterable<TrafficFlow> {
  const { start, end } = readWindow(world, parameters)
  const query = {
    ...EVERYTHING,
    ...parameters.filters,
    start_date: new Date(start).toISOString(),
    end_date: new Date(end).toISOString(),
  }
  return collectTraffic(query as TrafficQueryBody, { ...readTrafficState(world), ...more }).rows
}
