/** Where one thing that a text says ends. */
const CLAUSE = /(?<=[.;]) /

/** Finds any of these names, as a word of its own. */
export const anyOf = (names: readonly string[]): RegExp => new RegExp(`(?<![\\w-])(?:${names.join('|')})(?![\\w-])`)

/** A text without its clauses in which `named` finds something; undefined where nothing is left. A clause ends with a period or semicolon. */
export function leaveOutNamed(text: string, named: RegExp): string | undefined {
  if (!named.test(text)) return text
  const kept = text.split(CLAUSE).filter((clause) => !named.test(clause))
  if (kept.length === 0) return undefined
  const rest = kept.join(' ').replace(/;$/, '.')
  return rest.charAt(0).toUpperCase() + rest.slice(1)
}
