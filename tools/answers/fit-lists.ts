import type { Limits } from '../../schemas/config.js'
import { answerBudget, jsonBytes } from './split-format.js'

/** Entries that an answer shows of each of its lists when it is too large, most first. */
const LADDER = [1_000, 300, 100, 30, 10, 3, 1, 0] as const
/** Kept free for what stands around one row of a list: counts and a cursor. */
const ENVELOPE_BYTES = 2_000

/** The answer of a write within the budget (D2); what was written is never cut, and a warning says so. */
export function fitAnswer<T extends object>(answer: T, limits: Limits): T {
  return fit(answer, answerBudget(limits), (cut, most) => {
    const { warnings = [] } = answer as { warnings?: string[] }
    const said = `The answer is too large to be shown whole: of each list it shows ${most} entries at most.`
    return { ...cut, warnings: [...warnings, said] }
  })
}

/** One row of a list answer, such that an answer of this row alone keeps to the budget. `omitted` says what was cut. */
export function fitRow<T extends object>(row: T, limits: Limits): T {
  return fit(row, answerBudget(limits) - ENVELOPE_BYTES, (cut, most) => ({
    ...cut,
    omitted: `Too large to be shown whole: of each list ${most} entries at most.`,
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
