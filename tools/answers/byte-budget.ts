import { Type, type Static } from '@sinclair/typebox'
import type { Limits } from '../../schemas/config.js'
import { makeSafe } from '../../domain/text/escape-text.js'

/** No answer is larger than this, whatever the configuration says (T9). */
const MAX_RESPONSE_BYTES = 800_000

/** No whole row of any tool is shorter: an href alone takes most of it. Bounds how much is worth fetching for one answer. */
const MIN_ROW_BYTES = 100
/** Of a row with chosen fields alone: its brackets, and a field with its name or value. */
const MIN_BRACKETS_BYTES = 3
const MIN_FIELD_BYTES = 12

/** Bytes of JSON text one answer may take. */
export function answerBudget(limits: Limits): number {
  return Math.min(limits.responseBudgetBytes, MAX_RESPONSE_BYTES)
}

/** More rows than this cannot fit an answer, so fetching more for one page is wasted. At least 1. `fields`: the row has these alone. */
export function mostRowsThatFit(limits: Limits, fields?: readonly string[]): number {
  const chosen = MIN_BRACKETS_BYTES + MIN_FIELD_BYTES * (fields?.length ?? Infinity)
  return Math.max(1, Math.ceil(answerBudget(limits) / Math.min(chosen, MIN_ROW_BYTES)))
}

/** UTF-8 bytes of a value's JSON text as it will leave the server: escapes make it longer, clipping shorter. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(makeSafe(value)) ?? 'null')
}

/**
 * How many leading rows fit beside an envelope, by bytes of JSON text. Always at least one where there are any: an answer
 * that shows nothing could not move its cursor on.
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

/** Objects as one list of columns and one list of rows; null where an object lacks the column (T9). */
export function rowsByColumn(columns: readonly string[], objects: readonly Record<string, unknown>[]): unknown[][] {
  return objects.map((object) => columns.map((column) => object[column] ?? null))
}

/** Entries that an answer shows of each of its lists when it is too large, most first. */
const LADDER = [1_000, 300, 100, 30, 10, 3, 1, 0] as const
/** Kept free for what stands around one row of a list: counts and a cursor. */
const ENVELOPE_BYTES = 2_000

/** The answer of a write within the budget (D2); what was written is never cut, and a warning says so. */
export function fitAnswer<T extends object>(answer: T, limits: Limits): T {
  return fit(answer, answerBudget(limits), (cut, most) => {
    const { warnings = [] } = answer as { warnings?: string[] }
    const said = `The answer is too large to show in full: each list is cut to ${most} entries.`
    return { ...cut, warnings: [...warnings, said] }
  })
}

/** One row of a list answer, such that an answer of this row alone keeps to the budget. `omitted` says what was cut. */
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

/** As many leading rows as fit into so many bytes of JSON text; the first one always does. */
export function rowsWithin<T>(rows: readonly T[], bytes: number): T[] {
  let left = bytes
  const end = rows.findIndex((row) => (left -= jsonBytes(row) + 1) < 0)
  return end === -1 ? [...rows] : rows.slice(0, Math.max(1, end))
}

/** A list of an answer: its first rows, as many as could be shown, and how many there are in all. */
export interface Section<T = unknown> {
  rows: readonly T[]
  total: number
}

/** Which lists an answer shows shorter than they are. */
export const Truncation = {
  truncated_sections: Type.Optional(Type.Array(Type.String(), { description: 'Lists that were cut' })),
  truncation_note: Type.Optional(Type.String({ description: 'How to see more' })),
}
type Truncation = { [K in keyof typeof Truncation]?: Static<(typeof Truncation)[K]> }

type Shown<S> = { [K in keyof S]: Exclude<S[K], undefined> extends Section<infer T> ? T[] : never }

/**
 * An answer with as many rows of each of its lists as fit the budget: detail `standard` shows at most 25 a list (`standard` says otherwise), `full`
 * at most 2,000, or 5,000 where there is one list alone (`isAlone`), and no more than it is given. The caller puts totals into `envelope`, since they count everything, shown or not. `hint`
 * says, for the limit that was chosen, how to see what was cut.
 */
export function showSections<E extends object, S extends Record<string, Section>>(
  envelope: E,
  sections: S,
  {
    detail,
    limits,
    hint,
    standard = STANDARD_LIMIT,
    isAlone = false,
  }: {
    detail: 'standard' | 'full'
    limits: Limits
    hint: (limit: number) => string
    standard?: number
    isAlone?: boolean
  },
): E & Shown<S> & Truncation {
  const shown = new Map<number, E & Shown<S> & Truncation>()
  const at = (limit: number) => {
    const known = shown.get(limit) ?? cut(limit)
    shown.set(limit, known)
    return known
  }
  const cut = (limit: number) => {
    const rows = Object.fromEntries(
      Object.entries(sections).map(([name, section]) => [name, section.rows.slice(0, limit)]),
    )
    const shorter = Object.keys(sections).filter((name) => (rows[name]?.length ?? 0) < (sections[name]?.total ?? 0))
    return {
      ...envelope,
      ...(rows as Shown<S>),
      ...(shorter.length > 0 && { truncated_sections: shorter, truncation_note: hint(limit) }),
    }
  }
  const widest = detail === 'standard' ? standard : isAlone ? mostRowsAlone(detail) : SECTION_LADDER[0]
  return at(widestLimit(widest, answerBudget(limits), (limit) => jsonBytes(at(limit))))
}

/**
 * Rows per section a summary may show, widest first (T12). Below 5 only a small budget or very long names lead; totals alone are
 * still an answer, and one over the budget is not.
 */
const SECTION_LADDER = [2_000, 1_000, 500, 250, 100, 50, 25, 10, 5, 2, 1, 0] as const
const STANDARD_LIMIT = 25

/** Rows of one section that an answer of this detail can show. */
export const mostRowsShown = (detail: 'standard' | 'full'): number =>
  detail === 'full' ? SECTION_LADDER[0] : STANDARD_LIMIT

/** Of a section that is the only one: it has the budget to itself. */
const ALONE_LIMIT = 5_000
export const mostRowsAlone = (detail: 'standard' | 'full'): number => (detail === 'full' ? ALONE_LIMIT : STANDARD_LIMIT)

/**
 * The widest rung from `widest` on whose answer stays inside `budget` bytes; the lowest when none does. `measure` gives the bytes of the
 * answer at a limit.
 */
function widestLimit(widest: number, budget: number, measure: (limit: number) => number): number {
  const rungs: number[] = SECTION_LADDER.filter((limit) => limit <= widest)
  if (widest > SECTION_LADDER[0]) rungs.unshift(widest)
  return rungs.find((limit) => measure(limit) <= budget) ?? (SECTION_LADDER[SECTION_LADDER.length - 1] as number)
}
