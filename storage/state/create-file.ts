import { randomBytes } from 'node:crypto'
import { closeSync, fchmodSync, fsyncSync, linkSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'libsql'
import { inWords } from '../../schemas/config.js'
import { checkPlace, checkRoom, codeOf, nearestFolder, type Place, refuse, remedyOf } from './place-file.js'
import { CREATE_FILE } from './tables.js'

/**
 * Creates a new, empty file, and its missing directories with mode 0700. The file is first completed under another
 * name, with mode 0600 from the start regardless of the umask, and then linked to its own name. If the process is
 * killed meanwhile, there is either no file or a complete one. If several processes start together, one of them creates
 * the file, and all of them use it.
 *
 * @returns the first directory that had to be created, null if none had to be; undefined if another process was faster.
 * @throws {StartupError}
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
    if (checkPlace(place).length > 0) return undefined
    checkRoom(place)
    const folder = nearestFolder(directory)
    return refuse(place, `cannot be created: ${inWords(error)} in '${folder}'`, remedyOf(error, folder, place))
  }
}

const DRAFT = '.new-'
const ABANDONED_MS = 60_000

/**
 * Removes unfinished files that killed processes have left. They are recognised by their age, because a file is
 * unfinished only for a short time.
 */
export function removeDrafts(place: Place): void {
  const directory = dirname(place.path)
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(`${basename(place.path)}${DRAFT}`)) continue
    const draft = join(directory, name)
    const age = Date.now() - (statSync(draft, { throwIfNoEntry: false })?.mtimeMs ?? Infinity)
    if (age > ABANDONED_MS) rmSync(draft, { force: true })
  }
}

/** Creates an empty file that only its owner can ever read or write. Throws if the file exists. */
export function makeEmpty(path: string): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    fchmodSync(file, 0o600)
  } finally {
    closeSync(file)
  }
}

/**
 * Creates a directory and its missing parent directories, one by one. The option `recursive` of Node.js is not used,
 * because it never returns if the file system denies that a parent directory exists, as below /proc.
 *
 * @returns the first directory that was created; null if none was.
 */
function makeDirectory(directory: string): string | null {
  const above = nearestFolder(directory)
  const missing: string[] = []
  for (let folder = directory; folder !== above; folder = dirname(folder)) missing.unshift(folder)
  const made = missing.filter((folder) => {
    try {
      mkdirSync(folder, { mode: 0o700 })
    } catch (error) {
      // Another process that starts at the same time may have created the folder first.
      if (codeOf(error) !== 'EEXIST') throw error
      return false
    }
    syncDirectory(dirname(folder))
    return true
  })
  return made[0] ?? null
}

/**
 * Flushes a directory to the disk, because the name of a new file survives a power failure only if the directory does.
 */
export function syncDirectory(directory: string): void {
  const opened = openSync(directory, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
