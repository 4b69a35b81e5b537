import { hkdfSync } from 'node:crypto'

const KEY_BYTES = 32

/**
 * The key of the session cookie, from the key-encryption key of the keystore (32 bytes): every replica derives the same one, nobody has
 * to configure it, and its label keeps it apart from what protects the credentials (RFC 5869, 3.2).
 */
export const deriveSessionKey = (kek: Buffer): Buffer => derive(kek, 'svc-mcp setup session cookie v1')

/** The key that ties CSRF tokens to a person, from the session key. */
export const deriveCsrfKey = (sessionKey: Buffer): Buffer => derive(sessionKey, 'svc-mcp setup csrf token v1')

const derive = (key: Buffer, label: string) => Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), label, KEY_BYTES))
