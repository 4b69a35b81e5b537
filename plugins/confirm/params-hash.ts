import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { ToolError } from '../../schemas/errors.js'

// The types of the CommonJS module `canonicalize` declare a default export, but the module is the function itself.
const serialize = canonicalize as unknown as (value: unknown) => string | undefined

/**
 * Serialises parsed JSON in the canonical form of RFC 8785: names sorted by UTF-16 units, numbers and strings written
 * as in ECMAScript, no whitespace.
 */
export function canonicalForm(value: unknown): string {
  return serialize(value) ?? 'null'
}

/**
 * Computes `params_hash` of a call: the SHA-256 digest, in lowercase hex, of the canonical form of its arguments in
 * UTF-8 (S5, D19). `args` are the arguments as the client sent them, without a top-level `_meta`; missing arguments
 * count as `{}`. Throws ToolError `invalid_argument {problems}` if two parsers could read different arguments from the
 * same text.
 */
export function paramsHash(args: Record<string, unknown>): string {
  const problems = findUncanonical(args)
  if (problems.length > 0) {
    const said = problems.map(({ path, message }) => `${path || 'arguments'}: ${message}`).join('; ')
    throw new ToolError('invalid_argument', `The arguments have no canonical form: ${said}`.slice(0, 1000), {
      problems,
    })
  }
  return createHash('sha256').update(canonicalForm(args), 'utf8').digest('hex')
}

/** A problem with a value that has no canonical form. `path` is the value's JSON pointer (RFC 6901). */
interface Uncanonical {
  path: string
  message: string
}

/** Maximum number of levels to which arguments may be nested. */
const DEEPEST = 64
const MOST_PROBLEMS = 50
/**
 * Matches half of a surrogate pair. Complete pairs do not match, because they count as one character with the flag `u`.
 */
const LONE_SURROGATE = /\p{Surrogate}/u

/**
 * Finds the parts of parsed JSON that two parties could read differently: numbers that are not I-JSON (RFC 7493, 2.2),
 * text that is not Unicode, and excessive nesting. A hash of such JSON would not identify what was approved. The
 * function works level by level, so that deep nesting cannot overflow the stack.
 */
function findUncanonical(value: unknown): Uncanonical[] {
  const problems: Uncanonical[] = []
  const note = (path: string, message: string) => problems.push({ path, message })
  let level: { path: string; value: unknown }[] = [{ path: '', value }]
  for (let depth = 0; level.length > 0 && problems.length < MOST_PROBLEMS; depth++) {
    const next: typeof level = []
    for (const { path, value: item } of level) {
      if (typeof item === 'string' && LONE_SURROGATE.test(item)) note(path, 'contains half of a surrogate pair')
      if (typeof item === 'number') noteNumber(item, (message) => note(path, message))
      if (typeof item !== 'object' || item === null) continue
      if (depth === DEEPEST) {
        note(path.slice(0, 200), `is nested deeper than ${DEEPEST} levels`)
        continue
      }
      for (const [name, inner] of Object.entries(item)) {
        const below = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
        if (LONE_SURROGATE.test(name)) note(path, 'has a name that contains half of a surrogate pair')
        next.push({ path: below, value: inner })
      }
    }
    level = next
  }
  return problems.slice(0, MOST_PROBLEMS)
}

function noteNumber(number: number, note: (message: string) => void): void {
  if (!Number.isFinite(number)) note('is not a finite number')
  else if (Number.isInteger(number) && !Number.isSafeInteger(number))
    note('is an integer that JSON parsers round differently: beyond ±(2^53 - 1)')
}
