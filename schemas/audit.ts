import type { ApprovalEvent } from './approvals.js'
import type { Owner, Role } from './caller.js'
import type { ErrorCode } from './errors.js'

/** What a gate or a route adds to its entries. */
export interface AuditFacts {
  /** SHA-256 of the canonical arguments of a call that needs confirmation. */
  params_hash?: string
  /** The id inside the confirm token; not a secret, since the token itself is signed. */
  confirm_jti?: string
  /** Which approval by a person it is about, and what has happened to it. */
  approval_id?: string
  approval?: ApprovalEvent
  /** Whose call it is, in entries about somebody else. */
  asked_by?: Owner
  /** Who let the call run. */
  approved_by?: Owner
  /** What they wrote: on one line, without hidden characters. */
  note?: string
  /** The ids that the PCE gave its answers to this call, the first ones. */
  upstream_request_ids?: string[]
}

/**
 * One line of the audit log: one `decision` per tool call, written before the handler runs, and one `outcome` after it (D25).
 * Arguments and secrets are never part of it.
 */
export interface AuditEntry extends AuditFacts {
  /** RFC 3339, UTC. */
  ts: string
  phase: 'decision' | 'outcome'
  decision?: 'allowed' | 'denied' | 'error'
  reason?: ErrorCode
  outcome?: 'success' | 'error'
  tool?: string
  route?: string
  /** Of svc-mcp-http, run by an operator: `iss` and `sub` are then whom it is about, and `os_user` who ran it. */
  command?: string
  os_user?: string
  /** What it has removed: how many of each. */
  removed?: Record<string, number>
  role: Role | null
  iss: string | null
  sub: string | null
  request_id: string
  /** Ties the outcome to its decision; absent where there is no tool call. */
  call_id?: string
  mode: string
  transport: 'stdio' | 'http' | 'command'
  /** `name/version` of the MCP client where it has said so. */
  client?: string
  /** Where the client is: by the socket, or by a trusted proxy; absent over stdio, and on a Unix socket whose peer is not trusted. */
  client_address?: string
  pce_host?: string
  duration_ms?: number
  /** The client went away, or cancelled, before the outcome; what was written stays written. */
  client_gone?: true
  /** Which process wrote it (MCP_REPLICA_ID). The audit log adds it to every line, a gap's too. */
  replica?: string
}
