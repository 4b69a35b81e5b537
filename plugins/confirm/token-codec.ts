import { hkdfSync } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { createDecoder, createSigner, createVerifier } from 'fast-jwt'
import type { ConfirmConfig } from '../../schemas/config.js'

/** Says that a JWT is a confirm token and nothing else (RFC 8725, 3.11). */
const TYPE = 'confirm+jwt'
const VERSION = 1
/** Issuers and subjects are bounded, so a longer text is not one of our tokens. */
const LONGEST = 8192

const Claims = Type.Object(
  {
    v: Type.Literal(VERSION),
    jti: Type.String({ pattern: '^[0-9a-f]{32}$' }),
    /** Of the caller's access token, as `sub`. */
    iss: Type.String({ minLength: 1 }),
    sub: Type.String({ minLength: 1 }),
    aud: Type.String({ minLength: 1 }),
    tool: Type.String({ minLength: 1 }),
    params_hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    /** The PCE that the call was shown for. */
    pce: Type.Optional(Type.String({ minLength: 1 })),
    /** Whole seconds since the epoch. */
    iat: Type.Integer(),
    exp: Type.Integer(),
    /** The digest of what was shown, if anything was. */
    set: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
)
type ConfirmClaims = Static<typeof Claims>

interface TokenCodec {
  sign(claims: Omit<ConfirmClaims, 'v'>): string
  /** The claims of a token that one of our keys signed, spelled exactly as it was signed; null for everything else. */
  verify(token: string): ConfirmClaims | null
}

/** Confirm tokens as compact JWTs, HS256. Does not judge time: an expired token still decodes. */
export function createTokenCodec(keys: readonly [TokenKey, ...TokenKey[]]): TokenCodec {
  const [{ kid, secret }] = keys
  const sign = createSigner({ algorithm: 'HS256', key: secret, kid, header: { alg: 'HS256', typ: TYPE } })
  const decode = createDecoder({ complete: true })
  const verifiers = new Map(keys.map((key) => [key.kid, verifierOf(key)]))
  return {
    sign: (claims) => sign({ v: VERSION, ...claims }),
    verify(token) {
      if (token.length > LONGEST || !isCanonical(token)) return null
      try {
        const { header } = decode(token) as { header: { kid?: unknown } }
        const claims: unknown = verifiers.get(String(header.kid))?.(token)
        return Value.Check(Claims, claims) ? claims : null
      } catch {
        // Whatever is wrong with it, it is not ours.
        return null
      }
    },
  }
}

const verifierOf = ({ secret }: TokenKey) =>
  createVerifier({ key: secret, algorithms: ['HS256'], checkTyp: TYPE, ignoreExpiration: true, ignoreNotBefore: true })

/**
 * Whether the three parts are base64url in their one spelling (RFC 4648, 3.5): the last character of a part may have bits that mean
 * nothing, and a second spelling of a token must not pass for another one.
 */
function isCanonical(token: string): boolean {
  const parts = token.split('.')
  return parts.length === 3 && parts.every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}

/** A signing key with the name that tokens give it. */
interface TokenKey {
  /** A fingerprint: tells keys apart and says nothing about them. */
  kid: string
  secret: Buffer
}

/**
 * What signs confirm tokens and what still verifies them, the signing key first. Each is derived from the operator's key (HKDF, RFC
 * 5869) under a label of its own, so that the same bytes used elsewhere never make a valid token.
 */
export function deriveKeys({ hmacKey, previousHmacKey }: ConfirmConfig): [TokenKey, ...TokenKey[]] {
  const current = derive(hmacKey)
  return previousHmacKey === undefined ? [current] : [current, derive(previousHmacKey)]
}

function derive(key: Buffer): TokenKey {
  const expand = (label: string, length: number) => Buffer.from(hkdfSync('sha256', key, '', label, length))
  return { kid: expand('svc-mcp confirm token kid', 8).toString('hex'), secret: expand('svc-mcp confirm token', 32) }
}
