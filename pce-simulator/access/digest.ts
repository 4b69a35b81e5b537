import { createHash, timingSafeEqual } from 'node:crypto'

/** Hashes a secret. The simulator stores only this digest, never the secret. */
export function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

export function matchesDigest(given: string, kept: unknown): boolean {
  return typeof kept === 'string' && timingSafeEqual(Buffer.from(digest(given)), Buffer.from(kept))
}
