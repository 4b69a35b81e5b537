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
import { basename, dirname, join, resolve } from 'node:path'
import Database from 'libsql'
import { type Fault, inWords, StartupError } from '../../schemas/config.js'
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
 * The paths of the file and its companions; none where there is no file. Refuses what must not be opened, before SQLite touches it:
 * anything but a regular file of this user, an empty one, one without access. Only names are looked at: opening and closing the file here
 * would drop the locks that another connection of this process holds on it (POSIX).
 *
 * @throws {StartupError}
 */
export const checkPlace = (place: Place): string[] => inspectPlace(place).map(({ path }) => path)

/**
 * Takes permission bits for others away, with a warning, since container platforms add the group's to every file of a volume at every mount
 * (D41). Only once it is known that the file is ours; what SQLite has made beside it since then is not worth a warning.
 *
 * @param found what `checkPlace` has found.
 * @throws {StartupError}
 */
export function closeToOthers(place: Place, found: readonly string[]): void {
  for (const { path, stats } of inspectPlace(place)) {
    if ((stats.mode & 0o077) === 0) continue
    closePath(place, path)
    const mode = (stats.mode & 0o777).toString(8)
    if (found.includes(path))
      place.warn(`${nameOfPlace(place)}: '${path}' was open to others (mode ${mode}) and is now 600`)
  }
}

/**
 * What would keep the file from being opened or made, as far as that shows without changing anything: so that it can be told together
 * with other faults. Undefined where nothing does.
 */
export function findPlaceFault(path: string, variable: string): Fault | undefined {
  const place = { path: resolve(path), variable, warn: () => {} }
  try {
    if (inspectPlace(place).length === 0) checkRoom(place)
    return undefined
  } catch (error) {
    if (error instanceof StartupError) return error.faults[0]
    throw error
  }
}

interface Found {
  path: string
  stats: Stats
}

/** The file and its companions, those that there are. Throws StartupError for anything that must not be opened. */
function inspectPlace(place: Place): Found[] {
  const file = lookAt(place, place.path)
  const companions = COMPANIONS.flatMap((end) => lookAt(place, place.path + end) ?? [])
  if (file === null) {
    const orphan = companions.find(({ stats }) => stats.size > 0)
    // Looked at again, since another process may have made the file in between.
    if (orphan && lookAt(place, place.path) !== null) return inspectPlace(place)
    if (orphan) refuse(place, `is missing, but '${orphan.path}' is there`, 'Restore the file, or move both away.')
    return []
  }
  if (file.stats.size === 0) refuse(place, 'is empty', RESTORE)
  for (const [path, bits] of [
    [place.path, constants.R_OK | constants.W_OK],
    [dirname(place.path), constants.W_OK | constants.X_OK],
  ] as const) {
    try {
      accessSync(path, bits)
    } catch (error) {
      refuse(place, `cannot be written: ${inWords(error)} on '${path}'`, remedyOf(error, path, place))
    }
  }
  return [file, ...companions]
}

/** Throws StartupError where the folder of a file that is to be made cannot take it. */
function checkRoom(place: Place): void {
  const folder = nearestFolder(dirname(place.path))
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    refuse(place, `cannot be created: ${inWords(error)} on '${folder}'`, remedyOf(error, folder, place))
  }
}

/** The folder, or the one above it that there is. */
const nearestFolder = (folder: string): string =>
  statSync(folder, { throwIfNoEntry: false }) === undefined ? nearestFolder(dirname(folder)) : folder

function remedyOf(error: unknown, path: string, { variable }: Place): string {
  if (codeOf(error) === 'EROFS') return `Set ${variable} to a file on a volume that can be written to.`
  if (!/^E(ACCES|PERM)$/.test(codeOf(error))) return `Set ${variable} to a file in a folder that can be written to.`
  const user = process.geteuid?.()
  const who = user === undefined ? 'the user of this server' : `user ${user}, who runs this server,`
  return `Give ${who} write access to '${path}', or set ${variable} to a file elsewhere.`
}

const RESTORE = 'Restore it from a backup, or move it away to start fresh.'
export const DAMAGED = ['is damaged', RESTORE] as const

/** Whether the file ends within a page and has no log that would complete it. SQLite itself takes the missing bytes for zeros. */
export function isCutOff({ path }: Place): boolean {
  const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  return logBytes === 0 && statSync(path).size % PAGE_BYTES !== 0
}

/** Throws StartupError. */
export function refuse(place: Place, what: string, remedy: string): never {
  throw new StartupError({ problem: `${nameOfPlace(place)} ${what}`, remedy })
}

/** The code of an error of the system or of SQLite; never its text. */
export const codeOf = (error: unknown): string => (error as { code?: string }).code ?? 'failed'

/** The file of this name, or null. Throws StartupError for anything that must not be used. */
function lookAt(place: Place, path: string): Found | null {
  const isCompanion = path !== place.path
  const no = (what: string, remedy: string) =>
    refuse(
      place,
      isCompanion ? `has a companion '${path}' that ${what}` : what,
      isCompanion ? 'SQLite makes it itself: remove it.' : remedy,
    )
  let stats: Stats
  try {
    stats = lstatSync(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    return refuse(
      place,
      `cannot be reached: ${inWords(error)}`,
      `Set ${place.variable} to a file whose folders exist and can be entered.`,
    )
  }
  if (stats.isSymbolicLink()) no('is a symbolic link', 'Give the path of the file itself.')
  if (stats.isDirectory())
    no('is a folder', `Give the path of a file in it: ${place.variable}=${join(path, suggested(place))}`)
  if (!stats.isFile())
    no('is not a regular file', 'Pipes and devices will not do: give the path of a file, or of none yet.')
  const user = process.geteuid?.()
  if (user !== undefined && stats.uid !== user)
    no(
      `belongs to user ${stats.uid}, not to user ${user}, who runs this server`,
      stats.uid === 0
        ? `Give the path of a file of user ${user}, or of none yet.`
        : `Run the server as user ${stats.uid}, or give the file to user ${user} with chown.`,
    )
  return { path, stats }
}

/** What the file is called by default. */
const suggested = ({ variable }: Place) => (variable === 'MCP_KEYSTORE_PATH' ? 'keystore.db' : 'state.db')

function closePath(place: Place, path: string): void {
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    refuse(
      place,
      `can be read or written by others, and that cannot be changed: ${inWords(error)} on '${path}'`,
      `Take it away from others with chmod 600 '${path}'.`,
    )
  }
}

/** In a directory with the sticky bit, as /tmp has it, nobody can replace the files of other users. */
export function warnOfDirectory(place: Place): void {
  const { mode } = statSync(dirname(place.path))
  if ((mode & 0o1002) === 0o002) {
    place.warn(`${nameOfPlace(place)} is in a folder that anyone can write to: they could replace the file`)
  }
}

/**
 * Makes a new, empty file with its directories (0700). It is made whole under another name, 0600 from birth whatever the umask, and
 * then linked to its own, so that a process that is killed here leaves either no file or a complete one, and of several processes
 * that start together one makes the file that all of them use.
 *
 * @returns the first directory that had to be made for it, null where none had; undefined when another process was faster.
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

/** A file that only its owner can read, from birth. Throws where there is one. */
export function makeEmpty(path: string): void {
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
export function syncDirectory(directory: string): void {
  const opened = openSync(directory, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
