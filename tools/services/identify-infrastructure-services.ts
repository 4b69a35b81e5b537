import { Type, type Static } from '@sinclair/typebox'
import { DetailLevel, Count, Flag, Text, Total } from '../../schemas/common.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { SectionsInput, SectionsOutput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { defineTool } from '../define.js'
import { describeReading, Reading, createConversationReader } from '../../domain/traffic/read-flows.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { JUDGED_DECISIONS } from '../../schemas/pce/policy-decisions.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { collectAppGraph, collectConsumption } from '../../domain/dependency-map/collect-app-graph.js'
import { PRODUCTION_ENVS, rankInfrastructure } from '../../domain/dependency-map/rank-infrastructure.js'
import { chooseSections } from '../answers/choose-sections.js'
import {
  DEFAULT_TOP,
  InBrief,
  INFRASTRUCTURE_PARTS,
  InfrastructureResult,
  showInfrastructure,
  Tiers,
} from '../answers/dependency-map/show-infrastructure.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { Truncation } from '../answers/byte-budget.js'

const LOOKBACK_DAYS = 90

const output = Type.Object({
  summary: Type.Object(
    {
      total_flows_analyzed: TrafficCounts.rows,
      app_to_app_flows: Count('Rows between two applications'),
      lookback_days: Type.Integer(),
      unique_apps: Count('With an edge left'),
      unique_app_to_app_edges: Count('Source and destination pairs of at least min_connections'),
      min_connections_filter: Count('min_connections as applied'),
      tier_counts: Tiers,
      scoring_methodology: Text('How the score is computed'),
      recommendation: Text('Which applications to write policy for first'),
    },
    { description: 'Of the whole estate, shown or not' },
  ),
  results: Type.Array(InfrastructureResult, { description: 'Highest score first' }),
  in_brief: InBrief,
  results_total: Total,
  truncated: Flag('Results are not shown, or flows_truncated'),
  message: Type.Optional(Type.String()),
  ...SectionsOutput,
  ...Reading,
  ...Truncation,
})

export default defineTool({
  name: 'identify-infrastructure-services',
  summary: 'Applications by how much others depend on them.',
  effect: 'read',
  reads: 'judged',
  toolset: 'analysis',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      ...windowInput(LOOKBACK_DAYS),
      min_connections: Type.Optional(Type.Integer({ minimum: 0, default: 1, description: 'Of an edge', listed: '' })),
      top_n: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1000, default: DEFAULT_TOP, description: 'Rows to show', listed: '' }),
      ),
      production_envs: Type.Optional(
        Type.Array(Type.String({ minLength: 1 }), {
          minItems: 1,
          default: [...PRODUCTION_ENVS],
          description: 'env values; others score half',
          listed: '',
        }),
      ),
      ...SectionsInput(INFRASTRUCTURE_PARTS),
      detail_level: DetailLevel('full: all neighbours'),
      ...CompleteInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { lookback_days: 30, top_n: 5 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const chosen = chooseSections(args.sections, INFRASTRUCTURE_PARTS)
    const { window, days } = chooseWindow(ctx.now(), args, LOOKBACK_DAYS)
    const minConnections = args.min_connections ?? 1
    const productionEnvs = args.production_envs ?? PRODUCTION_ENVS
    const encoder = createFlowEncoder(await loadLabels(ctx.pce, ctx))
    const graph = collectAppGraph(encoder)
    const consumption = collectConsumption(encoder)
    let between = 0
    const read = await createConversationReader(
      ctx,
      encoder,
      args.complete,
    )({ name: 'mcp-infrastructure', window, decisions: JUDGED_DECISIONS }, (row) => {
      if (graph.add(row) !== null) between += row.count
      consumption.add(row)
    })
    const ranking = await workInTurns(
      rankInfrastructure(graph.finish(), { minConnections, productionEnvs }),
      ctx.signal,
    )
    const summary = {
      total_flows_analyzed: read.rows,
      app_to_app_flows: between,
      lookback_days: days,
      unique_apps: ranking.rows.length,
      unique_app_to_app_edges: ranking.edges,
      min_connections_filter: minConnections,
      tier_counts: ranking.tier_counts,
    }
    return showInfrastructure(
      { summary, reading: describeReading(read), rows: ranking.rows, consumption, productionEnvs },
      { chosen, top: args.top_n, detail: args.detail_level ?? 'standard', limits: ctx.limits },
    )
  },
})
