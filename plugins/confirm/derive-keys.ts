import { hkdfSync } from 'node:crypto'
import type { ConfirmConfig } from '../../schemas/config.js'

/** A signing key with the name that tokens give it. */
export interface TokenKey {
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
