import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Computes a hash of the version of Node.js and of all files of the project that git tracks or does not ignore. Returns
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
      // A file that is still in git's index but was deleted counts as an empty file with another name.
      if (existsSync(whole)) hash.update(createHash('sha256').update(readFileSync(whole)).digest())
    }
    return hash.digest('hex')
  } catch {
    return undefined
  }
}

/** Creates a record, kept in a file, of the state of the project for which something last succeeded. */
export function rememberSuccess(path: string, hash: string | undefined) {
  return {
    /** Returns true if it has succeeded for exactly this state of the project. */
    isKnown: () => hash !== undefined && existsSync(path) && readFileSync(path, 'utf8') === hash,
    /** Records whether it has succeeded for the current state. */
    note(succeeded: boolean): void {
      rmSync(path, { force: true })
      if (!succeeded || hash === undefined) return
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, hash)
    },
  }
}
