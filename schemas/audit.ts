import type { ApprovalEvent } from './approvals.js'
import type { Owner, Role } from './caller.js'
import type { ErrorCode } from './errors.js'
import type { TouchedGuardrail } from './guardrails.js'

/** Facts that the gates and routes of a call add to its audit entries. */
export interface AuditFacts {
  /** SHA-256 of the canonical arguments of a call that needs confirmation. */
  params_hash?: string
  /** The id inside the confirm token. It is not a secret, since the token itself is signed. */
  confirm_jti?: string
  /** Id of the request for approval that the entry is about. `approval` says what happened to this request. */
  approval_id?: string
  approval?: ApprovalEvent
  /** The caller who made the call. Present in entries about another person's decision on the call. */
  asked_by?: Owner
  /** The person who approved the call; if it needed two approvals, also the person who gave the first one. */
  approved_by?: Owner
  first_approved_by?: Owner
  /** The guardrails that only two persons can override, in the entries about such an approval. */
  overrides?: readonly TouchedGuardrail[]
  /**
   * The object outside the caller's scopes because of which the call was refused, and the condition that the object
   * does not meet.
   */
  outside?: { kind: string; href?: string; rule?: string }
  /** The caller's scopes, in entries about calls that were refused because of them. */
  scopes?: readonly string[]
  /** The finding because of which a guardrail refused the call. `reason` is the code of the guardrail. */
  guardrail?: Readonly<Record<string, unknown>>
  /** The note that the person added to the decision: on one line, without hidden characters. */
  note?: string
  /** The request ids from the PCE's answers during this call. If there are many, only the first ones are listed. */
  upstream_request_ids?: string[]
}

/**
 * One line of the audit log. Every tool call has one `decision` line, written before its handler runs, and one
 * `outcome` line after it (D25). Arguments and secrets are never recorded.
 */
export interface AuditEntry extends AuditFacts {
  /** The time of the entry, as RFC 3339 in UTC. */
  ts: string
  phase: 'decision' | 'outcome'
  decision?: 'allowed' | 'denied' | 'error'
  reason?: ErrorCode
  outcome?: 'success' | 'error'
  tool?: string
  route?: string
  /**
   * The svc-mcp-http command that an operator ran, in entries about such a command. `iss` and `sub` then identify the
   * person whom the command concerns, and `os_user` the operator.
   */
  command?: string
  os_user?: string
  /** Number of items that the command removed, by type of item. */
  removed?: Record<string, number>
  /** Number of people whom the command listed. */
  listed?: number
  /** The time until which the command revoked the person's access, as RFC 3339 in UTC. */
  revoked_until?: string
  role: Role | null
  iss: string | null
  sub: string | null
  request_id: string
  /** Id of the tool call, the same in both lines about this call; absent if the line is not about a tool call. */
  call_id?: string
  mode: string
  transport: 'stdio' | 'http' | 'command'
  /** `name/version` of the MCP client, if the client has given them. */
  client?: string
  /**
   * Address of the client, from the socket or a trusted proxy; absent over stdio, and on a Unix socket whose peer is
   * not trusted.
   */
  client_address?: string
  pce_host?: string
  duration_ms?: number
  /**
   * True if the client disconnected or cancelled before the call ended. What the call had already written to the PCE
   * remains.
   */
  client_gone?: true
  /**
   * The process that wrote the line (MCP_REPLICA_ID). The audit log adds it to every line, including lines that report
   * a gap in the log.
   */
  replica?: string
}
