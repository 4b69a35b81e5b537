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
export function widestLimit(detail: 'standard' | 'full', budget: number, measure: (limit: number) => number): number {
  const rungs = LADDER.filter((limit) => detail === 'full' || limit <= STANDARD_LIMIT)
  return rungs.find((limit) => measure(limit) <= budget) ?? (LADDER[LADDER.length - 1] as number)
}
