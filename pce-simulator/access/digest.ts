import { hash, timingSafeEqual } from 'node:crypto'

/** Hashes a secret. The simulator stores only this digest, never the secret. */
export function digest(secret: string): string {
  return hash('sha256', secret)
}

export function matchesDigest(given: string, kept: unknown): boolean {
  return typeof kept === 'string' && timingSafeEqual(Buffer.from(digest(given)), Buffer.from(kept))
}
