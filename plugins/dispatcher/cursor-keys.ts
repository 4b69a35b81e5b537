import { createHmac, hkdfSync } from 'node:crypto'
import type { CallerContext } from './call.js'

/**
 * Derives the key that signs cursors (32 bytes) from another key that all replicas share, so that it is the same in all
 * replicas. Because of HKDF (RFC 5869) with a separate label, neither key reveals anything about the other (D79).
 */
export const deriveCursorKey = (shared: Uint8Array): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', shared, '', 'svc-mcp cursor', 32))

/**
 * Derives the key (32 bytes) for the cursors of one caller on one PCE, so that cursors of other callers are not
 * accepted (D79).
 */
export function cursorKeyOf(key: Uint8Array, { caller: { iss, sub }, pce }: CallerContext): Uint8Array {
  const principal = [iss, sub, pce?.origin ?? null, pce?.orgId ?? null]
  return new Uint8Array(createHmac('sha256', key).update(JSON.stringify(principal)).digest())
}
