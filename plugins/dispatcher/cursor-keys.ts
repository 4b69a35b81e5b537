import { createHmac, hkdfSync } from 'node:crypto'
import type { CallerContext } from './call.js'

/**
 * Derives the cursor key of all replicas from a key that they share: HKDF (RFC 5869) with its own label, so that
 * neither key reveals anything about the other (D79). 32 bytes.
 */
export const deriveCursorKey = (shared: Uint8Array): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', shared, '', 'svc-mcp cursor', 32))

/**
 * Derives the key for one caller's cursors on one PCE, so that cursors of other callers are not accepted (D79). 32
 * bytes.
 */
export function cursorKeyOf(key: Uint8Array, { caller: { iss, sub }, pce }: CallerContext): Uint8Array {
  const principal = [iss, sub, pce?.origin ?? null, pce?.orgId ?? null]
  return new Uint8Array(createHmac('sha256', key).update(JSON.stringify(principal)).digest())
}
