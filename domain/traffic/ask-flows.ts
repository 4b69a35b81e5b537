import type { TrafficFlow, TrafficQuery } from '../../schemas/pce/traffic.js'
import type { ToolContext } from '../call.js'
import { isReadableFlow, type FlowEncoder, type FlowRow } from './encode-flow.js'
import type { TrafficFilters } from './resolve-filters.js'

/** The parts of a call's context that are needed to read traffic. */
export type AskContext = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/** One traffic query, with the options for running it. */
export interface FlowQuestion {
  /** The name under which the PCE lists the query. */
  name: string
  query: TrafficQuery
  keeps: TrafficFilters['keeps']
  draftDecisions: boolean | undefined
  /**
   * If true and the query reaches its row limit, its rows are not downloaded: the caller will divide the query and ask
   * again.
   */
  skipFull?: boolean
  /** The time limit in seconds. If absent, the configured time limit applies. */
  deadlineSeconds?: number
  /** A string to put in front of the query's progress messages. */
  prefix?: string
  /** Receives the rows that the filter `keeps` rejects. */
  drop?: (row: FlowRow) => void
  /** Receives every readable flow exactly as the PCE sent it, before any filter of this server is applied. */
  see?: (flow: TrafficFlow) => void
}

/** What the PCE reported about one query, and how many rows it returned for this query. */
export interface FlowsAsked {
  /** Number of rows that the PCE returned, including unreadable ones. */
  pceFlows: number
  unparseable: number
  /** True if the query reached its row limit, so that there may be more rows. */
  isFull: boolean
  silentRegions: readonly string[]
  announced: number | null
  rawObservations: number | null
  draftUnavailable: string | null
}

/**
 * Sends one query to the PCE and passes its rows, encoded as numbers, to `take`.
 * @throws the errors of the PCE client's streamTrafficFlows.
 */
export interface FlowAsker {
  (question: FlowQuestion, take: (row: FlowRow) => void): Promise<FlowsAsked>
}

/**
 * Creates a function that runs the queries of one call. The step number in progress reports keeps counting up from one
 * query to the next.
 */
export function createFlowAsker(ctx: AskContext, encoder: FlowEncoder): FlowAsker {
  let step = 0
  return async ({ name, query, keeps, draftDecisions, prefix = '', drop, see, ...options }, take) => {
    const { skipFull = false, deadlineSeconds = ctx.limits.trafficQueryTimeoutSeconds } = options
    const report = (message: string) => ctx.progress({ progress: step++, message: `${prefix}${message}` })
    let misshapen = 0
    report('Starting the traffic query.')
    const outcome = await ctx.pce.streamTrafficFlows(name, query, {
      signal: ctx.signal,
      deadlineSeconds,
      draftDecisions: draftDecisions ?? false,
      skipFull,
      onFlows(flows) {
        for (const flow of flows) {
          if (!isReadableFlow(flow)) {
            misshapen++
            continue
          }
          see?.(flow)
          if (keeps?.(flow) !== false) take(encoder.encode(flow))
          else drop?.(encoder.encode(flow))
        }
      },
      onProgress: ({ phase, status, elapsedMs, flows }) =>
        report(
          `Traffic query ${status ?? phase} after ${Math.round(elapsedMs / 1000)} s${flows > 0 ? `, ${flows} rows read` : ''}.`,
        ),
    })
    const pceFlows = outcome.flows + outcome.unparseable
    // Whether the answer is complete depends on all rows that the PCE returned, also on those that were not passed on.
    const returned = pceFlows + (outcome.hidden ?? 0)
    const { regions, flows_count: count } = outcome.query
    const isSkipped = outcome.skipped === true
    const announced = !isSkipped && typeof count === 'number' && count > returned ? count - (outcome.hidden ?? 0) : null
    return {
      pceFlows,
      unparseable: outcome.unparseable + misshapen,
      isFull: isSkipped || returned >= query.max_results,
      silentRegions: (regions ?? []).flatMap((region) => (region.responded ? [] : [region.pce_fqdn])),
      announced,
      rawObservations: outcome.matchesCount,
      draftUnavailable: outcome.draftUnavailable ?? null,
    }
  }
}
