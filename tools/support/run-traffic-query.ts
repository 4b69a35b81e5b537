import type { PceClient } from '../../pce-client/index.js'
import type { TrafficFlow, TrafficQuery } from '../../schemas/pce/traffic.js'
import type { ToolContext } from '../define.js'

/** What a finished query says about its result as a whole. */
export interface QueryFacts {
  /** Rows the PCE returned, unreadable ones included. */
  pceFlows: number
  unparseable: number
  /** The row limit was reached: there may be more, and every count is a lower bound. */
  truncated: boolean
  /** Observations before the PCE aggregated them. */
  rawObservations: number | null
}

/**
 * Runs one traffic query and hands its rows over in batches. Progress is reported at the start and after every poll, rising by
 * one each time because nobody knows how long the PCE will take.
 */
export async function runTrafficQuery(
  pce: PceClient,
  ctx: Pick<ToolContext, 'progress' | 'signal' | 'limits'>,
  queryName: string,
  query: TrafficQuery,
  onFlows: (flows: TrafficFlow[]) => void,
): Promise<QueryFacts> {
  let step = 0
  ctx.progress({ progress: step, message: 'Starting the traffic query.' })
  const outcome = await pce.streamTrafficFlows(queryName, query, {
    signal: ctx.signal,
    deadlineSeconds: ctx.limits.trafficQueryTimeoutSeconds,
    onFlows,
    onProgress: ({ phase, status, elapsedMs, flows }) =>
      ctx.progress({
        progress: ++step,
        message: `Traffic query ${status ?? phase} after ${Math.round(elapsedMs / 1000)} s${flows > 0 ? `, ${flows} rows read` : ''}.`,
      }),
  })
  const pceFlows = outcome.flows + outcome.unparseable
  return {
    pceFlows,
    unparseable: outcome.unparseable,
    truncated: pceFlows >= query.max_results,
    rawObservations: outcome.matchesCount,
  }
}
