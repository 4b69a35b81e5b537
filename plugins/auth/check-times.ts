import { InvalidTokenError } from './invalid-token.js'
import type { ReadClaims } from './read-claims.js'

/** Seconds by which the provider's clock and ours may differ (D14). */
export const SKEW = 30
/** Seconds. A token that lives longer is as good as a password. */
const LONGEST_LIFE = 24 * 3600

/** Whether claims hold at this moment, `now` in milliseconds since the epoch. Throws InvalidTokenError. */
export function checkTimes({ exp, nbf, iat }: Pick<ReadClaims, 'exp' | 'nbf' | 'iat'>, now: number): void {
  const seconds = now / 1000
  if (seconds >= exp + SKEW) throw new InvalidTokenError('exp passed')
  if (nbf !== undefined && nbf > seconds + SKEW) throw new InvalidTokenError('nbf not reached')
  if (iat !== undefined && iat > seconds + SKEW) throw new InvalidTokenError('iat in the future')
  if (exp - (iat ?? seconds) > LONGEST_LIFE) throw new InvalidTokenError('lifetime too long')
}
