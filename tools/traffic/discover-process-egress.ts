import { Type, type Static } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import { LabelReference } from '../../schemas/label-reference.js'
import { MAX_TRAFFIC_ROWS } from '../../schemas/pce/words.js'
import { SectionsInput } from '../../schemas/sections.js'
import { CompleteInput, DecisionsInput } from '../../schemas/traffic-input.js'
import { defineTool } from '../define.js'
import { chooseSections } from '../answers/choose-sections.js'
import { EGRESS_PARTS, EgressOutput, showEgress } from '../answers/traffic/show-egress.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createEgressFinder } from '../../domain/traffic/find-egress.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { resolveTrafficFilters } from '../../domain/traffic/resolve-filters.js'
import { trimBlanks } from '../../domain/text/escape-text.js'

const DEFAULT_DAYS = 7
const DEFAULT_FINDINGS = 20
/** Maximum numbers of processes and of destinations named in a row, unless it is the answer's only part. */
const MOST_NAMED = 5

export default defineTool({
  name: 'discover-process-egress',
  summary: 'Processes talking to destinations outside this PCE, with likely providers.',
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
      process: Type.Optional(Type.Array(Type.String(), { maxItems: 100, description: 'Parts of paths' })),
      include_sources: Type.Optional(
        Type.Array(Type.Union([...LabelReference.anyOf, Type.Array(LabelReference)]), {
          maxItems: 200,
          description: 'As in get-traffic-flows',
        }),
      ),
      include_inbound: Type.Optional(
        Type.Boolean({ default: false, description: "Also destinations' records", listed: '' }),
      ),
      only_named_processes: Type.Optional(Type.Boolean({ default: true, description: 'false: also without process' })),
      policy_decisions: DecisionsInput,
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1000, default: DEFAULT_FINDINGS, description: 'Rows to show', listed: '' }),
      ),
      max_results: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_TRAFFIC_ROWS,
          default: MAX_TRAFFIC_ROWS,
          description: 'Row limit',
        }),
      ),
      ...SectionsInput(EGRESS_PARTS),
      ...CompleteInput,
    },
    { additionalProperties: false },
  ),
  output: EgressOutput,
  example: { lookback_days: 30, process: ['curl', 'chrome.exe'], include_sources: ['env=prod'] },
  async handler(args, ctx): Promise<Static<typeof EgressOutput>> {
    const chosen = chooseSections(args.sections, EGRESS_PARTS)
    const { window } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const processes = (args.process ?? []).map(trimBlanks)
    if (processes.includes(''))
      throw new ToolError('invalid_argument', 'process has an empty entry, which would match every process.', {
        argument: 'process',
      })
    const resolved = await resolveTrafficFilters(ctx.pce, args, ctx)
    const appliedToRows = [...resolved.appliedToRows, ...(processes.length > 0 ? ['process'] : [])]
    const filters = { ...resolved, appliedToRows }
    const encoder = createFlowEncoder(await loadLabels(ctx.pce, ctx))
    const egress = createEgressFinder(encoder, {
      processes,
      includeInbound: args.include_inbound ?? false,
      onlyNamed: args.only_named_processes ?? true,
    })
    const read = await createFlowReader(
      ctx,
      encoder,
      args.complete,
    )(
      {
        name: 'mcp-process-egress',
        window,
        filters,
        // The PCE's own filter is not used, because it may be case-sensitive (P25) and would then leave out wanted
        // rows.
        services: { include: [], exclude: [] },
        decisions: args.policy_decisions,
        excludeWorkloadsFromIpListQuery: false,
        maxResults: args.max_results,
      },
      (row) => egress.add(row),
    )
    const limit = args.limit ?? DEFAULT_FINDINGS
    const named = processes.length > 0
    const filtered = Boolean(args.include_sources?.length) || Boolean(args.policy_decisions?.length)
    const found = await workInTurns(egress.finish(limit, chosen.isAlone ? Infinity : MOST_NAMED), ctx.signal)
    return showEgress(found, read, { named, filtered, chosen, limits: ctx.limits })
  },
})
