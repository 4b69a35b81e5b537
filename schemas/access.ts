import type { Identity, Owner } from './caller.js'
import type { Revocation } from './state.js'

/** The part of an identity on which a revocation depends. */
export type Holder = Owner & Pick<Identity, 'issuedAt'>

/** The checks that end the access of people whom the operator has revoked (D282). */
export interface AccessCheck {
  /**
   * Returns true if the access of the identity was revoked after its token or session was issued, or for a time that is
   * not over. `known` is the revocation, if it was already read when the request was admitted. If the store cannot be
   * read, the last revocation that this process has read counts: reading continues while the store is away. Never rejects.
   */
  readonly isRevoked: (identity: Holder, known?: Revocation | null) => boolean | Promise<boolean>
  /**
   * Returns true if the access of the owner was revoked after something was issued, asked or decided at the time `at`,
   * in milliseconds since the epoch. Rejects if the store cannot be read.
   */
  readonly isRevokedSince: (owner: Owner, at: number) => Promise<boolean>
  /**
   * Resolves if a call of the identity may send its next change. Otherwise, or if the store cannot be read, rejects with
   * PceError `write_refused`, whose reason says which of the two is the case.
   */
  readonly requireWrite: (identity: Holder) => Promise<void>
}

/** The reason in refused tokens, in the metrics and in the errors of calls that were running. */
export const ACCESS_REVOKED = 'access revoked'
