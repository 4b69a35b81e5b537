import type { ShownCall } from './approvals.js'
import type { AuditFacts } from './audit.js'
import type { Owner } from './caller.js'
import type { ErrorDetails } from './errors.js'

/** Why a call is asked about (D20): nobody was asked yet, or what it brings or was asked is of no use for it now. */
export type ConfirmReason = 'missing' | 'malformed' | 'mismatch' | 'expired' | 'stale'

/** What is confirmed: one call of one tool by one caller. */
export interface ConfirmedCall {
  owner: Owner
  tool: string
  /** Lowercase hex SHA-256 of the canonical arguments (D19). */
  paramsHash: string
  /** The PCE and organisation that the call would run on; absent if the tool uses no PCE. */
  pce?: string
}

/** Who confirms, and on which PCE. */
export interface ConfirmingContext {
  caller: { iss: string | null; sub: string | null }
  pce: { origin: string; orgId: string } | null
}

/** What was confirmed of a call that may run. */
export interface Approval {
  /** Digest of what was shown (`Preview.boundTo`). */
  boundTo: string
  paramsHash: string
}

/** What a call would do. */
export type Outlook =
  | { boundTo: string; summary: string; details: ErrorDetails; page?: Omit<ShownCall, 'summary'> }
  /** The preview failed, so there is nothing that anybody could agree to; `details` say why. */
  | { boundTo: null; summary: string; details: ErrorDetails }

/** A call that has arrived at the gate and has to be confirmed before it runs. */
export interface CallToConfirm {
  tool: { name: string }
  call: {
    /** As the client sent them, without a `_meta`. */
    arguments: Record<string, unknown>
    requestId: string
    /** What the client sent as the confirm token, unchecked. */
    confirmToken?: unknown
    /** The yes of the person at the client to what the digest names, where the transport has asked them. */
    consent?: { boundTo: string }
    /** Whether the transport can ask the person at the client by a form. */
    canAsk?: boolean
  }
  callerContext: ConfirmingContext & { client?: string; tokenSays?: { name?: string; clientId?: string } }
  /** Its signal is aborted as soon as the client has gone. */
  context: { readonly signal: AbortSignal }
  /** Adds to the audit entries of the call, whether it is admitted or not. */
  note: (facts: AuditFacts) => void
  /** Previews the call. Rejects only when the client has gone. */
  look: () => Promise<Outlook>
  /** Finds the digest of what the call would do now. */
  findBinding: () => Promise<string>
}

/** What the gate of the dispatcher asks. */
export interface ConfirmPort {
  /**
   * Resolves where the call was confirmed: this run of it, and no other one, may begin. Otherwise rejects with the ToolError that says
   * what has to happen first: `confirm_required`, `approval_pending`, `approval_denied`, `confirm_token_replay`, `confirmation_unsupported`,
   * `confirm_unavailable` where the store does not answer, and `invalid_argument` for arguments that have no hash.
   */
  admit(call: CallToConfirm): Promise<Approval>
}
