import type { FieldChange, JudgedChange, PolicyChange } from '../../schemas/policy-changes.js'
import { differs, keyOfItem } from '../../domain/policy/diff-fields.js'
import { jsonBytes } from './byte-budget.js'

/** Maximum numbers of rules, and of items per list, tried in this order until a change that is too large fits. */
const LADDER = [Infinity, 1_000, 300, 100, 30, 20, 10, 7, 5, 4, 3, 2, 1, 0] as const

/**
 * Shortens a change to at most `most` bytes, unless its names alone are longer. First, lists are reduced to the items
 * that differ between draft and active. If this is not enough, lists and rules are cut, and `omitted` says so. Effect
 * and risks still describe the complete change. The assumptions behind them (`assumes`) are left out, because the
 * answer lists them once for all changes.
 */
export function trimChange({ assumes: _assumes, ...change }: JudgedChange, most: number): PolicyChange {
  if (jsonBytes(change) <= most) return change
  const fields = change.fields?.map(onlyDifferent)
  const rules = change.rules?.map((rule) => ({
    ...rule,
    ...(rule.fields !== undefined && { fields: rule.fields.map(onlyDifferent) }),
  }))
  const total = rules?.length ?? 0
  let trimmed: PolicyChange = change
  for (const limit of LADDER) {
    const cut = (list: readonly FieldChange[]) => list.map((field) => cutLists(field, limit))
    const said = [
      `lists show the items that differ${limit === Infinity ? '' : `, ${limit} at most`}`,
      ...(total > limit ? [`${limit} of ${total} rules are shown`] : []),
    ]
    trimmed = {
      ...change,
      ...(fields !== undefined && { fields: cut(fields) }),
      ...(rules !== undefined && {
        rules: rules.slice(0, limit).map((rule) => ({
          ...rule,
          ...(rule.fields !== undefined && { fields: cut(rule.fields) }),
        })),
      }),
      omitted: `Too large to show in full: ${said.join('; ')}.`,
    }
    if (jsonBytes(trimmed) <= most) break
  }
  return trimmed
}

/**
 * Maximum size of one change in an answer with several: the available space divided by SHARE_OF_ANSWER, but at least
 * LEAST_OF_ANSWER bytes.
 */
const SHARE_OF_ANSWER = 4
const LEAST_OF_ANSWER = 500

/** Shortens one of several changes in an answer that has `room` bytes for all of them. */
export const trimAmongOthers = (change: JudgedChange, room: number): PolicyChange =>
  trimChange(change, Math.max(LEAST_OF_ANSWER, room / SHARE_OF_ANSWER))

/**
 * Returns a field with the items that only one of its two lists has and, if it was counted, the number of items that
 * both have. A field without two lists stays as it is.
 */
export function onlyDifferent({ field, draft, active, ...counted }: FieldChange): FieldChange {
  if (!Array.isArray(draft) || !Array.isArray(active)) return { field, draft, active, ...counted }
  const without = (items: unknown[], others: unknown[]) => {
    const known = new Set(others.map(keyOfItem))
    return items.filter((item) => !known.has(keyOfItem(item)))
  }
  const [ours, theirs] = [without(draft, active), without(active, draft)]
  // If two lists differ only in how often an item occurs, neither has an item that the other lacks, so both are shown
  // completely.
  return differs(ours, theirs)
    ? { field, draft: ours, active: theirs, ...counted }
    : { field, draft, active, ...counted }
}

function cutLists({ field, draft, active, ...counted }: FieldChange, limit: number): FieldChange {
  const cut = (value: unknown): unknown => (Array.isArray(value) ? (value as unknown[]).slice(0, limit) : value)
  return { field, draft: cut(draft), active: cut(active), ...counted }
}
