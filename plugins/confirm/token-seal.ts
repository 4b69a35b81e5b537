import { createDecoder, createSigner, createVerifier } from 'fast-jwt'
import { deriveTokenKeys, type MasterKeys } from './seals.js'

/** Marks a JWT as a confirm token and nothing else (RFC 8725, 3.11). */
const TYPE = 'confirm+jwt'

/**
 * Creates the seal of confirm tokens, which pass through clients as compact JWTs (HS256). The seal does not check
 * times, so an expired token can still be opened.
 */
export function createTokenSeal(masters: MasterKeys) {
  const keys = deriveTokenKeys(masters)
  const { kid, secret } = keys[0]!
  const sign = createSigner({ algorithm: 'HS256', key: secret, kid, header: { alg: 'HS256', typ: TYPE } })
  const decode = createDecoder({ complete: true })
  const verifiers = new Map(keys.map((key) => [key.kid, createTokenVerifier(key.secret)]))
  return {
    sign,
    /**
     * Returns the claims of a token that one of the server's keys signed, if its spelling is exactly the signed one, or
     * null for anything else.
     */
    verify(token: string): unknown {
      if (!isCanonical(token)) return null
      try {
        const { header } = decode(token) as { header: { kid?: unknown } }
        return verifiers.get(String(header.kid))?.(token) ?? null
      } catch {
        // Any error means that this server did not sign the token.
        return null
      }
    },
  }
}

const createTokenVerifier = (key: Buffer) =>
  createVerifier({ key, algorithms: ['HS256'], checkTyp: TYPE, ignoreExpiration: true, ignoreNotBefore: true })

/**
 * Whether the three parts are base64url in canonical spelling (RFC 4648, 3.5). The last character of a part can contain
 * meaningless bits, and a second spelling of a token must not pass as another token.
 */
function isCanonical(token: string): boolean {
  const parts = token.split('.')
  return parts.length === 3 && parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}
