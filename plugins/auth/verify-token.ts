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
  /** Milliseconds since the epoch. */
  now: () => number
}

interface TokenVerifier {
  /**
   * The identity an access token stands for, at once where it was verified moments ago. Throws or rejects with InvalidTokenError for a bad
   * one, and with ToolError `keys_unavailable` when there is nothing to check it with.
   */
  verify(token: string): Identity | Promise<Identity>
}

/** The check of access tokens by S10, D13 and D14, and RFC 8725. */
export function createTokenVerifier({ oauth, keys, now }: TokenVerifierOptions): TokenVerifier {
  const readHead = createHeadReader()
  const checkSignature = createSignatureCheck()
  const remembered = new Map<string, Remembered>()

  async function fetchKey({ alg, kid }: Head, payload: string): Promise<SigningKey> {
    // A token of another provider must not make us ask ours for keys.
    checkIssuer(decodePart(payload), oauth)
    await keys.refetch()
    const fetched = await keys.find(alg, kid)
    if (fetched === null) throw new InvalidTokenError('no key for this kid and alg')
    return fetched
  }

  /** What cannot change with time, of a token whose signature it verifies. */
  async function read(token: string, digest: string): Promise<ReadClaims> {
    const { head, payload } = readHead(token)
    // Before the key is looked up: keys that come in meanwhile may be without it.
    const edition = keys.edition()
    const key = (await keys.find(head.alg, head.kid)) ?? (await fetchKey(head, payload))
    checkSignature(token, key)
    const claims = genuine(() => readClaims(decodePart(payload), oauth))
    const [oldest] = remembered.keys()
    if (remembered.size >= MOST_TOKENS && oldest !== undefined) remembered.delete(oldest)
    remembered.set(digest, { edition, claims, until: now() + REMEMBER_MS })
    return claims
  }

  /** Null where the token has to be verified again: other keys are in use than then, or they are due. */
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
      // The tokens themselves are not kept.
      const digest = hash('sha256', token, 'base64')
      const claims = recall(digest)
      return claims === null ? read(token, digest).then(judge) : judge(claims)
    },
  }
}

interface Remembered {
  /** Of the keys that it was verified with. */
  edition: object | null
  claims: ReadClaims
  /** Milliseconds since the epoch. */
  until: number
}

/** Judges a token whose signature has been verified. */
function genuine<T>(judge: () => T): T {
  try {
    return judge()
  } catch (error) {
    if (error instanceof InvalidTokenError) error.isGenuine = true
    throw error
  }
}

/** How long a verified token is remembered: milliseconds. */
const REMEMBER_MS = 30_000
/** Tokens remembered. */
const MOST_TOKENS = 2000

type Payload = Record<string, unknown>

/** Makes the check of signatures, which leaves times and claims to its caller. The check throws InvalidTokenError. */
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

/** The fault was found before the signature was checked. */
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
