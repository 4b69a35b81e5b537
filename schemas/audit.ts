import type { Role } from './caller.js'
import type { ErrorCode } from './errors.js'

/**
 * One line of the audit log: one `decision` per tool call, written before the handler runs, and one `outcome` after it
 * (design decision 25). Arguments and secrets are never part of it.
 */
export interface AuditEntry {
  /** RFC 3339, UTC. */
  ts: string
  phase: 'decision' | 'outcome'
  decision?: 'allowed' | 'denied' | 'error'
  reason?: ErrorCode
  outcome?: 'success' | 'error'
  tool?: string
  route?: string
  role: Role | null
  iss: string | null
  sub: string | null
  request_id: string
  /** Ties the outcome to its decision. */
  call_id: string
  mode: string
  transport: 'stdio' | 'http'
  /** `name/version` of the MCP client where it has said so. */
  client?: string
  pce_host?: string
  duration_ms?: number
  /** The client went away, or cancelled, before the outcome; what was written stays written. */
  client_gone?: true
}
