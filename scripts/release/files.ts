/** The files of a release: what they are called, and what they are checked by. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** As `npm pack` names a tarball: `@scope/name` becomes `scope-name`. */
export function fileNameOf({ name, version }: { name: string; version: string }, suffix: string): string {
  return `${name.replace(/^@/, '').replace('/', '-')}-${version}${suffix}`
}

/** SHA-256 of a file, as hexadecimal digits. */
export function hashOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
