import { Type, type Static } from '@sinclair/typebox'
import type { Limits } from '../../schemas/config.js'
import { makeSafe } from '../../domain/text/escape-text.js'

/** Upper bound for the size of any answer, regardless of the configuration (T9). */
const MAX_RESPONSE_BYTES = 800_000

/**
 * Minimum size, in bytes, of a complete row in any answer; most of it is the href. From this size follows the maximum
 * number of rows that are fetched for a page.
 */
const MIN_ROW_BYTES = 100
/**
 * Minimum sizes, in bytes, of the parts of a row with selected fields: its brackets, and the name and value of each
 * field.
 */
const MIN_BRACKETS_BYTES = 3
const MIN_FIELD_BYTES = 12

/**
 * Returns the maximum size of an answer in bytes of JSON text. It is Infinity for an answer that is not sent but
 * computed for a confirmation, because the confirmation is bound to the complete answer.
 */
export function answerBudget(limits: Limits): number {
  if (limits.responseBudgetBytes === Infinity) return Infinity
  return Math.min(limits.responseBudgetBytes, MAX_RESPONSE_BYTES)
}

/**
 * Returns the maximum number of rows that can fit into an answer, at least 1. Fetching more rows for one page would be
 * wasted. If the caller selected `fields`, rows contain only these and are shorter.
 */
export function mostRowsThatFit(limits: Limits, fields?: readonly string[]): number {
  const chosen = MIN_BRACKETS_BYTES + MIN_FIELD_BYTES * (fields?.length ?? Infinity)
  return Math.max(1, Math.ceil(answerBudget(limits) / Math.min(chosen, MIN_ROW_BYTES)))
}

/** Returns the size of a value in bytes of UTF-8 JSON text as it will be sent, after escaping and clipping. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(makeSafe(value)) ?? 'null')
}

/**
 * Counts how many of the first rows fit into an answer together with its other fields (`envelope`). Returns at least
 * one if there are any, because a cursor could not advance past an answer without rows.
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
 * Shortens the answer of a write so that it fits the budget (D2). If lists were cut, a warning says so. Only the answer
 * is shortened, not what was written.
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

/** A list in an answer: the leading rows that may be shown, and the total number of rows. */
export interface Section<T = unknown> {
  rows: readonly T[]
  total: number
}

/** Output fields that say which lists were cut. */
export const Truncation = {
  truncated_sections: Type.Optional(Type.Array(Type.String(), { description: 'Lists that were cut' })),
  truncation_note: Type.Optional(Type.String({ description: 'How to see more' })),
}
export type Truncation = { [K in keyof typeof Truncation]?: Static<(typeof Truncation)[K]> }

/** How many rows an answer shows of its lists; `showSections` describes the fields. */
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
 * list, 25 by default. Detail `full` shows at most 2,000 rows, or 5,000 if there is only one list (`isAlone`). If
 * `asked` is given, it replaces these limits. If that many rows do not fit, all lists are first cut to the same length;
 * the remaining bytes are then filled with one row of each list in turn. The caller puts totals into `envelope`,
 * because they count all rows, whether shown or not. `hint` returns a sentence about how to see the rows that are not
 * shown. It receives the length of the longest list that was cut, and `isFull`, which is true if a list was cut because
 * of the budget. With `aim`, an answer in detail `standard` for which nothing was asked aims at this number of bytes,
 * which is less than the budget: it has what a person reads first, but at least a few rows of each list (D254).
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
 * Returns advice on how to see more rows. It recommends the higher level of detail, or `narrower` (a narrower question)
 * if that level is already in use or the answer has no room left.
 */
export const adviseOnRows = (detail: 'standard' | 'full', isFull: boolean, narrower: string): string =>
  detail === 'standard' && !isFull ? 'detail_level full shows more.' : narrower

/** Number of bytes kept free for the field `truncation_note`, because a number in it may get more digits. */
const SPARE_BYTES = 100

/**
 * Returns the number of rows of each list that fit. It begins with `limit` rows per list and `room` bytes left, and
 * adds one row of each list in turn until the next row of every list is too large.
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
 * Numbers that are tried in this order as the maximum number of rows per section, until the answer fits (T12). Fewer
 * than 5 rows are needed only with a small budget or very long names. The last number is 0, because totals without rows
 * are still a valid answer, while exceeding the budget is not.
 */
const SECTION_LADDER = [2_000, 1_000, 500, 250, 100, 50, 25, 10, 5, 2, 1, 0] as const
const STANDARD_LIMIT = 25
/** The size in bytes at which an overview aims if nothing more was asked for, and the rows per list that it has at least. */
export const OVERVIEW_BYTES = 6_000
const LEAST_ROWS = 5

/** Returns the maximum number of rows that a section can show at this level of detail. */
export const mostRowsShown = (detail: 'standard' | 'full'): number =>
  detail === 'full' ? SECTION_LADDER[0] : STANDARD_LIMIT

/** Maximum number of rows of a section that is the only section of an answer and therefore has the whole budget. */
const ALONE_LIMIT = 5_000
export const mostRowsAlone = (detail: 'standard' | 'full'): number => (detail === 'full' ? ALONE_LIMIT : STANDARD_LIMIT)

/**
 * Returns the largest number of rows per list, not above `widest`, with which the answer fits into `budget` bytes. If
 * none fits, returns the smallest number to try. `measure` returns the size of the answer with a given number of rows.
 */
function widestLimit(widest: number, budget: number, measure: (limit: number) => number): number {
  const rungs: number[] = SECTION_LADDER.filter((limit) => limit <= widest)
  if (!rungs.includes(widest)) rungs.unshift(widest)
  return rungs.find((limit) => measure(limit) <= budget) ?? (SECTION_LADDER[SECTION_LADDER.length - 1] as number)
}
