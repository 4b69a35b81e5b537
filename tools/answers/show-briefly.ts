import { jsonBytes } from './split-format.js'

/** As many leading rows as fit into so many bytes of JSON text; the first one always does. */
export function rowsWithin<T>(rows: readonly T[], bytes: number): T[] {
  let left = bytes
  const end = rows.findIndex((row) => (left -= jsonBytes(row) + 1) < 0)
  return end === -1 ? [...rows] : rows.slice(0, Math.max(1, end))
}
