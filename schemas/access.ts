import type { Identity, Owner } from './caller.js'
import type { Revocation } from './state.js'

/** The facts about an identity that decide whether a revocation applies to it. */
export type Holder = Owner & Pick<Identity, 'issuedAt'>

/** The checks that stop people whose access the operator has revoked (D282). */
export interface AccessCheck {
  /**
   * Returns true if a revocation applies to the identity: it was made after the identity's token or session was issued,
   * or its time is not over yet. `known` is the revocation, if it was already read when the request was admitted. If
   * the store cannot be read, the last revocation that this process has read is used, so that callers can still read
   * while the store is down. Never rejects.
   */
  readonly isRevoked: (identity: Holder, known?: Revocation | null) => boolean | Promise<boolean>
  /** Does the same for the sender of a request that is arriving (see `Revocations.findOnArrival`). */
  readonly isRevokedOnArrival: AccessCheck['isRevoked']
  /**
   * Returns true if the owner's access was revoked after `at`, a time in milliseconds since the epoch at which
   * something was issued, requested or decided. Rejects if the store cannot be read.
   */
  readonly isRevokedSince: (owner: Owner, at: number) => Promise<boolean>
  /**
   * Resolves if a call of this identity may send its next change. Rejects with PceError `write_refused` if the access
   * was revoked or the store cannot be read; the error's reason says which.
   */
  readonly requireWrite: (identity: Holder) => Promise<void>
}

/**
 * The reason that is stated when access was revoked: in the refusal of a token, in metrics, and in errors of running
 * calls.
 */
export const ACCESS_REVOKED = 'access revoked'
