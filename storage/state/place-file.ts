import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Database from 'libsql'
import { StartupError } from '../../schemas/config.js'
import { CREATE_FILE } from './tables.js'

/** What SQLite keeps beside the file, by the ends of their names. */
const COMPANIONS = ['-wal', '-shm', '-journal']
const PAGE_BYTES = 4096

/** Where a file is, and how the operator knows it. */
export interface Place {
  path: string
  /** The variable that names the path; every message begins with it. */
  variable: string
  /** Takes a line for the operator about something that was repaired, or is unwise. */
  warn: (line: string) => void
}

/** The beginning of every line about the file. */
export const nameOfPlace = ({ variable, path }: Pick<Place, 'variable' | 'path'>): string => `${variable} '${path}'`

/**
 * Whether the file exists. Refuses what must not be opened, before SQLite touches it: anything but a regular file of this user, an
 * empty one, one without access. Permission bits for others are taken away with a warning, since container platforms add the
 * group's to every file of a volume at every mount (D41). Only names are looked at: opening and closing the file here would drop
 * the locks that another connection of this process holds on it (POSIX).
 *
 * @throws {StartupError} in one line.
 */
export function checkPlace(place: Place): boolean {
  const file = lookAt(place, place.path)
  const companions = COMPANIONS.map((end) => ({ path: place.path + end, stats: lookAt(place, place.path + end) }))
  if (file === null) {
    const orphan = companions.find(({ stats }) => stats !== null && stats.size > 0)
    // Looked at again, since another process may have made the file in between.
    if (orphan && lookAt(place, place.path) !== null) return checkPlace(place)
    if (orphan) refuse(place, `is missing, but '${orphan.path}' is there: restore the file, or move both away`)
    return false
  }
  if (file.size === 0) refuse(place, 'is empty: restore it from a backup, or move it away to start fresh')
  for (const [path, bits] of [
    [place.path, constants.R_OK | constants.W_OK],
    [dirname(place.path), constants.W_OK | constants.X_OK],
  ] as const) {
    try {
      accessSync(path, bits)
    } catch (error) {
      refuse(place, `cannot be written: ${codeOf(error)} on '${path}'`)
    }
  }
  return true
}

export const DAMAGED = 'is damaged: restore it from a backup, or move it away to start fresh'

/** Whether the file ends within a page and has no log that would complete it. SQLite itself takes the missing bytes for zeros. */
export function isCutOff({ path }: Place): boolean {
  const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  return logBytes === 0 && statSync(path).size % PAGE_BYTES !== 0
}

/** Throws StartupError. */
export function refuse(place: Place, what: string): never {
  throw new StartupError(`${nameOfPlace(place)} ${what}`)
}

/** The code of an error of the system or of SQLite; never its text. */
export const codeOf = (error: unknown): string => (error as { code?: string }).code ?? 'failed'

/** The file of this name, or null. Throws StartupError for anything that must not be used. */
function lookAt(place: Place, path: string): Stats | null {
  const which = path === place.path ? '' : `has a companion '${path}' that `
  let stats: Stats
  try {
    stats = lstatSync(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    return refuse(place, `cannot be reached: ${codeOf(error)}`)
  }
  if (stats.isSymbolicLink()) refuse(place, `${which}is a symbolic link: give the path of the file itself`)
  if (stats.isDirectory()) refuse(place, `${which}is a directory: give the path of a file in it`)
  if (!stats.isFile()) refuse(place, `${which}is not a regular file`)
  const user = process.geteuid?.()
  if (user !== undefined && stats.uid !== user) {
    refuse(place, `${which}belongs to user ${stats.uid}, not to user ${user}, who runs this server`)
  }
  if ((stats.mode & 0o077) !== 0) closeToOthers(place, path, stats.mode)
  return stats
}

function closeToOthers(place: Place, path: string, mode: number): void {
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    refuse(place, `can be read or written by others, and that cannot be changed: ${codeOf(error)} on '${path}'`)
  }
  place.warn(`${nameOfPlace(place)}: '${path}' was open to others (mode ${(mode & 0o777).toString(8)}) and is now 600`)
}

/** In a directory with the sticky bit, as /tmp has it, nobody can replace the files of other users. */
export function warnOfDirectory(place: Place): void {
  const { mode } = statSync(dirname(place.path))
  if ((mode & 0o1002) === 0o002) {
    place.warn(`${nameOfPlace(place)} is in a directory that anyone can write to: they could replace the file`)
  }
}

/**
 * Makes a new, empty file with its directories (0700). It is made whole under another name, 0600 from birth whatever the umask, and
 * then linked to its own, so that a process that is killed here leaves either no file or a complete one, and of several processes
 * that start together one makes the file that all of them use.
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
