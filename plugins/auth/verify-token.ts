import type { Identity } from '../../schemas/caller.js'
import type { OAuthConfig } from '../../schemas/config.js'
import { createSignatureCheck } from './check-signature.js'
import { checkTimes } from './check-times.js'
import { decodePart } from './decode-part.js'
import { InvalidTokenError } from './invalid-token.js'
import { checkIssuer, readClaims, type ReadClaims } from './read-claims.js'
import { createHeadReader, type Head } from './read-head.js'
import type { SigningKey } from './select-keys.js'
import type { SigningKeys } from './signing-keys.js'

export interface TokenVerifierOptions {
  oauth: OAuthConfig
  keys: Pick<SigningKeys, 'find' | 'refetch'>
  /** Milliseconds since the epoch. */
  now: () => number
}

export interface TokenVerifier {
  /**
   * Who an access token stands for. Rejects with InvalidTokenError for a bad one, and with ToolError
   * `keys_unavailable` when there is nothing to check it with.
   */
  verify(token: string): Promise<Identity>
}

/** The check of access tokens by S10, D13 and D14, and RFC 8725. */
export function createTokenVerifier({ oauth, keys, now }: TokenVerifierOptions): TokenVerifier {
  const readHead = createHeadReader()
  const checkSignature = createSignatureCheck()
  // A payload is the same object while its token is remembered; what cannot change with time is read from it once.
  const claimsOf = new WeakMap<object, ReadClaims>()

  async function fetchKey({ alg, kid }: Head, payload: string): Promise<SigningKey> {
    // A token of another provider is no reason to ask ours for keys.
    checkIssuer(decodePart(payload), oauth)
    await keys.refetch()
    const fetched = await keys.find(alg, kid)
    if (fetched === null) throw new InvalidTokenError('no key for this kid and alg')
    return fetched
  }

  function checkClaims(verified: object, payload: string): Identity {
    let claims = claimsOf.get(verified)
    if (claims === undefined) {
      claims = readClaims(decodePart(payload), oauth)
      claimsOf.set(verified, claims)
    }
    checkTimes(claims, now())
    if (!claims.hasScope) throw new InvalidTokenError('missing required scope', 'insufficient_scope')
    return claims.identity
  }

  return {
    async verify(token) {
      const { head, payload } = readHead(token)
      const key = (await keys.find(head.alg, head.kid)) ?? (await fetchKey(head, payload))
      const verified = checkSignature(token, key)
      try {
        return checkClaims(verified, payload)
      } catch (error) {
        if (error instanceof InvalidTokenError) error.isGenuine = true
        throw error
      }
    },
  }
}
