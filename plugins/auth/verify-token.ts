import { createPublicKey, hash } from 'node:crypto'
import { createVerifier, TokenError } from 'fast-jwt'
import type { Identity } from '../../schemas/caller.js'
import type { OAuthConfig } from '../../schemas/config.js'
import type { SigningKey } from './fetch-keys.js'
import { checkIssuer, readClaims, type ReadClaims } from './read-claims.js'
import { createHeadReader, decodePart, type Head, InvalidTokenError } from './read-token.js'
import type { SigningKeys } from './signing-keys.js'

interface TokenVerifierOptions {
  oauth: OAuthConfig
  keys: Pick<SigningKeys, 'edition' | 'find' | 'refetch'>
  /** Returns milliseconds since the epoch. */
  now: () => number
}

interface TokenVerifier {
  /**
   * Verifies an access token and returns its identity. The result is not a promise if the token was verified a moment
   * ago. Throws or rejects with InvalidTokenError if the token is invalid, and with ToolError `keys_unavailable` if
   * there are no keys with which it could be verified.
   */
  verify(token: string): Identity | Promise<Identity>
}

/** Creates the verifier of access tokens. It follows the requirements S10, D13, D14 and RFC 8725. */
export function createTokenVerifier({ oauth, keys, now }: TokenVerifierOptions): TokenVerifier {
  const readHead = createHeadReader()
  const checkSignature = createSignatureCheck()
  const remembered = new Map<string, Remembered>()

  async function fetchKey({ alg, kid }: Head, payload: string): Promise<SigningKey> {
    // The issuer is checked before the keys are downloaded again, so that a token of another provider does not cause a
    // download of this provider's keys.
    checkIssuer(decodePart(payload), oauth)
    await keys.refetch()
    const fetched = await keys.find(alg, kid)
    if (fetched === null) throw new InvalidTokenError('no key for this kid and alg')
    return fetched
  }

  /**
   * Verifies the signature of a token, and reads everything in it whose validity does not depend on the current time.
   */
  async function read(token: string, digest: string): Promise<ReadClaims> {
    const { head, payload } = readHead(token)
    // The current set of keys is noted before the key is looked up. If new keys arrive during the lookup, the found key
    // may not belong to the new set.
    const edition = keys.edition()
    const key = (await keys.find(head.alg, head.kid)) ?? (await fetchKey(head, payload))
    checkSignature(token, key)
    const claims = genuine(() => readClaims(decodePart(payload), oauth))
    const [oldest] = remembered.keys()
    if (remembered.size >= MOST_TOKENS && oldest !== undefined) remembered.delete(oldest)
    remembered.set(digest, { edition, claims, until: now() + REMEMBER_MS })
    return claims
  }

  /**
   * Returns the remembered claims of a token. Returns null if the token must be verified anew: it is unknown, its
   * verification was too long ago, or the keys have changed or must be refreshed.
   */
  function recall(digest: string): ReadClaims | null {
    const known = remembered.get(digest)
    if (known === undefined) return null
    if (now() < known.until && known.edition !== null && known.edition === keys.edition()) return known.claims
    remembered.delete(digest)
    return null
  }

  const judge = (claims: ReadClaims): Identity =>
    genuine(() => {
      checkTimes(claims, now())
      if (!claims.hasRequiredScope) throw new InvalidTokenError('missing required scope', 'insufficient_scope')
      return claims.identity
    })

  return {
    verify(token) {
      // The map contains only digests of tokens, never the tokens themselves.
      const digest = hash('sha256', token, 'base64')
      const claims = recall(digest)
      return claims === null ? read(token, digest).then(judge) : judge(claims)
    },
  }
}

interface Remembered {
  /** The set of keys with which the token was verified (see `SigningKeys.edition`). */
  edition: object | null
  claims: ReadClaims
  /** The time until which the claims are remembered, in milliseconds since the epoch. */
  until: number
}

/**
 * Runs a check on a token whose signature has been verified. If the check fails, `isGenuine` of the error is set to
 * true.
 */
function genuine<T>(judge: () => T): T {
  try {
    return judge()
  } catch (error) {
    if (error instanceof InvalidTokenError) error.isGenuine = true
    throw error
  }
}

/** The time, in milliseconds, for which a verified token is remembered. */
const REMEMBER_MS = 30_000
/** Maximum number of verified tokens that are remembered. */
const MOST_TOKENS = 2000

type Payload = Record<string, unknown>

/**
 * Creates the function that checks the signature of a token, but neither its times nor its claims. It throws
 * InvalidTokenError if the signature is not valid.
 */
function createSignatureCheck(): (token: string, key: SigningKey) => void {
  const verifiers = new WeakMap<SigningKey, (token: string) => Payload>()
  return (token, key) => {
    let verify = verifiers.get(key)
    if (verify === undefined) verifiers.set(key, (verify = makeVerifier(key)))
    try {
      verify(token)
    } catch (error) {
      if (error instanceof TokenError)
        throw new InvalidTokenError(isUnreadable(error) ? 'malformed token' : 'signature mismatch')
      throw error
    }
  }
}

/** Returns true if the error means that the token could not be parsed, so that its signature was not checked. */
const isUnreadable = ({ code }: TokenError) =>
  code === TokenError.codes.malformed || code === TokenError.codes.invalidPayload

function makeVerifier(key: SigningKey): (token: string) => Payload {
  return createVerifier({
    key: createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }) as string,
    algorithms: [key.alg],
    ignoreExpiration: true,
    ignoreNotBefore: true,
  })
}

/** Maximum difference between the provider's clock and this server's clock, in seconds (D14). */
const SKEW = 30
/** Maximum lifetime of an accepted token, in seconds. A token that lives longer would be no better than a password. */
const LONGEST_LIFE = 24 * 3600

/** Throws InvalidTokenError unless the token is valid at the time `now`, in milliseconds since the epoch. */
function checkTimes({ exp, nbf, iat }: Pick<ReadClaims, 'exp' | 'nbf' | 'iat'>, now: number): void {
  const seconds = now / 1000
  if (seconds >= exp + SKEW) throw new InvalidTokenError('exp passed')
  if (nbf !== undefined && nbf > seconds + SKEW) throw new InvalidTokenError('nbf not reached')
  if (iat !== undefined && iat > seconds + SKEW) throw new InvalidTokenError('iat in the future')
  if (exp - (iat ?? seconds) > LONGEST_LIFE) throw new InvalidTokenError('lifetime too long')
}
