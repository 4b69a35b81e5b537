import type { AuditEntry } from '../../schemas/audit.js'
import type { Caller } from '../../schemas/caller.js'
import type { ErrorCode } from '../../schemas/errors.js'
import { convertHttp } from '../errors/convert.js'

export const ROUTE = '/confirm'

/** What is known of a request for a token by the time it is decided. */
export interface MintFacts {
  requestId: string
  /** As far as it is known: a body that cannot be read is refused before the role of its sender is. */
  caller: Partial<Caller>
  client?: string
  tool?: string
  paramsHash?: string
  jti?: string
}

/** The one audit entry of a request for a token; `reason` null where it was granted (D25). */
export function describeMint(facts: MintFacts, reason: ErrorCode | null, now: number): AuditEntry {
  const { requestId, caller, client, tool, paramsHash, jti } = facts
  return {
    ts: new Date(now).toISOString(),
    phase: 'decision',
    decision: reason === null ? 'allowed' : ERRORS.has(reason) ? 'error' : 'denied',
    ...(reason !== null && { reason }),
    ...(tool !== undefined && { tool }),
    route: ROUTE,
    role: caller.role ?? null,
    iss: caller.iss ?? null,
    sub: caller.sub ?? null,
    request_id: requestId,
    mode: caller.mode ?? 'unknown',
    transport: 'http',
    ...(client !== undefined && { client }),
    ...(paramsHash !== undefined && { params_hash: paramsHash }),
    ...(jti !== undefined && { confirm_jti: jti }),
  }
}

/** What is wrong with the request itself, or with the server; everything else is a no to whoever sent it, as the dispatcher has it. */
const ERRORS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'unknown_tool',
  'invalid_argument',
  'bad_request',
  'unsupported_media_type',
  'payload_too_large',
  'request_timeout',
  'server_misconfigured',
  'internal',
])

/** The code that whatever was thrown on the way becomes for the client. */
export const codeOf = (thrown: unknown): ErrorCode => convertHttp(thrown).code
