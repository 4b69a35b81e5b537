import type { Approval } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'

/**
 * Checks, before a confirmed call writes anything, that it would still write what the person approved. The confirm
 * token is already used up at this point.
 *
 * @param approved undefined if nothing had to be confirmed, in which case the check passes.
 * @param digest the digest of what would be written now.
 * @param message the message of the error; it says what has changed since the approval.
 * @throws {ToolError} confirm_required with `reason: stale` and `params_hash`.
 */
export function requireApproved(approved: Approval | undefined, digest: string, message: string): void {
  if (approved === undefined || approved.boundTo === digest) return
  throw new ToolError(
    'confirm_required',
    message,
    { reason: 'stale', params_hash: approved.paramsHash },
    { hint: 'Call again without a token to see what would happen now, and confirm that.' },
  )
}
