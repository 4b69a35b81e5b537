import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, StringEnum } from '../../schemas/common.js'
import { pagingInput, PagingOutput } from '../../schemas/paging.js'
import { TrafficCounts } from '../../schemas/traffic-counts.js'
import { defineTool } from '../define.js'
import { readEvidence } from '../../domain/hygiene/evidence-of-twins.js'
import { findTwins, TWIN_KINDS, type TwinKind } from '../../domain/hygiene/find-twins.js'
import { readMachines } from '../../domain/hygiene/known-machines.js'
import { loadLabels } from '../../domain/inventory/labels.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { workInTurns } from '../../domain/text/pace-work.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { countRowsThatFit } from '../answers/byte-budget.js'
import { listedOf, MEMBER_COLUMNS, showTwins, TwinsOut } from '../answers/hygiene/show-twins.js'
import { decodeCursor, encodeCursor } from '../answers/page-list.js'

const NAME = 'find-duplicate-workloads'
const DEFAULT_RESULTS = 6
/** Maximum number of groups on a page. It is limited because the traffic query lists all workloads in them. */
const MOST_RESULTS = 30
const DEFAULT_DAYS = 30
/** Number of bytes that are kept free for a cursor. */
const CURSOR_BYTES = 400

const output = Type.Object({
  summary: Type.String({ description: 'What was found' }),
  workloads_total: Count('Workloads that were compared; Kubernetes workloads are not among them'),
  groups_total: Count('Groups that match, shown or not'),
  counts: Counts('All groups, by kind'),
  member_columns: Type.Array(Type.String(), { description: 'Of members; rules_naming_it: in draft or active' }),
  groups: Type.Array(TwinsOut, { description: 'Most harmful first' }),
  truncated: PagingOutput.truncated,
  next_cursor: PagingOutput.next_cursor,
  window: Type.Optional(TrafficCounts.window),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'What is not known' })),
})

export default defineTool({
  name: NAME,
  summary: 'Workloads that may be one machine, with the policy and traffic of each, which to keep and why.',
  effect: 'read',
  reads: 'shown',
  toolset: 'inventory-plus',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  pceRequests: {
    atMost: 60,
    and: 'two for each rule set where the release keeps deny rules apart',
  },
  input: Type.Object(
    {
      kinds: Type.Optional(
        Type.Array(StringEnum(TWIN_KINDS), { minItems: 1, maxItems: 3, description: 'Default: all', listed: '' }),
      ),
      ...windowInput(DEFAULT_DAYS),
      max_results: pagingInput(DEFAULT_RESULTS).max_results,
      cursor: Type.Optional(Type.String({ description: 'next_cursor' })),
    },
    { additionalProperties: false },
  ),
  output,
  example: { kinds: ['shadow'] },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { cursor, max_results: most = DEFAULT_RESULTS, ...question } = args
    const { window } = chooseWindow(ctx.now(), question, DEFAULT_DAYS)
    const { offset } = await decodeCursor(ctx, NAME, question, cursor)
    const index = await loadLabels(ctx.pce, ctx)
    ctx.progress({ progress: 0, total: 2, message: 'Reading all workloads' })
    const machines = await readMachines(ctx)
    const all = await workInTurns(findTwins(machines), ctx.signal)
    const counts = Object.fromEntries(TWIN_KINDS.map((kind) => [kind, all.filter((one) => one.kind === kind).length]))
    const kinds = new Set<TwinKind>(args.kinds ?? TWIN_KINDS)
    const wanted = all.filter(({ kind }) => kinds.has(kind))
    const page = wanted.slice(offset, offset + Math.min(most, MOST_RESULTS))
    ctx.progress({ progress: 1, total: 2, message: 'Reading what hangs on them' })
    const members = [...new Map(page.flatMap(listedOf).map((one) => [one.href, one])).values()]
    const evidence =
      members.length === 0 ? null : await readEvidence(ctx, members, index, { window, name: 'mcp-duplicate-workloads' })
    const rows = evidence === null ? [] : page.map((one) => showTwins(one, evidence.of))
    const warnings = evidence?.warnings ?? []
    const facts = {
      summary: summarise(counts as Record<TwinKind, number>, machines.length),
      workloads_total: machines.length,
      groups_total: wanted.length,
      counts,
      member_columns: MEMBER_COLUMNS,
    }
    const tail = { ...(rows.length > 0 && { window }), ...(warnings.length > 0 && { warnings }) }
    const kept = countRowsThatFit(rows, [facts, tail, ' '.repeat(CURSOR_BYTES)], ctx.limits)
    const next = { offset: offset + kept, after: null, within: null }
    const more = next.offset < wanted.length ? await encodeCursor(ctx, NAME, question, next) : undefined
    return {
      ...facts,
      groups: rows.slice(0, kept),
      truncated: more !== undefined,
      ...(more !== undefined && { next_cursor: more }),
      ...tail,
    }
  },
})

function summarise({ shadow, unmanaged, managed }: Record<TwinKind, number>, total: number): string {
  if (shadow + unmanaged + managed === 0)
    return `No two of ${countOf(total, 'workload')} share an address, a host name or a name.`
  const parts = [
    ...(shadow > 0 ? [`${countOf(shadow, 'group')} in which an unmanaged workload shadows a managed host`] : []),
    ...(unmanaged > 0 ? [`${countOf(unmanaged, 'group')} of unmanaged workloads`] : []),
    ...(managed > 0 ? [`${countOf(managed, 'group')} of managed hosts`] : []),
  ]
  return `Among ${countOf(total, 'workload')}: ${parts.join(', ')}. Nothing is deleted or merged: decide for each.`
}
