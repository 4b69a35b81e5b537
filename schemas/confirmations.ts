import type { ShownCall } from './approvals.js'
import type { AuditFacts } from './audit.js'
import type { Owner } from './caller.js'
import type { ErrorDetails } from './errors.js'
import type { TouchedGuardrail } from './guardrails.js'

/**
 * The reason why a confirmation is required (D20): none has been given (`missing`), the confirm token is not from this
 * server (`malformed`) or is for another call (`mismatch`), the time to confirm is over (`expired`), or the consent was
 * given to something other than what the call would do now (`stale`).
 */
export type ConfirmReason = 'missing' | 'malformed' | 'mismatch' | 'expired' | 'stale'

/** The subject of a confirmation: one call of one tool by one caller. */
export interface ConfirmedCall {
  owner: Owner
  tool: string
  /** SHA-256 of the call's canonical arguments, in lowercase hex (D19). */
  paramsHash: string
  /** The PCE and organisation that the call would run on; absent if the tool uses no PCE. */
  pce?: string
}

/** The caller who confirms, and the caller's PCE. */
export interface ConfirmingContext {
  caller: { iss: string | null; sub: string | null }
  pce: { origin: string; orgId: string } | null
}

/** A confirmation that has been given and checked, so that the call may run. */
export interface Approval {
  /** Digest of what was shown to the person before consenting (`Preview.boundTo`). */
  boundTo: string
  paramsHash: string
  /** The guardrails that two persons have overridden for this run. */
  overrides?: readonly TouchedGuardrail[]
}

/** The result of previewing a call, which shows a person what it would do. */
export type Outlook =
  | { boundTo: string; summary: string; details: ErrorDetails; page?: Omit<ShownCall, 'summary'> }
  /** The result if the preview failed. There is then nothing that a person could agree to; `details` say why. */
  | { boundTo: null; summary: string; details: ErrorDetails }

/** A call that has reached the gate and must be confirmed before it runs. */
export interface CallToConfirm {
  tool: { name: string }
  call: {
    /** The arguments as the client sent them, but without `_meta`. */
    arguments: Record<string, unknown>
    requestId: string
    /** The value that the client sent as the confirm token, unchecked. */
    confirmToken?: unknown
    /**
     * Present if the transport has asked the person at the client and they have consented. `boundTo` is the digest of
     * what they were shown.
     */
    consent?: { boundTo: string }
    /** True if the transport can ask the person at the client with a form. */
    canAsk?: boolean
  }
  callerContext: ConfirmingContext & { client?: string; tokenSays?: { name?: string; clientId?: string } }
  /** The signal of the call, which is aborted as soon as the client disconnects. */
  context: { readonly signal: AbortSignal }
  /** The guardrails that the call touches; absent if there are none. */
  guardrails?: readonly TouchedGuardrail[]
  /** Present if the call needs the approval of two persons, because of a guardrail. */
  persons?: 2
  /** Adds facts to the audit entries of the call, whether the call is admitted or not. */
  note: (facts: AuditFacts) => void
  /**
   * Previews the call. `isForPage` is true if a person decides on a page, which shows more than an answer does. Rejects
   * if the client has disconnected, and with `busy` if too many other calls are running.
   */
  look: (isForPage: boolean) => Promise<Outlook>
  /** Computes the digest of what the call would do now. */
  findBinding: () => Promise<string>
}

/** The interface through which the dispatcher asks for the confirmation of calls. */
export interface ConfirmPort {
  /**
   * Resolves if the call was confirmed and may now run; a confirmation is good for only one run. Otherwise rejects with
   * the ToolError that says what must happen first: `confirm_required`, `approval_pending`, `approval_denied`,
   * `confirm_token_replay`, `confirmation_unsupported`, `confirm_unavailable` if the store does not answer, `busy` if
   * the call cannot be previewed because too many others are running, and `invalid_argument` for arguments that have no
   * hash.
   */
  admit(call: CallToConfirm): Promise<Approval>
}
