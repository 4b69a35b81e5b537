/** Matches the space after a period or semicolon that separates two clauses. */
const CLAUSE = /(?<=[.;]) /

/** Builds a regular expression that matches any of these tool names as a whole word. */
// eslint-disable-next-line no-restricted-syntax -- the names of tools are this project's own
export const anyOf = (names: readonly string[]): RegExp => new RegExp(`(?<![\\w-])(?:${names.join('|')})(?![\\w-])`)

/**
 * Removes every clause of a string in which the regular expression `named` matches; undefined if no clause is left. A
 * clause ends with a period or semicolon.
 */
export function leaveOutNamed(text: string, named: RegExp): string | undefined {
  if (!named.test(text)) return text
  const kept = text.split(CLAUSE).filter((clause) => !named.test(clause))
  if (kept.length === 0) return undefined
  const rest = kept.join(' ').replace(/;$/, '.')
  return rest.charAt(0).toUpperCase() + rest.slice(1)
}
