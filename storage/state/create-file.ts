import { randomBytes } from 'node:crypto'
import { closeSync, fchmodSync, fsyncSync, linkSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'libsql'
import { checkPlace, codeOf, refuse, type Place } from './check-place.js'
import { CREATE_FILE } from './schema.js'

/**
 * Makes a new, empty file with its directories (0700). It is made whole under another name, 0600 from birth whatever the umask, and then
 * linked to its own, so that a process that is killed here leaves either no file or a complete one, and of several processes that start
 * together one makes the file that all of them use.
 *
 * @returns the first directory that had to be made for it, null where none had; undefined when another process was faster.
 * @throws {StartupError} in one line.
 */
export function createFile(place: Place): string | null | undefined {
  const directory = dirname(place.path)
  try {
    const madeDirectory = makeDirectory(directory)
    const draft = `${place.path}${DRAFT}${process.pid}-${randomBytes(6).toString('hex')}`
    try {
      makeEmpty(draft)
      const db = new Database(draft)
      try {
        db.exec(CREATE_FILE)
      } finally {
        db.close()
      }
      linkSync(draft, place.path)
    } finally {
      for (const end of ['', '-wal', '-shm']) rmSync(draft + end, { force: true })
    }
    syncDirectory(directory)
    return madeDirectory
  } catch (error) {
    if (checkPlace(place)) return undefined
    return refuse(place, `cannot be created: ${codeOf(error)}`)
  }
}

const DRAFT = '.new-'
const ABANDONED_MS = 60_000

/** Removes what processes left that were killed while they made the file: drafts that are too old to be in the making. */
export function removeDrafts(place: Place): void {
  const directory = dirname(place.path)
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(`${basename(place.path)}${DRAFT}`)) continue
    const draft = join(directory, name)
    const age = Date.now() - (statSync(draft, { throwIfNoEntry: false })?.mtimeMs ?? Infinity)
    if (age > ABANDONED_MS) rmSync(draft, { force: true })
  }
}

function makeEmpty(path: string): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

function makeDirectory(directory: string): string | null {
  const first = mkdirSync(directory, { recursive: true, mode: 0o700 })
  if (first === undefined) return null
  for (let made = directory; made.length >= first.length; made = dirname(made)) syncDirectory(dirname(made))
  return first
}

/** A new name in a directory survives a power failure only once the directory is on the disk. */
function syncDirectory(directory: string): void {
  const opened = openSync(directory, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
