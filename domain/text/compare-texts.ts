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

/** No name at a PCE is longer, so nothing longer is a misspelt one. */
const LONGEST_NAME = 255
/** Candidates that are looked at, and of these the ones that are compared letter by letter: a hint is not worth more (D73). */
const MOST_CANDIDATES = 5000
const MOST_COMPARED = 300

/** False for what is longer than any name: there is nothing of that name, nor like it. */
export function canBeName(wanted: string): boolean {
  return wanted.length <= LONGEST_NAME
}

/**
 * The candidates most like what was asked for, best first: those that contain it, then by edit distance, case ignored. None for a
 * text longer than any name; of many candidates only the first, and of these the likeliest by their length and beginning. For lists
 * of what there is; nothing is ever resolved by similarity.
 */
export function likestNames(wanted: string, candidates: Iterable<string>, limit: number): string[] {
  if (!canBeName(wanted)) return []
  const target = wanted.toLowerCase()
  return likeliest(target, candidates)
    .map((name) => ({ name, score: unlikeness(target, name.toLowerCase()) }))
    .sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1))
    .slice(0, limit)
    .map(({ name }) => name)
}

/** As `likestNames`, but only those that may have been meant, for "did you mean": a far one misleads more than none. */
export function nearNames(wanted: string, candidates: Iterable<string>, limit = 5): string[] {
  return likestNames(wanted, candidates, MOST_COMPARED)
    .filter((name) => isNear(wanted.toLowerCase(), name.toLowerCase()))
    .slice(0, limit)
}

/** Whether one may be the other with a typing error: one letter more, less or other, or two neighbours swapped. */
export function isMisspelling(a: string, b: string): boolean {
  const apart = Math.abs(a.length - b.length) > 1 ? Infinity : distance(a, b)
  return apart === 1 || (apart === 2 && a.length === b.length && sortLetters(a) === sortLetters(b))
}

/** Shorter texts are parts of too much. */
const LEAST_PART = 3

/** One holds most of the other, or every fourth letter of the longer one is wrong at most (two that changed places count as one). */
function isNear(target: string, name: string): boolean {
  if (target.length >= LEAST_PART && name.includes(target)) return true
  const isMost = target.startsWith(name) || 2 * name.length >= target.length
  if (name.length >= LEAST_PART && isMost && target.includes(name)) return true
  const apart = distance(target, name)
  const isSwap = apart === 2 && sortLetters(target) === sortLetters(name)
  return isSwap || apart <= Math.max(1, Math.floor(Math.max(target.length, name.length) / 4))
}

const sortLetters = (text: string) => [...text].sort().join('')

function likeliest(target: string, candidates: Iterable<string>): string[] {
  const names = new Set<string>()
  for (const name of candidates) {
    if (names.size >= MOST_CANDIDATES) break
    if (name.length <= LONGEST_NAME) names.add(name)
  }
  if (names.size <= MOST_COMPARED) return [...names]
  const ranked = [...names].map((name) => {
    const lower = name.toLowerCase()
    const isPart = target.length > 1 && lower.includes(target)
    const otherBeginning = lower[0] === target[0] ? 0 : 3
    return { name, rank: isPart ? 0 : 1 + Math.abs(lower.length - target.length) + otherBeginning }
  })
  ranked.sort((a, b) => a.rank - b.rank)
  return ranked.slice(0, MOST_COMPARED).map(({ name }) => name)
}

function unlikeness(target: string, name: string): number {
  if (name === target) return -1
  const apart = distance(target, name)
  return target.length > 1 && name.includes(target) ? apart / 100 : apart
}
