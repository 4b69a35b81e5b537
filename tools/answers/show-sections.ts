import { Type, type Static } from '@sinclair/typebox'
import type { Limits } from '../../schemas/config.js'
import { answerBudget, jsonBytes } from './byte-budget.js'

/** A list of an answer: its first rows, as many as could be shown, and how many there are in all. */
export interface Section<T = unknown> {
  rows: readonly T[]
  total: number
}

/** Which lists an answer shows shorter than they are. */
export const Truncation = {
  truncated_sections: Type.Optional(Type.Array(Type.String(), { description: 'Shown shorter than they are' })),
  truncation_note: Type.Optional(Type.String({ description: 'How to see more' })),
}
type Truncation = { [K in keyof typeof Truncation]?: Static<(typeof Truncation)[K]> }

type Shown<S> = { [K in keyof S]: Exclude<S[K], undefined> extends Section<infer T> ? T[] : never }

/**
 * An answer with as many rows of each of its lists as fit the budget: detail `standard` shows at most 100 a list, `full` at most
 * 2,000, and no more than it is given. Totals are the caller's to put into `envelope`, since they are of everything whatever is
 * shown. `hint` says, for the limit that was chosen, how to see what was cut.
 */
export function showSections<E extends object, S extends Record<string, Section>>(
  envelope: E,
  sections: S,
  { detail, limits, hint }: { detail: 'standard' | 'full'; limits: Limits; hint: (limit: number) => string },
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
  return at(widestLimit(detail, answerBudget(limits), (limit) => jsonBytes(at(limit))))
}

/**
 * Rows per section a summary may show, widest first (T12). Below 5 only a small budget or very long names lead; totals alone are
 * still an answer, and one over the budget is not.
 */
const LADDER = [2_000, 1_000, 500, 250, 100, 50, 25, 10, 5, 2, 1, 0] as const
const STANDARD_LIMIT = 100

/** Rows of one section that an answer of this detail can show. */
export const mostRowsShown = (detail: 'standard' | 'full'): number => (detail === 'full' ? LADDER[0] : STANDARD_LIMIT)

/**
 * The widest rung whose answer stays inside `budget` bytes; the lowest when none does. `measure` gives the bytes of the
 * answer at a limit. Detail `standard` starts at 100 rows a section, `full` at 2,000.
 */
function widestLimit(detail: 'standard' | 'full', budget: number, measure: (limit: number) => number): number {
  const rungs = LADDER.filter((limit) => detail === 'full' || limit <= STANDARD_LIMIT)
  return rungs.find((limit) => measure(limit) <= budget) ?? (LADDER[LADDER.length - 1] as number)
}
