import { makeSafe } from '../../domain/text/escape-text.js'
import type { Limits } from '../../schemas/config.js'

/** No answer is larger than this, whatever the configuration says (T9). */
export const MAX_RESPONSE_BYTES = 800_000

/** No row of any tool is shorter: an href alone takes most of it. Bounds how much is worth fetching for one answer. */
const MIN_ROW_BYTES = 100

/** Bytes of JSON text one answer may take. */
export function answerBudget(limits: Limits): number {
  return Math.min(limits.responseBudgetBytes, MAX_RESPONSE_BYTES)
}

/** More rows than this cannot fit an answer, so fetching more for one page is wasted. At least 1. */
export function mostRowsThatFit(limits: Limits): number {
  return Math.max(1, Math.ceil(answerBudget(limits) / MIN_ROW_BYTES))
}

/** UTF-8 bytes of a value's JSON text as it will leave the service: escapes make it longer, clipping shorter. */
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
export function toSplitRows(columns: readonly string[], objects: readonly Record<string, unknown>[]): unknown[][] {
  return objects.map((object) => columns.map((column) => object[column] ?? null))
}
