import { Type } from '@sinclair/typebox'
import { StringEnum } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { MAX_TRAFFIC_ROWS } from '../../schemas/pce/traffic.js'
import { TrafficInput } from '../../schemas/traffic-input.js'
import { TrafficSummaryOutput } from '../../schemas/traffic-summary.js'
import { defineTool, type ToolContext } from '../define.js'
import { loadLabels, type LabelIndex } from '../support/load-labels.js'
import { runTrafficQuery } from '../support/run-traffic-query.js'
import { showSummary } from '../support/show-summary.js'
import { createFlowSummary } from '../support/summarize-flows.js'
import { resolveTrafficFilters } from '../support/traffic-filters.js'
import { parseTrafficServices } from '../support/traffic-services.js'
import { parseTrafficWindow } from '../support/traffic-window.js'

const DEFAULT_IDENTITY = ['app', 'env']

export default defineTool({
  name: 'get-traffic-flows-summary',
  area: 'traffic',
  summary:
    'Summarise observed traffic of a window: by process, to external destinations, blocked or potentially blocked, and between applications, with totals.',
  effect: 'read',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  input: Type.Object(
    {
      ...TrafficInput,
      identity_labels: Type.Optional(
        Type.Array(Type.String({ minLength: 1 }), {
          minItems: 1,
          maxItems: 10,
          default: DEFAULT_IDENTITY,
          description: 'Label keys that name an end in app_to_app',
        }),
      ),
      detail_level: Type.Optional(
        StringEnum(['standard', 'full'] as const, {
          default: 'standard',
          description: 'standard: at most 100 rows a section',
        }),
      ),
      query_name: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 255,
          default: 'mcp-traffic-summary',
          description: "Name of the PCE's job",
        }),
      ),
    },
    { additionalProperties: false },
  ),
  output: TrafficSummaryOutput,
  example: { start_date: '2026-01-01', end_date: '2026-01-07', include_destinations: ['app=payments', 'env=prod'] },
  async handler(args, ctx) {
    const window = parseTrafficWindow(args.start_date, args.end_date)
    const services = {
      include: parseTrafficServices('include_services', args.include_services),
      exclude: parseTrafficServices('exclude_services', args.exclude_services),
    }
    const filters = await resolveTrafficFilters(ctx.pce, args, ctx)
    const identityLabels = args.identity_labels ?? DEFAULT_IDENTITY
    const labels = await loadLabelsWith(identityLabels, ctx)
    const cap = args.max_results ?? MAX_TRAFFIC_ROWS
    const summary = createFlowSummary({ identityLabels, labels, keeps: filters.keeps })
    const query = await runTrafficQuery(
      ctx.pce,
      ctx,
      args.query_name ?? 'mcp-traffic-summary',
      {
        start_date: window.start,
        end_date: window.end,
        sources: filters.sources,
        destinations: filters.destinations,
        services,
        sources_destinations_query_op: 'and',
        policy_decisions: args.policy_decisions ?? [],
        exclude_workloads_from_ip_list_query: args.exclude_workloads_from_ip_list_query ?? true,
        max_results: cap,
      },
      (flows) => summary.add(flows),
    )
    const facts = {
      summary: summary.finish(),
      query,
      window,
      cap,
      identityLabels,
      appliedToRows: filters.appliedToRows,
    }
    return showSummary(facts, args.detail_level ?? 'standard', ctx.limits)
  },
})

/** The label list, in which every one of these keys occurs. Throws unknown_dimension otherwise, after a look at a fresh list. */
async function loadLabelsWith(keys: readonly string[], ctx: ToolContext<true>): Promise<LabelIndex> {
  // A PCE may have no env label yet; the default must work there too.
  const missing = (labels: LabelIndex) =>
    keys.filter((key) => labels.values(key).length === 0 && !DEFAULT_IDENTITY.includes(key))
  const recent = await loadLabels(ctx.pce, ctx)
  if (missing(recent).length === 0) return recent
  const fresh = await loadLabels(ctx.pce, ctx, 'fresh')
  const unknown = missing(fresh)
  if (unknown.length === 0) return fresh
  throw new ToolError('unknown_dimension', `No label has the key ${unknown.join(', ')}.`, {
    unknown,
    available_dimensions: { labels: fresh.keys() },
  })
}
