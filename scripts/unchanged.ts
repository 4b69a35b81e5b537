import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Computes a hash of all files of the project that git keeps or would keep, and of the version of Node.js. Returns
 * undefined outside of a git repository.
 */
export function hashOfProject(root: string): string | undefined {
  try {
    const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const hash = createHash('sha256').update(process.version)
    for (const path of new Set(
      listed
        .split('\0')
        .filter((name) => name !== '')
        .sort(),
    )) {
      const whole = join(root, path)
      hash.update(`\0${path}\0`)
      // A file that was deleted and is still in git's index counts as an empty one with another name.
      if (existsSync(whole)) hash.update(createHash('sha256').update(readFileSync(whole)).digest())
    }
    return hash.digest('hex')
  } catch {
    return undefined
  }
}

/** Remembers in a file for which state of the project something succeeded. */
export function rememberSuccess(path: string, hash: string | undefined) {
  return {
    /** Whether it has succeeded for exactly this state. */
    isKnown: () => hash !== undefined && existsSync(path) && readFileSync(path, 'utf8') === hash,
    /** Notes whether it has succeeded now. */
    note(succeeded: boolean): void {
      rmSync(path, { force: true })
      if (!succeeded || hash === undefined) return
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, hash)
    },
  }
}
