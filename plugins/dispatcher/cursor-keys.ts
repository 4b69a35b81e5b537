import { createHmac, hkdfSync } from 'node:crypto'
import type { CallerContext } from './call.js'

/**
 * The key of the cursors of all replicas, from a key that they share: HKDF (RFC 5869) under a label of its own, so that neither
 * says anything about the other (D79). 32 bytes.
 */
export const deriveCursorKey = (shared: Uint8Array): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', shared, '', 'svc-mcp cursor', 32))

/** The key of one caller's cursors on one PCE, so that no other caller's fit (D79). 32 bytes. */
export function cursorKeyOf(key: Uint8Array, { caller: { iss, sub }, pce }: CallerContext): Uint8Array {
  const principal = [iss, sub, pce?.origin ?? null, pce?.orgId ?? null]
  return new Uint8Array(createHmac('sha256', key).update(JSON.stringify(principal)).digest())
}
