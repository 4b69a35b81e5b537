/** By their characters (UTF-16 units, as everywhere). */
export const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Missing first, numbers by size, all else by its text (an end of a flow by its address). */
export function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return compareTexts(sortText(a), sortText(b))
}

function sortText(value: unknown): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
