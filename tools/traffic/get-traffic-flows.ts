import { Type, type Static } from '@sinclair/typebox'
import { LONG_ROWS, MAX_PAGE, PagingInput, usualSize } from '../../schemas/paging.js'
import { FILTER_FORMS, trafficInput } from '../../schemas/traffic-input.js'
import type { Limits } from '../../schemas/config.js'
import { defineTool } from '../define.js'
import { createFlowEncoder } from '../../domain/traffic/encode-flow.js'
import { createTrafficDecider } from '../../domain/policy/decide-traffic.js'
import { createFlowReader } from '../../domain/traffic/read-flows.js'
import { groupRows, type Grouping } from '../../domain/traffic/group-rows.js'
import { columnsOf, DEFAULT_GROUPING, isLabelColumn, resolveGrouping } from '../../domain/traffic/dimensions.js'
import { findFixedColumns } from '../../domain/traffic/find-fixed-columns.js'
import { decodeCursor, encodeCursor } from '../answers/page-list.js'
import { bestDivisions, showTotals } from '../answers/tally-list.js'
import { FlowTableOutput, showFlowTable } from '../answers/traffic/show-flow-table.js'
import { resolveTrafficFilters, resolveTrafficServices } from '../../domain/traffic/resolve-filters.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'

const NAME = 'get-traffic-flows'
const DEFAULT_DAYS = 7
/**
 * Frequently needed dimensions that the description names besides the default ones. The error for an unknown dimension
 * lists all.
 */
const FURTHER = ['source_app', 'dest_app', 'src_KEY', 'dst_KEY', 'dst_fqdn', 'flow_direction']

export default defineTool({
  name: NAME,
  summary: 'Traffic by chosen dimensions, busiest first. Overview: get-traffic-flows-summary.',
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
      ...trafficInput(FILTER_FORMS),
      group_by: Type.Optional(
        Type.Array(Type.String(), {
          minItems: 1,
          maxItems: 40,
          description: `Default ${DEFAULT_GROUPING.join(', ')}. Also ${FURTHER.join(', ')}`,
        }),
      ),
      max_results: usualSize(
        Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: 'Groups shown', listed: '' }),
        LONG_ROWS,
      ),
      cursor: PagingInput.cursor,
      query_name: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 255,
          default: 'mcp-traffic-query',
          description: 'Job name',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  output: FlowTableOutput,
  example: {
    start_date: '2026-01-01',
    end_date: '2026-01-07',
    include_destinations: ['app=payments', 'env=prod'],
    group_by: ['source_app', 'port', 'proto', 'policy_decision'],
  },
  async handler(args, ctx): Promise<Static<typeof FlowTableOutput>> {
    const { window } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const { cursor, max_results: most = LONG_ROWS, query_name: _name, decide_by: by = 'recorded', ...asked } = args
    // The cursor is bound to absolute dates: a window relative to the present would be another one tomorrow and would
    // order the groups differently.
    const question = { ...asked, window, ...(by !== 'recorded' && { decide_by: by }) }
    const { offset, after } = await decodeCursor(ctx, NAME, question, cursor)
    const services = resolveTrafficServices(args)
    const filters = await resolveTrafficFilters(ctx.pce, args, ctx)
    const { labels, names, optional, groupedBy } = await resolveGrouping(ctx, args.group_by)
    const encoder = createFlowEncoder(labels)
    const grouping = groupRows<Keys>(columnsOf(encoder, names))
    const decider = await createTrafficDecider(ctx, { encoder, labels }, by, args.policy_decisions)
    const read = await createFlowReader(
      ctx,
      encoder,
      args.complete,
    )(
      {
        name: args.query_name ?? 'mcp-traffic-query',
        window,
        filters,
        services,
        ...decider.request,
        excludeWorkloadsFromIpListQuery: args.exclude_workloads_from_ip_list_query,
      },
      grouping.add,
    )
    const { total, groups } = grouping.busiest(offset + most)
    // Every page runs the query again. So the cursor contains figures that show whether the traffic has changed since
    // the previous page (D79).
    const mark = `${read.pceFlows} ${total} ${connectionsOf(grouping)}${decider.mark()}`
    const cursorAt = (next: number) => encodeCursor(ctx, NAME, question, { offset: next, after: mark, within: null })
    const sample = (await cursorAt(total)) ?? ''
    const fixed = args.group_by === undefined ? findFixedColumns(names, grouping, { ...args, filters }, labels) : {}
    const shownNames = names.filter(
      (name) => !Object.hasOwn(fixed, name) && (!optional.has(name) || hasValues(grouping, name)),
    )
    const table = {
      read,
      decided: decider.result(),
      names: shownNames,
      fixed,
      totals: offset === 0 && total > groups.length ? sumByColumn(grouping, shownNames, ctx.limits) : {},
      groups: groups.slice(offset),
      total,
      groupedBy,
      offset,
      hasMoved: after !== null && after !== mark,
    }
    const { shown, answer } = showFlowTable(table, sample, ctx.limits)
    const next = shown < total ? await cursorAt(shown) : undefined
    return { ...answer, ...(next !== undefined && { next_cursor: next }) }
  },
})

type Keys = Record<string, string | number | null>

/** Returns the number of connections of all groups, including the groups that are not shown. */
function connectionsOf(grouping: Grouping<Keys>): number {
  let sum = 0
  for (let group = 0; group < grouping.size; group++) sum += grouping.connections(group)
  return sum
}

/** Maximum number of columns, besides the decision, by which connections are summed. */
const MOST_DIVISIONS = 2

/** Returns the connections of all groups by policy decision, and by those labels or ports that break them down best. */
function sumByColumn(grouping: Grouping<Keys>, names: readonly string[], limits: Limits) {
  const sums = (name: string) => {
    const values = new Map<string | number | null, number>()
    for (let group = 0; group < grouping.size; group++) {
      const value = grouping.value(group, name) ?? null
      values.set(value, (values.get(value) ?? 0) + grouping.connections(group))
    }
    return [name, values] as const
  }
  const decision = names.filter((name) => name === 'policy_decision').map(sums)
  const others = names.filter((name) => name === 'port' || isLabelColumn(name)).map(sums)
  return showTotals(new Map([...decision, ...bestDivisions(new Map(others), MOST_DIVISIONS)]), limits)
}

/** Returns true if any group, including the groups that are not shown, has a value in the column. */
function hasValues(grouping: Grouping<Keys>, name: string): boolean {
  for (let group = 0; group < grouping.size; group++) if (grouping.value(group, name) !== null) return true
  return false
}
