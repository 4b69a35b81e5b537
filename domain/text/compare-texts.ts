import { distance } from 'fastest-levenshtein'

/** By their characters (UTF-16 units, as everywhere). */
export const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Missing values first, numbers by size, everything else as text (an end of a flow by its address). */
export function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return compareTexts(sortText(a), sortText(b))
}

function sortText(value: unknown): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/**
 * The candidates most like what was asked for, best first: those that contain it (or are contained), then by edit distance, case
 * ignored. For "did you mean" lists only; nothing is ever resolved by similarity.
 */
export function nearNames(wanted: string, candidates: Iterable<string>, limit = 5): string[] {
  const target = wanted.toLowerCase()
  return [...new Set(candidates)]
    .map((name) => ({ name, score: unlikeness(target, name.toLowerCase()) }))
    .sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1))
    .slice(0, limit)
    .map(({ name }) => name)
}

function unlikeness(target: string, name: string): number {
  if (name === target) return -1
  const apart = distance(target, name)
  return target.length > 1 && name.includes(target) ? apart / 100 : apart
}
