import type { Owner } from './caller.js'

/** Why a call that needs a confirm token does not have a usable one (D20). */
export type ConfirmReason = 'missing' | 'malformed' | 'mismatch' | 'expired' | 'stale'

/** What a confirm token is valid for: one call of one tool by one caller. */
export interface ConfirmedCall {
  owner: Owner
  tool: string
  /** Lowercase hex SHA-256 of the canonical arguments (D19). */
  paramsHash: string
  /** The PCE and organisation that the call would run on; absent if the tool uses no PCE. */
  pce?: string
}

/** What a token takes from the caller's context: the person who confirms, and the PCE. */
export interface ConfirmingContext {
  caller: { iss: string | null; sub: string | null }
  pce: { origin: string; orgId: string } | null
}

/** A question that a caller has been asked. */
export interface Question {
  /** Milliseconds since the epoch. */
  expiresAt: number
  /** Identifies what was shown without revealing it: 64 hex digits. Absent if nothing could be shown. */
  challenge?: string
}

/** What a confirm token says about the call that it releases. */
export interface Approval {
  /** Digest of what was shown (`Preview.boundTo`). */
  boundTo: string
  paramsHash: string
}

/** What can be read from a token without any lookup. `jti` identifies the token without being a secret. */
export type TokenReading =
  { state: 'missing' | 'malformed' } | { state: 'mismatch'; jti: string } | { state: 'signed'; token: SignedToken }

/** A token with a valid signature for this call and this caller. It may have expired or been used. */
export interface SignedToken {
  jti: string
  /** Milliseconds since the epoch; from this instant on, the token is invalid. */
  expiresAt: number
  /** Digest of what was shown to the person who confirmed, if one was asked. */
  boundTo?: string
}

/** `spent`: only this caller may now run the call, once. */
export type Spending = 'spent' | 'replayed' | 'expired' | 'stale'

export interface MintedToken {
  /** The token itself, which is a secret. */
  token: string
  /** Identifies the token in the audit log. */
  jti: string
  /** Seconds. */
  expiresIn: number
}

/** Confirm tokens, for the gate that requires them and the route that hands them out. */
export interface Confirmations {
  /**
   * Hashes the arguments. Throws ToolError `invalid_argument {problems}` for arguments without a canonical form (RFC
   * 8785).
   */
  hash(args: Record<string, unknown>): string
  /**
   * Describes the call that a token is for. Throws ToolError `server_misconfigured` if nobody has logged in.
   *
   * @param context the caller, and the PCE that the call would run on.
   */
  describe(context: ConfirmingContext, tool: string, paramsHash: string): ConfirmedCall
  /**
   * Remembers what the caller has been shown, so that a token issued for the call during that time carries it. If
   * `boundTo` is null, nothing could be shown and nothing is remembered. The number of open questions per caller is
   * limited; the one that expires first makes room. Rejects with ToolError `confirm_unavailable`.
   */
  ask(call: ConfirmedCall, boundTo: string | null): Promise<Question>
  /**
   * Issues a token. Without `challenge`, it is for what was shown last (D21). Rejects with ToolError `confirm_required
   * {reason: stale, params_hash}` if `challenge` does not match what was shown last, and with `confirm_unavailable`.
   */
  mint(call: ConfirmedCall, challenge?: string): Promise<MintedToken>
  /** Reads `token`, which comes from the client and may be anything. Never throws. */
  read(token: unknown, call: ConfirmedCall): TokenReading
  /**
   * Uses the token up. Of all attempts in any number of processes, exactly one resolves with `spent`, after that is on
   * disk; any other outcome leaves the token unused. `findBinding` computes the digest of what the call would do now,
   * which may take longer than a token lives (D76); its errors are passed on, unless the token has been used in the
   * meantime. A token without a digest is `stale`, because nobody was shown what the call does (D75). Rejects with
   * ToolError `confirm_unavailable` if the store does not respond, and with the reason of `signal` if that aborts
   * before the token is claimed.
   */
  spend(token: SignedToken, findBinding: () => Promise<string>, signal?: AbortSignal): Promise<Spending>
}
