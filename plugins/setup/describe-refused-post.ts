import type { Identity, Role } from '../../schemas/caller.js'
import type { ErrorCode } from '../../schemas/errors.js'
import { FORMS } from './forms.js'
import type { RefusedPost } from './ports.js'

/** A refused form as the audit log has it. */
export function describeRefusedPost(
  reason: ErrorCode,
  { route, requestId, client }: Pick<RefusedPost, 'route' | 'requestId' | 'client'>,
  identity: Identity | null,
  roleOf: (identity: Identity) => Role | null,
): RefusedPost {
  const tool = FORMS.find(({ path }) => path === route)?.tool
  const role = identity === null ? null : roleOf(identity)
  return { reason, route, ...(tool && { tool }), identity, role, requestId, ...(client !== undefined && { client }) }
}
