import type { Problem } from './describe-problems.js'

/** Characters of one text, and entries of one list, that an argument may have where its schema names no lower limit. */
const MOST_CHARACTERS = 16_384
const MOST_ENTRIES = 10_000

/** Texts and lists longer than any tool has a use for. One limit for all keeps a limit out of every property that models read. */
export function findOversized(value: unknown, path = ''): Problem[] {
  if (typeof value === 'string') {
    const excess = value.length > MOST_CHARACTERS
    return excess ? [{ path, message: `at most ${MOST_CHARACTERS} characters` }] : []
  }
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value) && value.length > MOST_ENTRIES) return [{ path, message: `at most ${MOST_ENTRIES} entries` }]
  return Object.entries(value).flatMap(([name, inner]) => findOversized(inner, `${path}/${escapePointer(name)}`))
}

/** A name inside a JSON pointer (RFC 6901, 3). */
function escapePointer(name: string): string {
  return name.slice(0, 200).replaceAll('~', '~0').replaceAll('/', '~1')
}
