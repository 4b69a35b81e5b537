/** The names of a release's files, and their checksums. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Names a file as `npm pack` does: `@scope/name` becomes `scope-name`. */
export function fileNameOf({ name, version }: { name: string; version: string }, suffix: string): string {
  return `${name.replace(/^@/, '').replace('/', '-')}-${version}${suffix}`
}

/** Returns the SHA-256 of a file in hexadecimal. */
export function hashOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
