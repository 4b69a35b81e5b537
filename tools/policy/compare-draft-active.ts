import { Type, type Static } from '@sinclair/typebox'
import type { TypedPendingChange } from '../../pce-client/index.js'
import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { DetailLevel, StringEnum } from '../../schemas/common.js'
import { pagingInput } from '../../schemas/paging.js'
import { CHANGE_SUBSET_TYPES } from '../../schemas/pce/words.js'
import { PolicyChangeOut, type JudgedChange, type PolicyChange } from '../../schemas/policy-changes.js'
import { defineTool } from '../define.js'
import { answerPage, decodeCursor, sliceOfList } from '../answers/page-list.js'
import { updateTypeOf } from '../../domain/policy/choose-changes.js'
import { describeChanges } from '../../domain/policy/describe-changes.js'
import { selectPending, selectPendingBy } from '../../domain/policy/select-changes.js'
import { countOf } from '../../domain/text/describe-numbers.js'
import { quote } from '../../domain/text/escape-text.js'
import { BRIEFLY, briefChange, shareAuthor, shareBytes } from '../answers/brief-change.js'
import { answerBudget } from '../answers/byte-budget.js'
import { describeEffects, explainWords, worstFirst } from '../answers/explain-changes.js'
import { selectFields } from '../answers/select-fields.js'
import { trimChange } from '../answers/trim-change.js'

const NAME = 'compare-draft-active'
const DEFAULT_MAX_RESULTS = 100
/** Maximum number of changes on a page. It is limited because two objects must be read for each change. */
const MOST_RESULTS = 250
/** Number of bytes reserved for everything except the changes: other fields, explanations of effects, and a cursor. */
const ENVELOPE_BYTES = 2_500
/** Names of the update types in answers. */
const GROUPS: Record<string, string> = { create: 'created', update: 'updated', delete: 'deleted' }

const output = Type.Object({
  total_pending_changes: Type.Integer({ description: 'That match' }),
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
  updated_by: PolicyChangeOut.properties.updated_by,
  changes: Type.Record(Type.String(), Type.Array(Type.Partial(PolicyChangeOut)), {
    description: 'Of this page: created, updated, deleted, other; each with the worst first',
  }),
  left_out: Type.Optional(Type.String({ description: 'What each change lacks' })),
  truncated: Type.Boolean({ description: 'More follow' }),
  next_cursor: Type.Optional(Type.String({ description: 'Absent on the last page' })),
  status: Type.Optional(Type.String()),
  message: Type.Optional(Type.String({ description: 'Why there are no changes' })),
})

export default defineTool({
  name: NAME,
  summary: 'What provisioning would change: wider or narrower, by whom, what to review.',
  effect: 'read',
  reads: 'shown',
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
      href: Type.Optional(Type.String({ description: 'Only this', listed: '' })),
      name: Type.Optional(Type.String({ description: 'Exact', listed: '' })),
      author: Type.Optional(Type.String({ description: 'Name or href', listed: 'Last editor' })),
      detail_level: DetailLevel('full: all'),
      ...pagingInput(DEFAULT_MAX_RESULTS),
    },
    { additionalProperties: false },
  ),
  output,
  example: { resource_type: 'rule_sets' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { resource_type: filter = 'all', href, name, detail_level: detail = 'standard', cursor, fields } = args
    const maxResults = Math.min(args.max_results ?? DEFAULT_MAX_RESULTS, MOST_RESULTS)
    const author = args.author?.trim()
    const select = selectFields(fields, PolicyChangeOut)
    const filters = { resource_type: filter, href, name, author, detail }
    const position = await decodeCursor(ctx, NAME, filters, cursor)
    const pending = (await ctx.pce.getPendingPolicyChanges({ signal: ctx.signal })).map(withUpdateType)
    const type = filter === 'all' ? undefined : filter
    const chosen = await selectPending(ctx, pending, {
      ...(type !== undefined && { type }),
      ...(href !== undefined && { href }),
      ...(name !== undefined && { name }),
    })
    const isByAuthor = author !== undefined && chosen.length > 0
    const selected = isByAuthor
      ? await selectPendingBy(ctx, chosen, author)
      : { wanted: chosen, read: undefined, notes: [] }
    const { wanted, read } = selected
    const note = selected.notes.length > 0 ? selected.notes.join(' ') : undefined
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
      const what = [
        type && `of type ${type}`,
        href !== undefined && quote(href),
        name !== undefined && `named ${quote(name)}`,
      ]
        .filter(Boolean)
        .join(' ')
      const none = note ?? `Nothing ${what} is pending; ${countOf(pending.length, 'other change')}.`
      return { ...empty, message: none }
    }
    const slice = sliceOfList(wanted, position, maxResults)
    const most = answerBudget(ctx.limits) - ENVELOPE_BYTES
    const judged = await describeChanges(ctx, slice.items, read)
    const updateTypes = slice.items.map((one) => updateTypeOf(one))
    const brief = judged.map((change, at) => (detail === 'full' ? change : briefChange(change, updateTypes[at])))
    const isWhole = detail === 'full' || fields !== undefined
    const { by, changes: whole } = isWhole ? { by: undefined, changes: brief } : shareAuthor(brief)
    const changes: Record<string, Partial<PolicyChange>[]> = { created: [], updated: [], deleted: [] }
    const say = (shown: readonly JudgedChange[], isAll: boolean) => {
      const cut = shown.filter(({ omitted }) => omitted !== undefined).length
      const more = cut === 0 ? '' : ` ${cut} of them cut, see omitted: by href alone one is shown further.`
      return {
        ...facts,
        summary: `${countOf(shown.length, 'change')}${isAll ? '' : ' on this page'}. ${describeEffects(shown)}${more}`,
        ...(note !== undefined && { message: note }),
        meanings: explainWords(shown),
        ...(by !== undefined && { updated_by: by }),
        ...showAssumedBy(judged.slice(0, shown.length)),
        ...(detail === 'standard' && { left_out: BRIEFLY }),
      }
    }
    const shares =
      detail === 'full' ? whole.map(() => most) : shareBytes(whole.map(select), { ...say(whole, false), changes }, most)
    const described = whole.map((change, at) => trimChange(change, shares[at] as number))
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

/** Returns a pending change with the field `update_type`, because some releases call this field `change_type`. */
function withUpdateType(change: TypedPendingChange): TypedPendingChange {
  const { change_type: other } = change as { change_type?: TypedPendingChange['update_type'] }
  return other === undefined ? change : { update_type: other, ...change }
}

function groupOf(change: TypedPendingChange | undefined): string {
  return GROUPS[change?.update_type ?? ''] ?? 'other'
}
