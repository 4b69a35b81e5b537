import { createPublicKey } from 'node:crypto'
import { createVerifier, TokenError } from 'fast-jwt'
import type { Identity } from '../../schemas/caller.js'
import type { OAuthConfig } from '../../schemas/config.js'
import type { SigningKey } from './fetch-keys.js'
import { checkIssuer, readClaims, type ReadClaims } from './read-claims.js'
import { createHeadReader, decodePart, type Head, InvalidTokenError } from './read-token.js'
import type { SigningKeys } from './signing-keys.js'

interface TokenVerifierOptions {
  oauth: OAuthConfig
  keys: Pick<SigningKeys, 'find' | 'refetch'>
  /** Milliseconds since the epoch. */
  now: () => number
}

interface TokenVerifier {
  /**
   * The identity an access token stands for. Rejects with InvalidTokenError for a bad one, and with ToolError `keys_unavailable`
   * when there is nothing to check it with.
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
    // A token of another provider must not make us ask ours for keys.
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
    if (!claims.hasRequiredScope) throw new InvalidTokenError('missing required scope', 'insufficient_scope')
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

/** How long a verified signature is remembered: milliseconds. */
const REMEMBER_MS = 30_000
/** Tokens remembered for each key. */
const MOST_TOKENS = 2000

type Payload = Record<string, unknown>

/**
 * Makes the check of signatures: the payload of a token that this key has signed, the same object again for the same
 * token while it is remembered. What is remembered belongs to the key and is gone with it. Times and claims are the
 * caller's to check, every time.
 *
 * The check throws InvalidTokenError.
 */
function createSignatureCheck(): (token: string, key: SigningKey) => Payload {
  const verifiers = new WeakMap<SigningKey, (token: string) => Payload>()
  return (token, key) => {
    let verify = verifiers.get(key)
    if (verify === undefined) verifiers.set(key, (verify = makeVerifier(key)))
    try {
      return verify(token)
    } catch (error) {
      if (error instanceof TokenError)
        throw new InvalidTokenError(isUnreadable(error) ? 'malformed token' : 'signature mismatch')
      throw error
    }
  }
}

/** The fault was found before the signature was checked. */
const isUnreadable = ({ code }: TokenError) =>
  code === TokenError.codes.malformed || code === TokenError.codes.invalidPayload

function makeVerifier(key: SigningKey): (token: string) => Payload {
  return createVerifier({
    key: createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }) as string,
    algorithms: [key.alg],
    cache: MOST_TOKENS,
    cacheTTL: REMEMBER_MS,
    ignoreExpiration: true,
    ignoreNotBefore: true,
  })
}

/** Seconds by which the provider's clock and ours may differ (D14). */
const SKEW = 30
/** Seconds. A token with a longer life is no better than a password. */
const LONGEST_LIFE = 24 * 3600

/** Throws InvalidTokenError unless the claims are valid at `now`, in milliseconds since the epoch. */
function checkTimes({ exp, nbf, iat }: Pick<ReadClaims, 'exp' | 'nbf' | 'iat'>, now: number): void {
  const seconds = now / 1000
  if (seconds >= exp + SKEW) throw new InvalidTokenError('exp passed')
  if (nbf !== undefined && nbf > seconds + SKEW) throw new InvalidTokenError('nbf not reached')
  if (iat !== undefined && iat > seconds + SKEW) throw new InvalidTokenError('iat in the future')
  if (exp - (iat ?? seconds) > LONGEST_LIFE) throw new InvalidTokenError('lifetime too long')
}
