/** Tokens of any shape, signed with keys that the test knows. */
import { randomUUID, sign as signBytes, type KeyObject } from 'node:crypto'
import { CompactSign, type JWK } from 'jose'
import type { OAuthConfig } from '../../schemas/config.js'
import { keyPairFor } from './key-pairs.js'

export type SigningAlgorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA'

export interface ForgedKey {
  kid: string
  alg: SigningAlgorithm
  privateKey: KeyObject
  publicKey: KeyObject
  /** As a provider publishes it. */
  jwk: JWK
  /**
   * A compact JWS of this payload; a string and bytes are signed as they are, so that it need not be JSON. The header says `alg`,
   * `kid` and `at+jwt` unless `header` says otherwise; a member that is undefined there is left out.
   */
  sign(payload: unknown, header?: Record<string, unknown>): Promise<string>
}

export interface KeyOptions {
  kid?: string
  /** Of an RSA key; 2048 without it. */
  bits?: number
  /** Laid over the published key; undefined removes a member. */
  jwk?: Record<string, unknown>
}

export function forgeKey(alg: SigningAlgorithm = 'RS256', options: KeyOptions = {}): ForgedKey {
  const { kid = randomUUID(), bits = 2048 } = options
  const { privateKey, publicKey } = keyPairFor(alg, bits)
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig', ...options.jwk } as JWK
  return {
    kid,
    alg,
    privateKey,
    publicKey,
    jwk,
    sign(payload, header = {}) {
      const isRaw = typeof payload === 'string' || Buffer.isBuffer(payload)
      const bytes = Buffer.from(isRaw ? payload : JSON.stringify(payload))
      // jose has no part in weak keys.
      if (bits < 2048) {
        const input = `${part({ alg, kid, typ: 'at+jwt', ...header })}.${bytes.toString('base64url')}`
        return Promise.resolve(`${input}.${signBytes('sha256', Buffer.from(input), privateKey).toString('base64url')}`)
      }
      return new CompactSign(bytes).setProtectedHeader({ alg, kid, typ: 'at+jwt', ...header }).sign(privateKey)
    },
  }
}

/** Three parts as they come; objects are encoded, strings stand as they are. */
export const assemble = (header: unknown, payload: unknown, signature: string | Buffer): string =>
  [part(header), part(payload), Buffer.isBuffer(signature) ? signature.toString('base64url') : signature].join('.')

/** One part of a token. */
export const part = (value: unknown): string =>
  typeof value === 'string' ? value : Buffer.from(JSON.stringify(value)).toString('base64url')

/**
 * Claims that this configuration accepts, `now` in milliseconds; `more` is laid over them, undefined removes a claim.
 */
export function claimsFor(
  { issuer, audience, requiredScope }: OAuthConfig,
  more: Record<string, unknown> = {},
  now = Date.now(),
): Record<string, unknown> {
  const seconds = Math.floor(now / 1000)
  return {
    iss: issuer,
    aud: audience,
    sub: 'alice',
    iat: seconds,
    exp: seconds + 600,
    scope: requiredScope,
    ...more,
  }
}
