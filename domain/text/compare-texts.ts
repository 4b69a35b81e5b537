import { distance } from 'fastest-levenshtein'

/** Compares two strings by their UTF-16 code units. All sorted output of this server is in this order. */
export const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * Compares two values in a column of a table. Null comes first, numbers are compared by size, and all other values as
 * strings (objects as JSON).
 */
export function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return compareTexts(sortText(a), sortText(b))
}

function sortText(value: unknown): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Maximum number of characters in a name on a PCE. A longer string cannot be a misspelled name. */
const LONGEST_NAME = 255
/**
 * Limits on the work for one hint about similar names (D73): how many candidates are considered at all, and how many of
 * them are compared letter by letter.
 */
const MOST_CANDIDATES = 5000
const MOST_COMPARED = 300

/**
 * Returns false if the string is longer than any name can be, so that searching for it or for similar names is
 * pointless.
 */
export function canBeName(wanted: string): boolean {
  return wanted.length <= LONGEST_NAME
}

/**
 * Returns the candidates that are most similar to `wanted`, best first. Names that contain `wanted` come first, then
 * all others by edit distance, ignoring case. If there are very many candidates, only the first of them are considered,
 * and only the likeliest of these, by length and first letter, are compared. Use this function only to suggest names: a
 * similar name must never take the place of a reference that does not match exactly.
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

/**
 * Returns the similar names that the user may have meant, for a "did you mean" question. Names that are not really
 * similar are left out, because a wrong suggestion is worse than none.
 */
export function nearNames(wanted: string, candidates: Iterable<string>, limit = 5): string[] {
  return likestNames(wanted, candidates, MOST_COMPARED)
    .filter((name) => isNear(wanted.toLowerCase(), name.toLowerCase()))
    .slice(0, limit)
}

/**
 * Works like `nearNames`, but for names of people. Mail addresses within one organisation always look similar, so the
 * parts before the `@` must be similar too.
 */
export function nearPeople(wanted: string, candidates: Iterable<string>, limit = 5): string[] {
  const ownPart = (name: string) => name.toLowerCase().replace(/@.*/s, '')
  return nearNames(wanted, candidates, MOST_COMPARED)
    .filter((name) => isNear(ownPart(wanted), ownPart(name)))
    .slice(0, limit)
}

/**
 * Returns true if one string could be a typing error of the other: one letter added, missing or different, or two
 * neighbouring letters swapped.
 */
export function isMisspelling(a: string, b: string): boolean {
  const apart = Math.abs(a.length - b.length) > 1 ? Infinity : distance(a, b)
  return apart === 1 || (apart === 2 && a.length === b.length && sortLetters(a) === sortLetters(b))
}

/**
 * Minimum length of a string for names that contain it to count as similar. A shorter string occurs in too many names.
 */
const LEAST_PART = 3

/**
 * Returns true in three cases: the name contains the target; the target contains the name, and begins with it or is at
 * most twice as long; or they differ in one letter, or in at most a quarter of the letters of the longer one. Two
 * swapped letters count as one difference.
 */
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
