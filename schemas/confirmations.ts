import type { Owner } from './caller.js'

/** Why a call that needs a confirm token has no usable one (D20). */
export type ConfirmReason = 'missing' | 'malformed' | 'mismatch' | 'expired' | 'stale'

/** What a confirm token is for: one call of one tool by one caller. */
export interface ConfirmedCall {
  owner: Owner
  tool: string
  /** Lowercase hex SHA-256 of the canonical arguments (D19). */
  paramsHash: string
  /** On which PCE it would run, with the organisation; absent for a tool that runs on none. */
  pce?: string
}

/** Who confirms, and on which PCE: what a token takes from the context of its caller. */
export interface ConfirmingContext {
  caller: { iss: string | null; sub: string | null }
  pce: { origin: string; orgId: string } | null
}

/** What a caller has been asked. */
export interface Question {
  /** Milliseconds since the epoch. */
  expiresAt: number
  /** Names what was shown, without saying what it was; absent where nothing could be shown. 64 hex digits. */
  challenge?: string
}

/** What a confirm token says of the call that it lets run. */
export interface Approval {
  /** The digest of what was shown (`Preview.boundTo`). */
  boundTo: string
  paramsHash: string
}

/** What a token says of itself, before any lookup. `jti` names the token without being it. */
export type TokenReading =
  { state: 'missing' | 'malformed' } | { state: 'mismatch'; jti: string } | { state: 'signed'; token: SignedToken }

/** A token whose signature is ours, for this call and this caller. It may have expired, or been used. */
export interface SignedToken {
  jti: string
  /** Milliseconds since the epoch; the token is invalid from this instant on. */
  expiresAt: number
  /** The digest of what was shown to the person who confirmed, where one was asked. */
  boundTo?: string
}

/** `spent`: the caller alone may run the call, once. */
export type Spending = 'spent' | 'replayed' | 'expired' | 'stale'

export interface MintedToken {
  /** The secret. */
  token: string
  /** Names it in the audit log. */
  jti: string
  /** Seconds. */
  expiresIn: number
}

/** Confirm tokens, for the gate that asks for them and the route that hands them out. */
export interface Confirmations {
  /** Throws ToolError `invalid_argument {problems}` for arguments without a canonical form (RFC 8785). */
  hash(args: Record<string, unknown>): string
  /**
   * Whose call of which tool a token is for. Throws ToolError `server_misconfigured` where nobody has logged in.
   *
   * @param context the caller, and the PCE that the call would run on.
   */
  describe(context: ConfirmingContext, tool: string, paramsHash: string): ConfirmedCall
  /**
   * Keeps what the caller has been shown, so that a token minted for the call within its lifetime carries it. `boundTo` null: nothing
   * could be shown, and nothing is kept. A caller has a bounded number of open questions; the one that ends first makes room. Rejects
   * with ToolError `confirm_unavailable`.
   */
  ask(call: ConfirmedCall, boundTo: string | null): Promise<Question>
  /**
   * Rejects with ToolError `confirm_required {reason: stale, params_hash}` where `challenge` does not name what was shown last, and
   * with `confirm_unavailable`. Without one the token is for what was shown last (D21).
   */
  mint(call: ConfirmedCall, challenge?: string): Promise<MintedToken>
  /** `token` as it came from the client: anything. Never throws. */
  read(token: unknown, call: ConfirmedCall): TokenReading
  /**
   * Uses the token up: of all attempts in any number of processes exactly one ever resolves with `spent`, and then that is on the
   * disk. Any other outcome leaves it as it was. `findBinding` looks up the digest of what the call would do now, which may take longer
   * than a token lives (D76); what it rejects with comes through, unless the token turns out to have been used. A token that carries
   * no digest is `stale`: nobody was shown what the call does (D75). Rejects with ToolError `confirm_unavailable` when the store does
   * not answer, and with the reason of `signal` where that is aborted before the token is claimed.
   */
  spend(token: SignedToken, findBinding: () => Promise<string>, signal?: AbortSignal): Promise<Spending>
}
