import { Type } from '@sinclair/typebox'
import { DetailLevel } from '../../schemas/common.js'
import { ToolError } from '../../schemas/errors.js'
import { MAX_TRAFFIC_ROWS } from '../../schemas/pce/words.js'
import { SectionsInput } from '../../schemas/sections.js'
import { trafficInput } from '../../schemas/traffic-input.js'
import { TrafficSummaryOutput, showSummary } from '../answers/traffic/show-summary.js'
import { defineTool } from '../define.js'
import type { ToolContext } from '../../domain/call.js'
import { mostRowsAlone, mostRowsShown } from '../answers/byte-budget.js'
import { chooseSections } from '../answers/choose-sections.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createTrafficDecider } from '../../domain/policy/decide-traffic.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import { createFlowSummary, SECTION_NAMES } from '../../domain/traffic/summarize-flows.js'
import { loadLabels, type LabelIndex } from '../../domain/inventory/labels.js'
import { quote } from '../../domain/text/escape-text.js'
import { resolveTrafficFilters, resolveTrafficServices } from '../../domain/traffic/resolve-filters.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'

const DEFAULT_DAYS = 7
const DEFAULT_IDENTITY = ['app', 'env']

export default defineTool({
  name: 'get-traffic-flows-summary',
  summary: 'Traffic by process, to external destinations, blocked, between applications.',
  effect: 'read',
  reads: 'judged',
  toolset: 'traffic',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      ...windowInput(DEFAULT_DAYS),
      ...trafficInput('As in get-traffic-flows'),
      max_results: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_TRAFFIC_ROWS,
          default: MAX_TRAFFIC_ROWS,
          description: 'Row limit',
        }),
      ),
      identity_labels: Type.Optional(
        Type.Array(Type.String({ minLength: 1 }), {
          minItems: 1,
          maxItems: 10,
          default: DEFAULT_IDENTITY,
          description: 'Keys of app_to_app',
          listed: '',
        }),
      ),
      detail_level: DetailLevel('full: more rows'),
      ...SectionsInput(SECTION_NAMES),
      query_name: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 255,
          default: 'mcp-traffic-summary',
          description: 'Job name',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  output: TrafficSummaryOutput,
  example: { start_date: '2026-01-01', end_date: '2026-01-07', include_destinations: ['app=payments', 'env=prod'] },
  async handler(args, ctx) {
    const sections = chooseSections(args.sections, SECTION_NAMES)
    const { window } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const services = resolveTrafficServices(args)
    const filters = await resolveTrafficFilters(ctx.pce, args, ctx)
    const identityLabels = args.identity_labels ?? DEFAULT_IDENTITY
    const labels = await loadLabelsWith(identityLabels, ctx)
    const encoder = createFlowEncoder(labels)
    const summary = createFlowSummary(encoder, identityLabels)
    const by = args.decide_by ?? 'recorded'
    const decider = await createTrafficDecider(ctx, { encoder, labels }, by, args.policy_decisions)
    const read = await createFlowReader(
      ctx,
      encoder,
      args.complete,
    )(
      {
        name: args.query_name ?? 'mcp-traffic-summary',
        window,
        filters,
        services,
        ...decider.request,
        excludeWorkloadsFromIpListQuery: args.exclude_workloads_from_ip_list_query,
        maxResults: args.max_results,
      },
      summary.add,
    )
    const detail = args.detail_level ?? 'standard'
    const most = sections.isAlone ? mostRowsAlone(detail) : mostRowsShown(detail)
    const decided = decider.result()
    return showSummary(
      { summary: summary.finish(most, sections.has), read, decided, identityLabels, sections },
      detail,
      ctx.limits,
    )
  },
})

/**
 * Returns the list of labels, after checking that it has a label for each of these keys. Default keys may be missing.
 * Throws unknown_dimension if another key is missing even from a fresh list.
 */
async function loadLabelsWith(keys: readonly string[], ctx: ToolContext<true>): Promise<LabelIndex> {
  // The default keys are not checked, because the tool must also work on a PCE without env labels.
  const missing = (labels: LabelIndex) =>
    keys.filter((key) => labels.values(key).length === 0 && !DEFAULT_IDENTITY.includes(key))
  const recent = await loadLabels(ctx.pce, ctx)
  if (missing(recent).length === 0) return recent
  const fresh = await loadLabels(ctx.pce, ctx, 'fresh')
  const unknown = missing(fresh)
  if (unknown.length === 0) return fresh
  throw new ToolError('unknown_dimension', `No label has the key ${unknown.map(quote).join(', ')}.`, {
    unknown,
    available_dimensions: { labels: fresh.keys() },
  })
}
