import { createHash, timingSafeEqual } from 'node:crypto'

/** What is kept of a secret: never the secret itself. */
export function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

export function matchesDigest(given: string, kept: unknown): boolean {
  return typeof kept === 'string' && timingSafeEqual(Buffer.from(digest(given)), Buffer.from(kept))
}
