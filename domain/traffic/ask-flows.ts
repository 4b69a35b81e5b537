import type { TrafficFlow, TrafficQuery } from '../../schemas/pce/traffic.js'
import type { ToolContext } from '../call.js'
import { isReadableFlow, type FlowEncoder, type FlowRow } from './encode-flow.js'
import type { TrafficFilters } from './resolve-filters.js'

/** What reading traffic takes of a call. */
export type AskContext = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/** One query. */
export interface FlowQuestion {
  /** Name of the PCE's job. */
  name: string
  query: TrafficQuery
  keeps: TrafficFilters['keeps']
  draftDecisions: boolean | undefined
  /** Leave out the rows where there are as many as were asked for. */
  skipFull?: boolean
  /** Default: what the configuration gives a query. */
  deadlineSeconds?: number
  /** What its progress begins with. */
  prefix?: string
  /** Takes the rows that `keeps` leaves out. */
  drop?: (row: FlowRow) => void
  /** Sees every readable row as it came. */
  see?: (flow: TrafficFlow) => void
}

/** What the PCE said of one query, and how many rows there were. */
export interface FlowsAsked {
  /** Rows the PCE returned, unreadable ones included. */
  pceFlows: number
  unparseable: number
  /** There are as many rows as were asked for, or more. */
  isFull: boolean
  silentRegions: readonly string[]
  announced: number | null
  rawObservations: number | null
  draftUnavailable: string | null
}

/** Asks the PCE one query and hands over its rows, encoded. Throws what the client's streamTrafficFlows throws. */
export interface FlowAsker {
  (question: FlowQuestion, take: (row: FlowRow) => void): Promise<FlowsAsked>
}

/** Asks the queries of one call; their progress rises by one with every report. */
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
          if (keeps?.(flow.src.ip, flow.dst.ip) !== false) take(encoder.encode(flow))
          else drop?.(encoder.encode(flow))
        }
      },
      onProgress: ({ phase, status, elapsedMs, flows }) =>
        report(
          `Traffic query ${status ?? phase} after ${Math.round(elapsedMs / 1000)} s${flows > 0 ? `, ${flows} rows read` : ''}.`,
        ),
    })
    const pceFlows = outcome.flows + outcome.unparseable
    const { regions, flows_count: count } = outcome.query
    const isSkipped = outcome.skipped === true
    const announced = !isSkipped && typeof count === 'number' && count > pceFlows ? count : null
    return {
      pceFlows,
      unparseable: outcome.unparseable + misshapen,
      isFull: isSkipped || pceFlows >= query.max_results,
      silentRegions: (regions ?? []).flatMap((region) => (region.responded ? [] : [region.pce_fqdn])),
      announced,
      rawObservations: outcome.matchesCount,
      draftUnavailable: outcome.draftUnavailable ?? null,
    }
  }
}
