import { anyOf, leaveOutNamed } from '../../domain/text/leave-out-named.js'
import type { ServiceError } from '../errors/convert.js'

/**
 * Removes from an error's hint all parts that mention a tool that is not offered to the caller (D121). Messages are not
 * changed, because they never name tools.
 *
 * @param hidden the names of the tools that are not offered.
 */
export function leaveOutHidden(error: ServiceError, hidden: readonly string[]): ServiceError {
  const { hint, ...rest } = error
  if (hint === undefined || hidden.length === 0) return error
  const kept = leaveOutNamed(hint, anyOf(hidden))
  return kept === undefined ? rest : { ...rest, hint: kept }
}
