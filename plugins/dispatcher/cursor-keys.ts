import { createHmac, hkdfSync } from 'node:crypto'
import type { CallerContext } from './call.js'

/**
 * Derives the key that signs cursors (32 bytes) from another key that all replicas share, so that the derived key is
 * the same in all replicas, too. HKDF (RFC 5869), with a label that is used for no other key, ensures that neither key
 * reveals anything about the other (D79).
 */
export const deriveCursorKey = (shared: Uint8Array): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', shared, '', 'svc-mcp cursor', 32))

/**
 * Derives the key (32 bytes) that signs the cursors of one caller on one PCE, so that the cursors of one caller are not
 * accepted from another (D79).
 */
export function cursorKeyOf(key: Uint8Array, { caller: { iss, sub }, pce }: CallerContext): Uint8Array {
  const principal = [iss, sub, pce?.origin ?? null, pce?.orgId ?? null]
  return new Uint8Array(createHmac('sha256', key).update(JSON.stringify(principal)).digest())
}
