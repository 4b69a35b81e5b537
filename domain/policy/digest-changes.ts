import { createHash } from 'node:crypto'
import type { TypedPendingChange } from '../../pce-client/index.js'
import type { Approval } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'
import { toDraftHref } from '../inventory/parse-href.js'

/**
 * What a set of pending changes is at this moment, as lowercase hex SHA-256: of each object its href, what becomes of it and when
 * it was last edited, in the order of the hrefs (D21). An edit of a rule counts as one of its rule set (P4).
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
 * What has become of the chosen changes in a newer list of everything that is pending. One that is no longer there is left without its
 * edit, so that the digest is another; with `isAll` whatever else is pending by now belongs to them.
 */
export function chosenNow(
  chosen: readonly TypedPendingChange[],
  pending: readonly TypedPendingChange[],
  isAll: boolean,
): TypedPendingChange[] {
  const rest = new Map(pending.map((change) => [toDraftHref(change.href), change]))
  const now = chosen.map(({ href, type }) => {
    const draft = toDraftHref(href)
    const change = rest.get(draft) ?? { href, type }
    rest.delete(draft)
    return change
  })
  return isAll ? [...now, ...rest.values()] : now
}

/**
 * A look before a confirmed change: throws confirm_required {reason: stale, params_hash} unless the changes are those that were
 * approved. `approved` undefined: nobody was asked about a set of changes. The confirm token is spent by then.
 */
export function refuseUnapproved(approved: Approval | undefined, changes: readonly TypedPendingChange[]): void {
  if (approved === undefined || approved.boundTo === digestChanges(changes)) return
  throw new ToolError(
    'confirm_required',
    'The pending changes became others after the call was confirmed. Nothing was provisioned.',
    { reason: 'stale', params_hash: approved.paramsHash },
    { hint: 'Call again without a token to see what would be provisioned now, and confirm that.' },
  )
}
