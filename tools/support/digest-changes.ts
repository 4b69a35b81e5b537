import { createHash } from 'node:crypto'
import type { TypedPendingChange } from '../../pce-client/index.js'
import { ToolError } from '../../schemas/errors.js'
import { toDraftHref } from './parse-href.js'

/**
 * What a set of pending changes is at this moment, as lowercase hex SHA-256: of each object its href, what becomes of it and when
 * it was last edited, in the order of the hrefs (design decision 21). An edit of a rule counts as one of its rule set (pce-api a.4).
 */
export function digestChanges(changes: readonly TypedPendingChange[]): string {
  const rows = changes
    .map((change) => [toDraftHref(change.href), updateTypeOf(change), change.updated_at ?? null] as const)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return createHash('sha256').update(JSON.stringify(rows)).digest('hex')
}

/** Some releases call it change_type. */
export function updateTypeOf(change: TypedPendingChange): string | null {
  return change.update_type ?? (change as { change_type?: string | null }).change_type ?? null
}

/**
 * The last look before a confirmed change: throws confirm_required {reason: stale} unless the changes are those that were approved.
 * `approved` undefined: nobody was asked about a set of changes. The confirm token is spent by then.
 */
export function refuseUnapproved(approved: string | undefined, changes: readonly TypedPendingChange[]): void {
  if (approved === undefined || approved === digestChanges(changes)) return
  throw new ToolError(
    'confirm_required',
    'The pending changes became others after the call was confirmed. Nothing was provisioned.',
    { reason: 'stale' },
    { hint: 'Call again without a token to see what would be provisioned now, and confirm that.' },
  )
}
