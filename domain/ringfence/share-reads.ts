import { PceError } from '../../pce-client/index.js'
import type { ToolContext } from '../call.js'
import { collectAppGraph } from '../dependency-map/collect-app-graph.js'
import { PRODUCTION_ENVS, rankInfrastructure, type InfrastructureRow } from '../dependency-map/rank-infrastructure.js'
import { loadLabels, type LabelIndex } from '../inventory/labels.js'
import { KNOWN_DECISIONS } from '../traffic/applications.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { createFlowReader, type FlowsRead } from '../traffic/read-flows.js'
import { workInTurns } from '../text/pace-work.js'
import { lookbackWindow, type TrafficWindow } from '../traffic/traffic-window.js'
import type { SourceChoice } from './choose-sources.js'
import { readPolicy, type PolicyRead } from './read-surroundings.js'

/** What the ringfences of one call share, each read on first use. */
export interface Shared {
  /** At most 60 s old when asked for. */
  labels(): Promise<LabelIndex>
  lookbackDays: number
  /** Which sources are let in. */
  choice: SourceChoice
  /** Of all traffic that is read. */
  window: TrafficWindow
  /** Read it past the row limit, in parts (D136). */
  complete: boolean
  /** Read again with each new label list. */
  policy(): Promise<PolicyRead>
  /** A sentence instead if the estate could not be ranked: the ranking is only advice, no reason to fail. */
  ranking(): Promise<EstateRanking | string>
}

type Context = Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits' | 'now'>

/** Everything that the ringfences of one call have in common. */
export function shareReads(
  ctx: Context,
  lookbackDays: number,
  choice: SourceChoice,
  complete: boolean | undefined = false,
): Shared {
  let policy: { labels: LabelIndex; read: Promise<PolicyRead> } | undefined
  let ranking: Promise<EstateRanking | string> | undefined
  const window = lookbackWindow(ctx.now(), lookbackDays)
  const labels = () => loadLabels(ctx.pce, ctx)
  return {
    labels,
    lookbackDays,
    choice,
    window,
    complete,
    async policy() {
      const index = await labels()
      if (policy?.labels !== index) policy = { labels: index, read: readPolicy(ctx, index) }
      return policy.read.catch((error: unknown) => {
        // The next application retries.
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

/** Every application of the estate, ranked by how much others depend on it. */
export interface EstateRanking {
  rows: InfrastructureRow[]
  read: FlowsRead
}

/** The defaults of identify-infrastructure-services. */
const OPTIONS = { minConnections: 1, productionEnvs: PRODUCTION_ENVS }

/** Ranks the applications of the whole estate by the traffic of a window (T17). Throws what the reader throws. */
async function rankEstate(
  ctx: Context,
  labels: LabelIndex,
  window: TrafficWindow,
  complete: boolean,
): Promise<EstateRanking> {
  const encoder = createFlowEncoder(labels)
  const graph = collectAppGraph(encoder)
  const request = { name: 'mcp-ringfence-estate', window, decisions: KNOWN_DECISIONS }
  const read = await createFlowReader(ctx, encoder, complete)(request, graph.add)
  const { rows } = await workInTurns(rankInfrastructure(graph.finish(), OPTIONS), ctx.signal)
  return { rows, read }
}

/** The context with progress that goes on rising over several readers, each of which counts from zero. */
export function reportRising<C extends Pick<ToolContext, 'progress'>>(ctx: C, prefix = ''): C {
  let step = 0
  return {
    ...ctx,
    progress: ({ message }) =>
      ctx.progress({ progress: step++, ...(message !== undefined && { message: prefix + message }) }),
  }
}
