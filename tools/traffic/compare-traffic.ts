import { Type, type Static } from '@sinclair/typebox'
import { classifyAddress } from '../../domain/policy/addresses.js'
import { createTrafficDecider } from '../../domain/policy/decide-traffic.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { chooseWindows } from '../../domain/traffic/choose-windows.js'
import { compareWindows } from '../../domain/traffic/compare-windows.js'
import { columnsOf, resolveGrouping, type Columns } from '../../domain/traffic/dimensions.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import type { FlowEnd } from '../../domain/traffic/flow-ends.js'
import { foldedPortColumn, pairColumns } from '../../domain/traffic/fold-ends.js'
import { createConversationReader, createFlowReader } from '../../domain/traffic/read-flows.js'
import { resolveTrafficFilters, resolveTrafficServices } from '../../domain/traffic/resolve-filters.js'
import { windowInput } from '../../domain/traffic/traffic-window.js'
import { watchAgents } from '../../domain/vens/watch-agents.js'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { DECIDE_BY } from '../../schemas/decided-traffic.js'
import { ServiceTextsInput, trafficInput } from '../../schemas/traffic-input.js'
import { mostRowsShown } from '../answers/byte-budget.js'
import { ComparisonOutput, showComparison } from '../answers/traffic/show-comparison.js'
import { defineTool } from '../define.js'

const DEFAULT_DAYS = 1
/** The first of the dynamic ports (RFC 6335), which programs get assigned arbitrarily. */
const FIRST_DYNAMIC_PORT = 49_152
/**
 * The columns that describe the end that reported a row. If traffic is compared by one of them, the reports of both
 * ends must not be merged.
 */
const OF_REPORTER = new Set([
  ...['process_name', 'windows_service_name', 'user_name', 'flow_direction', 'network', 'client_type'],
  ...['state', 'matched_rules', 'recorded_decision'],
])

/** The filters of a traffic query, without the option that only queries by IP list have. */
const { exclude_workloads_from_ip_list_query: _option, ...FILTERS } = trafficInput('As in get-traffic-flows')

export default defineTool({
  name: 'compare-traffic',
  summary: 'New, gone, risen and fallen traffic against an earlier window, by policy; default: since yesterday.',
  effect: 'read',
  reads: 'judged',
  toolset: 'traffic-plus',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 60,
    and: 'those of further parts of the queries, one for each rule set where the PCE keeps deny rules apart from it, and for long lists one more each',
  },
  input: Type.Object(
    {
      // The default is left out here because the tool's own description names it.
      ...windowInput(DEFAULT_DAYS, ''),
      before_start_date: Type.Optional(
        Type.String({ description: 'Compared with; default: as long, just before', listed: '' }),
      ),
      before_end_date: Type.Optional(Type.String({ description: 'Its end', listed: '' })),
      days_earlier: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 365, description: 'Or the same window so many days earlier', listed: '' }),
      ),
      ...FILTERS,
      ...ServiceTextsInput,
      decide_by: Type.Optional(
        StringEnum(DECIDE_BY.slice(1) as ['active', 'draft'], {
          default: 'active',
          description: 'By which policy',
          listed: '',
        }),
      ),
      group_by: Type.Optional(
        Type.Array(Type.String(), {
          minItems: 1,
          maxItems: 40,
          description: 'As in get-traffic-flows; default from, to (application or host), port, proto',
          listed: 'Default from, to, port, proto',
        }),
      ),
      fold_ports_from: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 65_536,
          default: FIRST_DYNAMIC_PORT,
          description: 'Ports that count as one; Linux: 32768',
          listed: '',
        }),
      ),
      detail_level: DetailLevel('full: more rows'),
    },
    { additionalProperties: false },
  ),
  output: ComparisonOutput,
  example: { start_date: '2026-01-08', end_date: '2026-01-14', include_destinations: ['app=payments', 'env=prod'] },
  async handler(args, ctx): Promise<Static<typeof ComparisonOutput>> {
    const { fold_ports_from: foldFrom = FIRST_DYNAMIC_PORT } = args
    const { decide_by: by = 'active', detail_level: detail = 'standard', group_by: dimensions } = args
    const windows = chooseWindows(ctx.now(), args, DEFAULT_DAYS)
    const services = resolveTrafficServices(args)
    const filters = await resolveTrafficFilters(ctx.pce, args, ctx)
    const { labels, names, optional, groupedBy } = await resolveGrouping(ctx, dimensions)
    const encoder = createFlowEncoder(labels)
    const columns: Columns =
      dimensions === undefined ? pairColumns(encoder, foldFrom, isPublic) : columnsOf(encoder, names)
    if (columns['port'] !== undefined) columns['port'] = foldedPortColumn(foldFrom)
    const decider = await createTrafficDecider(ctx, { encoder, labels }, by, args.policy_decisions)
    const agents = watchAgents(ctx)
    const comparison = compareWindows({
      encoder,
      columns,
      windows,
      reportedIn: ({ workload }, which) => {
        const { window } = windows[which]
        const end = Math.min(Date.parse(window.end), ctx.now())
        return workload === null ? null : agents.reportedIn(workload, { start: Date.parse(window.start), end })
      },
      isIdle: ({ workload }) => workload !== null && agents.isIdle(workload),
    })
    const { prepare, ...decisions } = decider.request
    const create = Object.keys(columns).some((name) => OF_REPORTER.has(name))
      ? createFlowReader
      : createConversationReader
    const reader = create(ctx, encoder, args.complete)
    const readWindow = (which: 'before' | 'now') =>
      reader(
        {
          name: `mcp-compare-${which}`,
          window: windows[which].window,
          filters,
          services,
          ...decisions,
          prepare: async (ends) => {
            const occurring = ends && [...ends]
            await prepare?.(occurring)
            await agents.look(occurring && managedOf(occurring))
          },
        },
        (row) => comparison.add(which, row),
      )
    const before = await readWindow('before')
    const now = await readWindow('now')
    const isCut = { before: before.truncated, now: now.truncated }
    const found = await workInTurns(comparison.finish(mostRowsShown(detail), isCut), ctx.signal)
    const isEmpty = (name: string) =>
      optional.has(name) && Object.values(found.pairs).every((pairs) => pairs.every(({ keys }) => keys[name] === null))
    return showComparison(
      {
        comparison: found,
        windows,
        read: { before, now },
        decided: decider.result(),
        names: Object.keys(columns).filter((name) => !isEmpty(name)),
        groupedBy,
        foldFrom: columns['port'] === undefined ? null : foldFrom,
        isByDefault: dimensions === undefined,
        agentNotes: agents.notes(),
      },
      detail,
      ctx.limits,
    )
  },
})

const isPublic = (address: string): boolean => classifyAddress(address) === 'public'

/** Returns the managed workloads among the given ends of traffic. */
const managedOf = (ends: readonly FlowEnd[]): ReadonlySet<string> =>
  new Set(ends.flatMap(({ workload, managed }) => (managed && workload !== null ? [workload] : [])))
