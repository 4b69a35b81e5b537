/** Formats a count for a sentence: `1 object`, `2 objects`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/**
 * Formats a share as a percentage with one decimal. 100 is reserved for "all" and 0 for "none", so values close to them
 * become 99.9 and 0.1.
 */
export function percentOf(part: number, whole: number): number {
  if (part === whole) return 100
  if (part === 0) return 0
  return Math.min(99.9, Math.max(0.1, Math.round((part / whole) * 1_000) / 10))
}
