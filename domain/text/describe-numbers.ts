/** Formats a count for a sentence: `1 object`, `2 objects`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Above this number, the digits of a count no longer help a person: it is simply enormous. */
const ENORMOUS = 1e12

/**
 * Returns a count unchanged, or in words if it is enormous, as numbers of IPv6 addresses can be. Beyond 2^53 the digits
 * would not be exact, and JSON would write them as 3.03e+28.
 */
export const tellMany = (count: number): number | string => (count > ENORMOUS ? 'more than a trillion' : count)

/**
 * Formats a share as a percentage with one decimal. 100 is reserved for "all" and 0 for "none", so shares close to
 * these become 99.9 and 0.1.
 */
export function percentOf(part: number, whole: number): number {
  if (part === whole) return 100
  if (part === 0) return 0
  return Math.min(99.9, Math.max(0.1, Math.round((part / whole) * 1_000) / 10))
}
