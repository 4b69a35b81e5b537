import { createPublicKey } from 'node:crypto'
import { createVerifier, TokenError } from 'fast-jwt'
import type { SigningKey } from './select-keys.js'
import { InvalidTokenError } from './invalid-token.js'

/** A verified token costs its signature once in this time: milliseconds. */
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
export function createSignatureCheck(): (token: string, key: SigningKey) => Payload {
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

/** What is wrong was found before the signature was looked at. */
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
