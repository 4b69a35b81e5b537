import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface SyncOptions {
  root: string
  /** If true, files are only compared and not changed. */
  check: boolean
  /** The command that updates the files, for the message. */
  command: string
  /** The files that exist but are no longer generated. */
  surplus?: readonly string[]
  say?: (line: string) => void
}

/**
 * Updates generated files (with `check`, only compares them). Reports which files were outdated and where each of them
 * first differs. `wanted` maps paths below `root` to texts. Returns true if nothing was outdated or all files have been
 * written.
 */
export function syncFiles(
  wanted: ReadonlyMap<string, string>,
  { root, check, command, surplus = [], say = console.error }: SyncOptions,
): boolean {
  const stale: string[] = []
  for (const [path, text] of wanted) {
    const present = readIfThere(join(root, path))
    if (present === text) continue
    stale.push(present === null ? `${path}: missing` : `${path}:${firstDifference(present, text)}`)
    if (check) continue
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  for (const path of surplus) {
    stale.push(`${path}: made from nothing that still exists`)
    if (!check) rmSync(join(root, path))
  }
  for (const line of stale) say(line)
  say(
    stale.length === 0
      ? `${wanted.size} up to date`
      : check
        ? `${stale.length} stale: run ${command} and commit the result`
        : `${stale.length} written`,
  )
  return stale.length === 0 || !check
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function firstDifference(present: string, wanted: string): string {
  const have = present.split('\n')
  const want = wanted.split('\n')
  const index = want.findIndex((line, at) => line !== have[at])
  const at = index === -1 ? want.length : index
  return `${at + 1}\n  - ${have[at] ?? '(end of file)'}\n  + ${want[at] ?? '(end of file)'}`
}
