import { createDecoder, createSigner, createVerifier } from 'fast-jwt'
import { deriveTokenKeys, type MasterKeys } from './seals.js'

/** Says that a JWT is a confirm token and nothing else (RFC 8725, 3.11). */
const TYPE = 'confirm+jwt'

/** The seal of confirm tokens, which travel through clients as compact JWTs (HS256). It does not judge time: an expired token still opens. */
export function createTokenSeal(masters: MasterKeys) {
  const keys = deriveTokenKeys(masters)
  const { kid, secret } = keys[0]!
  const sign = createSigner({ algorithm: 'HS256', key: secret, kid, header: { alg: 'HS256', typ: TYPE } })
  const decode = createDecoder({ complete: true })
  const verifiers = new Map(keys.map((key) => [key.kid, createTokenVerifier(key.secret)]))
  return {
    sign,
    /** The claims of a token that one of our keys signed, spelled exactly as it was signed; null for everything else. */
    verify(token: string): unknown {
      if (!isCanonical(token)) return null
      try {
        const { header } = decode(token) as { header: { kid?: unknown } }
        return verifiers.get(String(header.kid))?.(token) ?? null
      } catch {
        // Whatever is wrong with it, it is not ours.
        return null
      }
    },
  }
}

const createTokenVerifier = (key: Buffer) =>
  createVerifier({ key, algorithms: ['HS256'], checkTyp: TYPE, ignoreExpiration: true, ignoreNotBefore: true })

/**
 * Whether the three parts are base64url in their one spelling (RFC 4648, 3.5): the last character of a part may have bits that mean nothing,
 * and a second spelling of a token must not pass for another one.
 */
function isCanonical(token: string): boolean {
  const parts = token.split('.')
  return parts.length === 3 && parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}
