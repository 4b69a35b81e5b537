import { PceError } from '../../pce-client/index.js'
import type { ToolContext } from '../call.js'
import { collectAppGraph } from '../dependency-map/collect-app-graph.js'
import { PRODUCTION_ENVS, rankInfrastructure, type InfrastructureRow } from '../dependency-map/rank-infrastructure.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { JUDGED_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { createInventories, type Inventories } from '../policy/present-modes.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { createConversationReader, type FlowsRead } from '../traffic/read-flows.js'
import { workInTurns } from '../text/pace-work.js'
import type { ChosenWindow, TrafficWindow } from '../traffic/traffic-window.js'
import type { SourceChoice } from './choose-sources.js'
import { readPolicy, type PolicyRead } from './read-surroundings.js'

/** The data that all ringfences of one call share. Each item is read when it is first needed. */
export interface Shared {
  /** Returns labels that are at most 60 s old. */
  labels(): Promise<LabelIndex>
  /** Number of days from the start of the window until now. */
  lookbackDays: number
  /** Which sources to let in, as the caller chose. */
  choice: SourceChoice
  /** The time window of all traffic that is read. */
  window: TrafficWindow
  /** True if traffic beyond the row limit is also read, in several parts (D136). */
  complete: boolean
  /** The stores of present modes of workloads that have been read. */
  inventories: Inventories
  /** Returns the policy. Whenever the label list has been read again, the policy is read again too. */
  policy(): Promise<PolicyRead>
  /**
   * Returns the ranking of all applications, or a sentence that says why there is none. The ranking only gives advice,
   * so its failure does not make the call fail.
   */
  ranking(): Promise<EstateRanking | string>
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/** Creates the shared data for all ringfences of one call. */
export function shareReads(
  ctx: Context,
  { window, days: lookbackDays }: ChosenWindow,
  choice: SourceChoice,
  complete: boolean | undefined = false,
): Shared {
  let policy: { labels: LabelIndex; read: Promise<PolicyRead> } | undefined
  let ranking: Promise<EstateRanking | string> | undefined
  const labels = () => loadLabels(ctx.pce, ctx)
  return {
    labels,
    lookbackDays,
    choice,
    window,
    complete,
    inventories: createInventories(ctx),
    async policy() {
      const index = await labels()
      if (policy?.labels !== index) policy = { labels: index, read: readPolicy(ctx, index) }
      return policy.read.catch((error: unknown) => {
        // A failed read is not remembered, so the next application reads again.
        policy = undefined
        throw error
      })
    },
    ranking: () =>
      (ranking ??= labels()
        .then((index) => rankEstate(ctx, index, window, complete))
        .catch((error: unknown) => {
          if (!(error instanceof PceError) || ctx.signal.aborted) throw error
          return `The estate could not be ranked, so infrastructure services among the sources are unknown: ${error.message}`
        })),
  }
}

/** All applications of the organisation, ranked by how much other applications depend on them. */
export interface EstateRanking {
  rows: InfrastructureRow[]
  read: FlowsRead
}

/** The options of the ranking: the defaults of the tool identify-infrastructure-services. */
const OPTIONS = { minConnections: 1, productionEnvs: PRODUCTION_ENVS }

/**
 * Ranks all applications of the organisation by their traffic in a time window (T17). Throws the errors of the traffic
 * reader.
 */
async function rankEstate(
  ctx: Context,
  labels: LabelIndex,
  window: TrafficWindow,
  complete: boolean,
): Promise<EstateRanking> {
  const encoder = createFlowEncoder(labels)
  const graph = collectAppGraph(encoder)
  const request = { name: 'mcp-ringfence-estate', window, decisions: JUDGED_DECISIONS }
  const read = await createConversationReader(ctx, encoder, complete)(request, graph.add)
  const { rows } = await workInTurns(rankInfrastructure(graph.finish(), OPTIONS), ctx.signal)
  return { rows, read }
}

/**
 * Returns a context in which the progress number keeps rising across several readers, each of which counts from zero.
 */
export function reportRising<C extends Pick<ToolContext, 'progress'>>(ctx: C, prefix = ''): C {
  let step = 0
  return {
    ...ctx,
    progress: ({ message }) =>
      ctx.progress({ progress: step++, ...(message !== undefined && { message: prefix + message }) }),
  }
}
