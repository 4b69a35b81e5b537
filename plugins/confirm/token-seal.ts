import { createDecoder, createSigner, createVerifier } from 'fast-jwt'
import { deriveTokenKeys, type MasterKeys } from './seals.js'

/** The `typ` that distinguishes a confirm token from every other JWT (RFC 8725, 3.11). */
const TYPE = 'confirm+jwt'

/**
 * Creates the functions that sign and verify confirm tokens, which are compact JWTs (HS256). They do not check times,
 * so that an expired token can still be read.
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
     * Returns the claims of a token that was signed with one of the server's keys and is written exactly as it was
     * signed; returns null for any other string.
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
 * Returns true if all three parts of a token are base64url in canonical form (RFC 4648, 3.5). The last character of a
 * part can contain meaningless bits. Without this check, the same token could therefore be written in a second way and
 * pass as another token.
 */
function isCanonical(token: string): boolean {
  const parts = token.split('.')
  return parts.length === 3 && parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}
