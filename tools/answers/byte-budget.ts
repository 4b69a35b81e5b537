import { Type, type Static } from '@sinclair/typebox'
import type { Limits } from '../../schemas/config.js'
import { makeSafe } from '../../domain/text/escape-text.js'

/** Upper bound for the size of any answer, regardless of the configuration (T9). */
const MAX_RESPONSE_BYTES = 800_000

/**
 * Minimum size, in bytes, of a complete row in any answer; most of it is the href. It determines how many rows are
 * fetched for a page.
 */
const MIN_ROW_BYTES = 100
/**
 * Minimum sizes, in bytes, of the parts of a row with selected fields: its brackets, and each field's name and value.
 */
const MIN_BRACKETS_BYTES = 3
const MIN_FIELD_BYTES = 12

/**
 * Returns the maximum size of an answer in bytes of JSON. It is Infinity for an answer that is computed for a
 * confirmation and never sent, because the confirmation covers the complete answer.
 */
export function answerBudget(limits: Limits): number {
  if (limits.responseBudgetBytes === Infinity) return Infinity
  return Math.min(limits.responseBudgetBytes, MAX_RESPONSE_BYTES)
}

/**
 * Returns the maximum number of rows that can fit into an answer, at least 1; fetching more for one page would be
 * pointless. If the caller selected `fields`, rows contain only these and are shorter.
 */
export function mostRowsThatFit(limits: Limits, fields?: readonly string[]): number {
  const chosen = MIN_BRACKETS_BYTES + MIN_FIELD_BYTES * (fields?.length ?? Infinity)
  return Math.max(1, Math.ceil(answerBudget(limits) / Math.min(chosen, MIN_ROW_BYTES)))
}

/** Returns the size of a value in bytes of UTF-8 JSON as it will be sent, after escaping and clipping. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(makeSafe(value)) ?? 'null')
}

/**
 * Counts how many of the first rows fit into an answer next to its other fields (`envelope`). If there are rows, at
 * least one counts as fitting, because a cursor could not advance past an answer without rows.
 */
export function countRowsThatFit(rows: readonly unknown[], envelope: unknown, limits: Limits): number {
  let left = answerBudget(limits) - jsonBytes(envelope)
  let count = 0
  for (const row of rows) {
    left -= jsonBytes(row) + 1
    if (left < 0) break
    count++
  }
  return Math.max(count, Math.min(1, rows.length))
}

/** Converts each object to an array of its values in the order of `columns`; a missing value becomes null (T9). */
export function rowsByColumn(columns: readonly string[], objects: readonly Record<string, unknown>[]): unknown[][] {
  return objects.map((object) => columns.map((column) => object[column] ?? null))
}

/** Maximum numbers of entries per list, tried in this order until the answer fits. */
const LADDER = [1_000, 300, 100, 30, 10, 3, 1, 0] as const
/** Number of bytes reserved for the part of an answer outside its rows, such as counts and a cursor. */
const ENVELOPE_BYTES = 2_000

/**
 * Shortens the answer of a write to fit the budget (D2). If lists were cut, a warning says so. What was written is not
 * affected.
 */
export function fitAnswer<T extends object>(answer: T, limits: Limits): T {
  return fit(answer, answerBudget(limits), (cut, most) => {
    const { warnings = [] } = answer as { warnings?: string[] }
    const said = `The answer is too large to show in full: each list is cut to ${most} entries.`
    return { ...cut, warnings: [...warnings, said] }
  })
}

/** Shortens a row of a list so that an answer with only this row fits the budget. `omitted` describes what was cut. */
export function fitRow<T extends object>(row: T, limits: Limits): T {
  return fit(row, answerBudget(limits) - ENVELOPE_BYTES, (cut, most) => ({
    ...cut,
    omitted: `Too large to show in full: at most ${most} entries per list.`,
  }))
}

function fit<T extends object>(value: T, budget: number, mark: (cut: T, most: number) => T): T {
  let shown = value
  for (const most of LADDER) {
    if (jsonBytes(shown) <= budget) break
    shown = mark(cutLists(value, most) as T, most)
  }
  return shown
}

function cutLists(value: unknown, most: number): unknown {
  if (Array.isArray(value)) return value.slice(0, most).map((item) => cutLists(item, most))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, cutLists(inner, most)]))
}

/** Returns the leading rows that fit into the given number of bytes of JSON text, but at least one. */
export function rowsWithin<T>(rows: readonly T[], bytes: number): T[] {
  let left = bytes
  const end = rows.findIndex((row) => (left -= jsonBytes(row) + 1) < 0)
  return end === -1 ? [...rows] : rows.slice(0, Math.max(1, end))
}

/** A list for an answer: the first rows, which may be shown, and the number of all rows. */
export interface Section<T = unknown> {
  rows: readonly T[]
  total: number
}

/** Output fields that name the lists that were cut. */
export const Truncation = {
  truncated_sections: Type.Optional(Type.Array(Type.String(), { description: 'Lists that were cut' })),
  truncation_note: Type.Optional(Type.String({ description: 'How to see more' })),
}
export type Truncation = { [K in keyof typeof Truncation]?: Static<(typeof Truncation)[K]> }

/** The options for how many rows of its lists an answer shows; `showSections` describes them. */
export interface ShowOptions {
  detail: 'standard' | 'full'
  limits: Limits
  hint: (limit: number, isFull: boolean) => string
  standard?: number
  isAlone?: boolean
  asked?: number | undefined
  aim?: number | undefined
}

type Shown<S> = { [K in keyof S]: Exclude<S[K], undefined> extends Section<infer T> ? T[] : never }

/**
 * Builds an answer with as many rows per list as fit the budget. Detail `standard` shows at most `standard` rows per
 * list, 25 by default. Detail `full` shows at most 2,000 rows, or 5,000 if there is only one list (`isAlone`). `asked`,
 * if given, replaces these limits. If that many rows do not fit, all lists are first cut to the same length, and the
 * remaining bytes are then filled with one row of each list in turn. Totals belong in `envelope`, because they count
 * all rows, shown or not. `hint` returns a sentence about how to see more rows. It receives the length of the longest
 * list that was cut, and `isFull`, which is true if a list was cut because of the budget. With `aim`, an answer at
 * detail `standard` without `asked` is limited to about this number of bytes, which is less than the budget, but it has
 * at least a few rows of each list (D254).
 */
export function showSections<E extends object, S extends Record<string, Section>>(
  envelope: E,
  sections: S,
  { detail, limits, hint, standard = STANDARD_LIMIT, isAlone = false, asked, aim }: ShowOptions,
): E & Shown<S> & Truncation {
  const named = Object.entries(sections)
  const most = asked ?? (detail === 'standard' ? standard : isAlone ? mostRowsAlone(detail) : SECTION_LADDER[0])
  const budget = answerBudget(limits)
  const target = aim === undefined || asked !== undefined || detail === 'full' ? budget : Math.min(aim, budget)
  const cut = (lengths: readonly number[]) => {
    const rows = named.map(([name, section], at) => [name, section.rows.slice(0, lengths[at])] as const)
    const shorter = rows.filter(([name, shown]) => shown.length < (sections[name]?.total ?? 0))
    const longest = Math.max(...shorter.map(([, shown]) => shown.length))
    const isShort = shorter.some(([name, shown]) => shown.length < Math.min(most, sections[name]?.rows.length ?? 0))
    const isFull = target === budget && isShort
    return {
      ...envelope,
      ...(Object.fromEntries(rows) as Shown<S>),
      ...(shorter.length > 0 && {
        truncated_sections: shorter.map(([name]) => name),
        truncation_note: hint(longest, isFull),
      }),
    }
  }
  const uniform = (limit: number) => named.map(() => limit)
  const widest = (bytes: number, from = most) => widestLimit(from, bytes, (tried) => jsonBytes(cut(uniform(tried))))
  const aimed = widest(target)
  const limit = aimed < LEAST_ROWS && target < budget ? widest(budget, Math.min(LEAST_ROWS, most)) : aimed
  const answer = cut(uniform(limit))
  if (limit >= most) return answer
  // Some bytes are kept free, because a number in `truncation_note` may get more digits.
  const room = target - jsonBytes(answer) - SPARE_BYTES
  const filled = cut(
    fillInTurn(
      named.map(([, { rows }]) => rows.slice(0, most)),
      limit,
      room,
    ),
  )
  return jsonBytes(filled) <= budget ? filled : answer
}

/**
 * Returns advice on how to see more rows: the higher level of detail, or `narrower` (a narrower question) if that level
 * is already in use or the answer is full.
 */
export const adviseOnRows = (detail: 'standard' | 'full', isFull: boolean, narrower: string): string =>
  detail === 'standard' && !isFull ? 'detail_level full shows more.' : narrower

/** Number of bytes kept free for the field `truncation_note`, because a number in it may get more digits. */
const SPARE_BYTES = 100

/**
 * Returns the number of rows of each list that fit. Beginning with `limit` rows per list and `room` bytes left, it adds
 * one row of each list in turn until the next row of every list is too large.
 */
function fillInTurn(lists: readonly (readonly unknown[])[], limit: number, room: number): number[] {
  const lengths = lists.map((rows) => Math.min(limit, rows.length))
  let left = room
  let open = lists.map((_rows, at) => at)
  while (open.length > 0) {
    open = open.filter((at) => {
      const row = lists[at]?.[lengths[at] ?? 0]
      const bytes = row === undefined ? Infinity : jsonBytes(row) + 1
      if (bytes > left) return false
      left -= bytes
      lengths[at] = (lengths[at] ?? 0) + 1
      return true
    })
  }
  return lengths
}

/**
 * Maximum numbers of rows per section, tried in this order until the answer fits (T12). Fewer than 5 are needed only
 * with a small budget or very long names. The last number is 0, because an answer with totals and no rows is still
 * valid, whereas one that exceeds the budget is not.
 */
const SECTION_LADDER = [2_000, 1_000, 500, 250, 100, 50, 25, 10, 5, 2, 1, 0] as const
const STANDARD_LIMIT = 25
/**
 * The size in bytes to which an overview is limited unless the caller asked for more, and its minimum number of rows
 * per list.
 */
export const OVERVIEW_BYTES = 6_000
const LEAST_ROWS = 5

/** Returns the maximum number of rows that a section can show at this level of detail. */
export const mostRowsShown = (detail: 'standard' | 'full'): number =>
  detail === 'full' ? SECTION_LADDER[0] : STANDARD_LIMIT

/** Maximum number of rows of a section if it is the only one in the answer, so that it has the whole budget. */
const ALONE_LIMIT = 5_000
export const mostRowsAlone = (detail: 'standard' | 'full'): number => (detail === 'full' ? ALONE_LIMIT : STANDARD_LIMIT)

/**
 * Returns the largest number of rows per list, at most `widest`, with which the answer fits into `budget` bytes. If
 * none fits, returns the smallest number to try. `measure` returns the size of the answer with a given number of rows.
 */
function widestLimit(widest: number, budget: number, measure: (limit: number) => number): number {
  const rungs: number[] = SECTION_LADDER.filter((limit) => limit <= widest)
  if (!rungs.includes(widest)) rungs.unshift(widest)
  return rungs.find((limit) => measure(limit) <= budget) ?? (SECTION_LADDER[SECTION_LADDER.length - 1] as number)
}
