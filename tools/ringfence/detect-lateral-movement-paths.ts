import { Type, type Static } from '@sinclair/typebox'
import { Count, StringEnum, Text } from '../../schemas/common.js'
import { defineTool } from '../define.js'
import { KNOWN_DECISIONS } from '../../domain/traffic/applications.js'
import { describeReading, Reading, createFlowReader } from '../../domain/traffic/read-flows.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { lookbackDays, lookbackWindow } from '../../domain/traffic/traffic-window.js'
import { collectAppGraph, collectEdgePorts } from '../../domain/dependency-map/collect-app-graph.js'
import { MovementLists, showMovement } from '../answers/dependency-map/show-movement.js'
import { matchesFilter, searchMovement, type AppFilter } from '../../domain/dependency-map/search-movement.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'
import { Truncation } from '../answers/byte-budget.js'

const LOOKBACK_DAYS = 30
const MAX_HOPS = 4

const output = Type.Object({
  lookback_days: Type.Integer(),
  total_apps: Count('With traffic to or from another application, even if blocked'),
  app_to_app_flows: Count('Rows between two applications'),
  total_edges: Count('Not blocked'),
  blocked_edges: Count('Every flow blocked: not used'),
  articulation_points: Count('Applications that link otherwise separate parts'),
  ...MovementLists,
  recommendation: Text('What to do first'),
  message: Type.Optional(Type.String()),
  ...Reading,
  ...Truncation,
})

export default defineTool({
  name: 'detect-lateral-movement-paths',
  area: 'ringfence',
  summary: 'Where an intruder could go: applications that bridge others, reach of each, shortest paths.',
  effect: 'read',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      app_name: Type.Optional(Type.String({ minLength: 1, description: 'Start' })),
      env_name: Type.Optional(Type.String({ minLength: 1, description: 'Start' })),
      lookback_days: lookbackDays(LOOKBACK_DAYS),
      max_hops: Type.Optional(Type.Integer({ minimum: 1, maximum: 10, default: MAX_HOPS, description: 'Of a path' })),
      detail_level: Type.Optional(
        StringEnum(['standard', 'full'] as const, { default: 'standard', description: 'full: more rows' }),
      ),
    },
    { additionalProperties: false },
  ),
  output,
  example: { app_name: 'payments', env_name: 'prod', max_hops: 3 },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const days = args.lookback_days ?? LOOKBACK_DAYS
    const findStart = async (): Promise<AppFilter> => {
      const labels = await resolveApplication(ctx, { app_name: args.app_name, env_name: args.env_name })
      return Object.fromEntries(labels.map(({ key, value }) => [key, value]))
    }
    let start = await findStart()
    const encoder = createFlowEncoder(await loadLabels(ctx.pce, ctx))
    const graph = collectAppGraph(encoder)
    const ports = collectEdgePorts()
    let between = 0
    const blocked = encoder.dictionaries.decision.code('blocked')
    const read = await createFlowReader(ctx, encoder)(
      { name: 'mcp-lateral-movement', window: lookbackWindow(ctx.now(), days), decisions: KNOWN_DECISIONS },
      (row) => {
        const edge = graph.add(row)
        if (edge === null) return
        between++
        if (row.decision !== blocked) ports.add(edge, row)
      },
    )
    const edges = graph.finish()
    const hasStart = Object.keys(start).length > 0
    if (hasStart && !edges.nodes.some((node) => matchesFilter(node, start))) {
      // Flows carry current names, and the label may have been renamed since the cached list was read.
      await loadLabels(ctx.pce, ctx, 'fresh')
      start = await findStart()
    }
    const maxHops = args.max_hops ?? MAX_HOPS
    const found = await searchMovement(edges, start, maxHops, ctx.signal)
    return showMovement(
      { days, between, found, start, maxHops, ports, reading: describeReading(read) },
      { detail: args.detail_level ?? 'standard', limits: ctx.limits },
    )
  },
})
