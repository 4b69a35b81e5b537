/** A value that has no canonical form, by its JSON pointer (RFC 6901). */
export interface Uncanonical {
  path: string
  message: string
}

/** As deep as a request may be nested. */
const DEEPEST = 64
const MOST_PROBLEMS = 50
/** A surrogate that no other makes a character of: matches nothing else under `u`. */
const LONE_SURROGATE = /\p{Surrogate}/u

/**
 * What of parsed JSON two parties could read differently, so that a hash of it would not tell what was approved: numbers that are
 * no I-JSON numbers (RFC 7493, 2.2), text that is no Unicode, nesting beyond all use. Goes level by level, so that no depth
 * overflows the stack.
 */
export function findUncanonical(value: unknown): Uncanonical[] {
  const problems: Uncanonical[] = []
  const note = (path: string, message: string) => problems.push({ path, message })
  let level: { path: string; value: unknown }[] = [{ path: '', value }]
  for (let depth = 0; level.length > 0 && problems.length < MOST_PROBLEMS; depth++) {
    const next: typeof level = []
    for (const { path, value: item } of level) {
      if (typeof item === 'string' && LONE_SURROGATE.test(item)) note(path, 'holds half of a surrogate pair')
      if (typeof item === 'number') noteNumber(item, (message) => note(path, message))
      if (typeof item !== 'object' || item === null) continue
      if (depth === DEEPEST) {
        note(path.slice(0, 200), `is nested deeper than ${DEEPEST} levels`)
        continue
      }
      for (const [name, inner] of Object.entries(item)) {
        const below = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
        if (LONE_SURROGATE.test(name)) note(path, 'has a name that holds half of a surrogate pair')
        next.push({ path: below, value: inner })
      }
    }
    level = next
  }
  return problems.slice(0, MOST_PROBLEMS)
}

function noteNumber(number: number, note: (message: string) => void): void {
  if (!Number.isFinite(number)) note('is no finite number')
  else if (Number.isInteger(number) && !Number.isSafeInteger(number))
    note('is an integer that readers of JSON round differently: beyond ±(2^53 - 1)')
}
