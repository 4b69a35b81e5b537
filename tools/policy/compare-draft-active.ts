import { Type, type Static } from '@sinclair/typebox'
import type { TypedPendingChange } from '../../pce-client/index.js'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { StringEnum } from '../../schemas/common.js'
import { pagingInput } from '../../schemas/paging.js'
import { CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import { PolicyChangeOut } from '../../schemas/policy-changes.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, sliceOfList } from '../answers/page-list.js'
import { describeChanges } from '../../domain/policy/describe-changes.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { answerBudget } from '../answers/byte-budget.js'
import { describeEffects, explainWords, worstFirst } from '../answers/explain-changes.js'
import { selectFields } from '../answers/select-fields.js'
import { trimChange } from '../answers/trim-change.js'

const NAME = 'compare-draft-active'
const DEFAULT_MAX_RESULTS = 100
/** Maximum page size. It is limited because each change requires reading two objects. */
const MOST_RESULTS = 250
/** Bytes reserved for the fields around the changes, explanations of effects, and a cursor. */
const ENVELOPE_BYTES = 2_500
/** Names of the update types in answers. */
const GROUPS: Record<string, string> = { create: 'created', update: 'updated', delete: 'deleted' }

const output = Type.Object({
  total_pending_changes: Type.Integer({ description: 'That match the filter' }),
  total_unfiltered: Type.Integer({ description: 'All' }),
  filter: Type.String({ description: 'Type asked for' }),
  created_count: Type.Integer({ description: 'New' }),
  updated_count: Type.Integer({ description: 'Changed' }),
  deleted_count: Type.Integer({ description: 'To be deleted' }),
  summary: Type.Optional(Type.String({ description: 'What this page does to permitted traffic, and what to review' })),
  meanings: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Of the words for effects and risks' }),
  ),
  ...AssumesOut,
  changes: Type.Record(Type.String(), Type.Array(Type.Partial(PolicyChangeOut)), {
    description: 'Of this page: created, updated, deleted, other; each with the worst first',
  }),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
  status: Type.Optional(Type.String()),
  message: Type.Optional(Type.String({ description: 'Why there are no changes' })),
})

export default defineTool({
  name: NAME,
  summary:
    'Show what provisioning would change, field by field: whether it widens or narrows, by whom, what needs review.',
  effect: 'read',
  toolset: 'provisioning',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      resource_type: Type.Optional(
        StringEnum([...CHANGE_SUBSET_TYPES, 'all'] as const, { default: 'all', description: 'Type' }),
      ),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { resource_type: 'rule_sets' },
  async handler(
    { resource_type: filter = 'all', cursor, max_results: maxResults = DEFAULT_MAX_RESULTS, fields },
    ctx,
  ): Promise<Static<typeof output>> {
    const select = selectFields(fields, PolicyChangeOut)
    const filters = { resource_type: filter }
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const pending = (await ctx.pce.getPendingPolicyChanges({ signal: ctx.signal })).map(withUpdateType)
    const wanted = pending.filter(({ type }) => filter === 'all' || type === filter)
    const count = (kind: string) => wanted.filter(({ update_type: updateType }) => updateType === kind).length
    const facts = {
      total_pending_changes: wanted.length,
      total_unfiltered: pending.length,
      filter,
      created_count: count('create'),
      updated_count: count('update'),
      deleted_count: count('delete'),
    }
    if (wanted.length === 0) {
      const empty = { ...facts, changes: {}, truncated: false }
      if (pending.length === 0) {
        return { ...empty, status: 'in_sync', message: 'Nothing is pending; draft and active policy are the same.' }
      }
      return { ...empty, message: `Nothing of type ${filter} is pending; ${countOf(pending.length, 'other change')}.` }
    }
    const slice = sliceOfList(wanted, position, Math.min(maxResults, MOST_RESULTS))
    const most = answerBudget(ctx.limits) - ENVELOPE_BYTES
    const judged = await describeChanges(ctx, slice.items)
    const described = judged.map((change) => trimChange(change, most))
    const changes: Record<string, Partial<(typeof described)[number]>[]> = { created: [], updated: [], deleted: [] }
    const say = (shown: typeof described, isAll: boolean) => ({
      ...facts,
      summary: `${countOf(shown.length, 'change')}${isAll ? '' : ' on this page'}. ${describeEffects(shown)}`,
      meanings: explainWords(shown),
      ...showAssumedBy(judged.slice(0, shown.length)),
    })
    const { rows, paging } = await answerPage(NAME, filters, slice, described.map(select), ctx, {
      ...say(described, false),
      changes,
    })
    const shown = described.slice(0, rows.length)
    const groups = new Map(shown.map((row, at) => [row, groupOf(slice.items[at])]))
    for (const row of worstFirst(shown)) (changes[groups.get(row) as string] ??= []).push(select(row))
    const { truncated, next_cursor: next } = paging
    return {
      ...say(shown, shown.length === wanted.length),
      changes,
      truncated,
      ...(next !== undefined && { next_cursor: next }),
    }
  },
})

/** Normalises a pending change, because some releases use the name change_type. */
function withUpdateType(change: TypedPendingChange): TypedPendingChange {
  const { change_type: other } = change as { change_type?: TypedPendingChange['update_type'] }
  return other === undefined ? change : { update_type: other, ...change }
}

function groupOf(change: TypedPendingChange | undefined): string {
  return GROUPS[change?.update_type ?? ''] ?? 'other'
}
