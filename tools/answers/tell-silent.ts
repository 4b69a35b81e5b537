import { quote } from '../../domain/text/escape-text.js'

const MOST_NAMED = 3

/**
 * Returns the beginning of a sentence about workloads whose VEN is not known to answer (`isSilent`), which names some of
 * them: `The VENs of 2 workloads ("a", "b") are offline, not active or not known to answer`.
 */
export function tellSilent(names: readonly string[]): string {
  if (names.length === 1) return `The VEN of ${quote(names[0] ?? '')} is offline, not active or not known to answer`
  const shown = names.slice(0, MOST_NAMED).map(quote).join(', ')
  const more = names.length > MOST_NAMED ? ' …' : ''
  return `The VENs of ${names.length} workloads (${shown}${more}) are offline, not active or not known to answer`
}
