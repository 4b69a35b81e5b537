import type { Approval } from '../../schemas/confirmations.js'
import { ToolError } from '../../schemas/errors.js'

/**
 * A check before the first write of a confirmed call: throws confirm_required {reason: stale, params_hash} unless `digest`, of what
 * would be written now, is what was approved. `approved` is undefined where nothing had to be confirmed. The confirm token is spent
 * by then. `message` says what has changed.
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
