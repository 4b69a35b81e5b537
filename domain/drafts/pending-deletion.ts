import type { ErrorDetails } from '../../schemas/errors.js'
import { describeObject, type NamedKind, type NamedObject } from '../inventory/find-object.js'
import { toDraftHref } from '../inventory/parse-href.js'

/**
 * The reason why nothing new may refer to an object that is pending deletion, both as a sentence and as error details.
 */
export interface PendingDeletion {
  why: string
  details: ErrorDetails
}

/**
 * Returns the reason why nothing new may refer to an object: its deletion is pending, and the PCE refuses new
 * references to it with 406 `invalid_uri` (P4). Returns undefined if new references are allowed.
 */
export function explainPending(kind: NamedKind, found: NamedObject): PendingDeletion | undefined {
  if (found.update_type !== 'delete') return undefined
  const why = `The deletion of ${describeObject(kind, found)} is pending, so nothing can refer to it: discard that deletion, or name another.`
  return { why, details: { reason: 'pending_deletion', href: toDraftHref(found.href), name: found.name ?? null } }
}
