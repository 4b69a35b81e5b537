/**
 * Why a request is not let in: the short reasons that the log and the challenge show. They are ours alone, so that
 * nothing a client sent can get into either.
 */
export type Reason =
  | 'no token'
  | 'malformed authorization header'
  | 'token too large'
  | 'malformed token'
  | 'encrypted token'
  | 'alg not allowed'
  | 'typ not allowed'
  | 'crit not supported'
  | 'no key for this kid and alg'
  | 'signature mismatch'
  | 'iss mismatch'
  | 'aud mismatch'
  | 'not an access token'
  | 'exp missing'
  | 'exp passed'
  | 'nbf not reached'
  | 'iat in the future'
  | 'lifetime too long'
  | 'sub missing or malformed'
  | 'missing required scope'

/** RFC 6750, 3.1. */
export type BearerError = 'invalid_token' | 'insufficient_scope'

/** A token that is missing or bad (S10, S12): always a 401. */
export class InvalidTokenError extends Error {
  override readonly name = 'InvalidTokenError'
  /** The token is the provider's own: old, or for something else, but nobody made it up. */
  isGenuine = false
  /** `error` is null for a request that brought no token at all: its challenge names no error. */
  constructor(
    readonly reason: Reason,
    readonly error: BearerError | null = 'invalid_token',
  ) {
    super(reason)
  }
}
