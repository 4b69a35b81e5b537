import type { ToolContext } from '../call.js'
import { KNOWN_DECISIONS } from '../traffic/applications.js'
import { createFlowEncoder } from '../traffic/encode-flow.js'
import { createFlowReader, type FlowsRead } from '../traffic/read-flows.js'
import { collectAppGraph } from '../dependency-map/collect-app-graph.js'
import { PRODUCTION_ENVS, rankInfrastructure, type InfrastructureRow } from '../dependency-map/rank-infrastructure.js'
import { workInTurns } from '../text/work-in-turns.js'
import type { LabelIndex } from '../inventory/load-labels.js'
import type { TrafficWindow } from '../traffic/traffic-window.js'

/** Every application of the estate by how much it is infrastructure to others. */
export interface EstateRanking {
  rows: InfrastructureRow[]
  read: FlowsRead
}

/** The defaults of identify-infrastructure-services. */
const OPTIONS = { minConnections: 1, productionEnvs: PRODUCTION_ENVS }

/** Ranks the applications of the whole estate by the traffic of a window (T17). Throws what the reader throws. */
export async function rankEstate(
  ctx: Pick<ToolContext<true>, 'pce' | 'progress' | 'signal' | 'limits'>,
  labels: LabelIndex,
  window: TrafficWindow,
): Promise<EstateRanking> {
  const encoder = createFlowEncoder(labels)
  const graph = collectAppGraph(encoder)
  const request = { name: 'mcp-ringfence-estate', window, decisions: KNOWN_DECISIONS }
  const read = await createFlowReader(ctx, encoder)(request, graph.add)
  const { rows } = await workInTurns(rankInfrastructure(graph.finish(), OPTIONS), ctx.signal)
  return { rows, read }
}
