import type { FieldChange, PolicyChange } from '../../schemas/policy-changes.js'
import { differs } from '../../domain/policy/diff-fields.js'
import { jsonBytes } from './byte-budget.js'

/** How many rules, and items of a list, a change that is too large shows; the first that fits is taken. */
const LADDER = [Infinity, 1_000, 300, 100, 30, 10, 3, 1, 0] as const

/**
 * A change in at most `most` bytes, as far as names allow: one that is larger shows of its lists the items that differ only, then
 * fewer of them and of its rules, and says so. What it does to traffic and its risks stay those of the whole.
 */
export function trimChange(change: PolicyChange, most: number): PolicyChange {
  if (jsonBytes(change) <= most) return change
  const fields = change.fields?.map(onlyDifferent)
  const rules = change.rules?.map((rule) => ({ ...rule, fields: rule.fields.map(onlyDifferent) }))
  const total = rules?.length ?? 0
  let trimmed = change
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
        rules: rules.slice(0, limit).map((rule) => ({ ...rule, fields: cut(rule.fields) })),
      }),
      omitted: `Too large to show in full: ${said.join('; ')}.`,
    }
    if (jsonBytes(trimmed) <= most) break
  }
  return trimmed
}

/** Of one change among others; the whole answer has its own budget. */
const SHARE_OF_ANSWER = 4
const LEAST_OF_ANSWER = 500

/** A change as one of several in an answer that has `room` bytes for all of them. */
export const trimAmongOthers = (change: PolicyChange, room: number): PolicyChange =>
  trimChange(change, Math.max(LEAST_OF_ANSWER, room / SHARE_OF_ANSWER))

function onlyDifferent({ field, draft, active }: FieldChange): FieldChange {
  if (!Array.isArray(draft) || !Array.isArray(active)) return { field, draft, active }
  const without = (items: unknown[], others: unknown[]) => {
    const known = new Set(others.map((other) => JSON.stringify(other)))
    return items.filter((item) => !known.has(JSON.stringify(item)))
  }
  const [ours, theirs] = [without(draft, active), without(active, draft)]
  // Lists that differ in nothing but how often an item stands in them are left as they are.
  return differs(ours, theirs) ? { field, draft: ours, active: theirs } : { field, draft, active }
}

function cutLists({ field, draft, active }: FieldChange, limit: number): FieldChange {
  const cut = (value: unknown): unknown => (Array.isArray(value) ? (value as unknown[]).slice(0, limit) : value)
  return { field, draft: cut(draft), active: cut(active) }
}
