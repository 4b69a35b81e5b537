import type { ServiceError } from '../errors/convert.js'

/** Where one thing that a hint says ends. */
const CLAUSE = /(?<=[.;]) /

/**
 * The error without what its hint says of tools that are not offered, so that it leads nobody to them (D121).
 *
 * @param hidden names of those tools.
 */
export function leaveOutHidden(error: ServiceError, hidden: readonly string[]): ServiceError {
  const { hint, ...rest } = error
  if (hint === undefined || hidden.length === 0) return error
  const named = new RegExp(`(?<![\\w-])(?:${hidden.join('|')})(?![\\w-])`)
  const kept = hint.split(CLAUSE).filter((clause) => !named.test(clause))
  if (kept.length === 0) return rest
  const text = kept.join(' ').replace(/;$/, '.')
  return { ...rest, hint: text.charAt(0).toUpperCase() + text.slice(1) }
}
