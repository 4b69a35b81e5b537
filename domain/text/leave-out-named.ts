/** The space after a period or semicolon, where one clause of a text ends. */
const CLAUSE = /(?<=[.;]) /

/** Builds an expression that finds any of these names of tools as a whole word. */
// eslint-disable-next-line no-restricted-syntax -- the names of tools are this project's own
export const anyOf = (names: readonly string[]): RegExp => new RegExp(`(?<![\\w-])(?:${names.join('|')})(?![\\w-])`)

/**
 * Removes every clause in which `named` finds something; returns undefined if nothing is left. A clause ends with a
 * period or semicolon.
 */
export function leaveOutNamed(text: string, named: RegExp): string | undefined {
  if (!named.test(text)) return text
  const kept = text.split(CLAUSE).filter((clause) => !named.test(clause))
  if (kept.length === 0) return undefined
  const rest = kept.join(' ').replace(/;$/, '.')
  return rest.charAt(0).toUpperCase() + rest.slice(1)
}
