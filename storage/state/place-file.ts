import { accessSync, chmodSync, constants, lstatSync, type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { type Fault, inWords, StartupError } from '../../schemas/config.js'

/** The suffixes of the files that SQLite keeps beside the main file. */
const COMPANIONS = ['-wal', '-shm', '-journal']
const PAGE_BYTES = 4096

/** The path of a file, and the variable by which the operator knows it. */
export interface Place {
  path: string
  /** The variable that names the path; every message begins with it. */
  variable: string
  /** Receives a line for the operator about something that was repaired or is unsafe. */
  warn: (line: string) => void
}

/** Returns the words with which every message about the file begins. */
export const nameOfPlace = ({ variable, path }: Pick<Place, 'variable' | 'path'>): string => `${variable} '${path}'`

/**
 * Returns the paths of the file and its companions; returns none if the file does not exist. Refuses everything that
 * SQLite must not open: an empty file, a file that this user cannot write, and anything but a regular file of this
 * user. The file is not opened here, because closing it would release the locks that another connection of this process
 * holds on it (POSIX).
 *
 * @throws {StartupError}
 */
export const checkPlace = (place: Place): string[] => inspectPlace(place).map(({ path }) => path)

/**
 * Removes the permissions of other users from the files, with a warning, because container platforms add permissions
 * for the group to every file of a volume at every mount (D41). It may be called only after it is known that the file
 * belongs to this program. Files that SQLite has created after `checkPlace` cause no warning.
 *
 * @param found the result of `checkPlace`.
 * @throws {StartupError}
 */
export function closeToOthers(place: Place, found: readonly string[]): void {
  for (const { path, stats } of inspectPlace(place)) {
    if ((stats.mode & 0o077) === 0) continue
    closePath(place, path)
    const mode = (stats.mode & 0o777).toString(8)
    if (found.includes(path))
      place.warn(`${nameOfPlace(place)}: '${path}' was accessible to others (mode ${mode}) and now has mode 600`)
  }
}

/**
 * Returns a problem that would prevent the file from being opened or created, so that it can be reported together with
 * other faults. The check changes nothing, so it does not find every problem. Returns undefined if it finds none.
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

/**
 * Finds the file and its companions, as far as they exist. Throws StartupError for anything that must not be opened.
 */
function inspectPlace(place: Place): Found[] {
  const file = lookAt(place, place.path)
  const companions = COMPANIONS.flatMap((end) => lookAt(place, place.path + end) ?? [])
  if (file === null) {
    const orphan = companions.find(({ stats }) => stats.size > 0)
    // Another process may have created the file in the meantime.
    if (orphan && lookAt(place, place.path) !== null) return inspectPlace(place)
    if (orphan)
      refuse(place, `is missing, but '${orphan.path}' is there`, 'Restore the file, or move both out of the way.')
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

/** Throws StartupError if the file cannot be created in its folder. */
export function checkRoom(place: Place): void {
  const folder = nearestFolder(dirname(place.path))
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    refuse(place, `cannot be created: ${inWords(error)} on '${folder}'`, remedyOf(error, folder, place))
  }
}

/** Returns the folder if it exists, otherwise the nearest existing folder above it. */
export const nearestFolder = (folder: string): string =>
  statSync(folder, { throwIfNoEntry: false }) === undefined ? nearestFolder(dirname(folder)) : folder

/** Returns what the operator should do about a file system `error` at `path`. */
export function remedyOf(error: unknown, path: string, { variable }: Place): string {
  if (codeOf(error) === 'EROFS') return `Set ${variable} to a file on a volume that can be written to.`
  if (!/^E(ACCES|PERM)$/.test(codeOf(error))) return `Set ${variable} to a file in a folder that can be written to.`
  const user = process.geteuid?.()
  const who = user === undefined ? 'the user of this server' : `user ${user}, who runs this server,`
  return `Give ${who} write access to '${path}', or set ${variable} to a file elsewhere.`
}

const RESTORE = 'Restore it from a backup, or move it away to start fresh.'
export const DAMAGED = ['is damaged', RESTORE] as const

/**
 * Returns true if the file ends in the middle of a page and has no write-ahead log that would complete it. SQLite
 * itself would read the missing bytes as zeros.
 */
export function isCutOff({ path }: Place): boolean {
  const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  return logBytes === 0 && statSync(path).size % PAGE_BYTES !== 0
}

/** Throws a StartupError about the file, whose message begins with the file's variable and path. */
export function refuse(place: Place, what: string, remedy: string): never {
  throw new StartupError({ problem: `${nameOfPlace(place)} ${what}`, remedy })
}

/** Returns the code of a system or SQLite error, but never its text. */
export const codeOf = (error: unknown): string => (error as { code?: string }).code ?? 'failed'

/**
 * Looks up a file by name. Returns null if the file does not exist. Throws StartupError if it exists but must not be
 * used.
 */
function lookAt(place: Place, path: string): Found | null {
  const isCompanion = path !== place.path
  const no = (what: string, remedy: string) =>
    refuse(
      place,
      isCompanion ? `has a companion '${path}' that ${what}` : what,
      isCompanion ? 'SQLite creates it itself. Remove it.' : remedy,
    )
  let stats: Stats
  try {
    stats = lstatSync(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    return refuse(
      place,
      `cannot be reached: ${inWords(error)}`,
      `Set ${place.variable} to a file whose folders exist and are accessible.`,
    )
  }
  if (stats.isSymbolicLink()) no('is a symbolic link', 'Use the path of the file itself.')
  if (stats.isDirectory())
    no('is a folder', `Use the path of a file in it: ${place.variable}=${join(path, suggested(place))}`)
  if (!stats.isFile())
    no(
      'is not a regular file',
      'Pipes and devices are not supported. Use the path of a file, or one that does not exist yet.',
    )
  const user = process.geteuid?.()
  if (user !== undefined && stats.uid !== user)
    no(
      `belongs to user ${stats.uid}, not to user ${user}, who runs this server`,
      stats.uid === 0
        ? `Use the path of a file of user ${user}, or one that does not exist yet.`
        : `Run the server as user ${stats.uid}, or give the file to user ${user} with chown.`,
    )
  return { path, stats }
}

/** Returns the file name that error messages suggest to the operator. */
const suggested = ({ variable }: Place) => (variable === 'MCP_KEYSTORE_PATH' ? 'keystore.db' : 'state.db')

function closePath(place: Place, path: string): void {
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    refuse(
      place,
      `can be read or written by others, and that cannot be changed: ${inWords(error)} on '${path}'`,
      `Revoke the access of others with chmod 600 '${path}'.`,
    )
  }
}

/**
 * Warns if anyone can write to the file's folder and could therefore replace the file. Folders with the sticky bit,
 * such as /tmp, cause no warning, because this bit prevents the replacement.
 */
export function warnOfDirectory(place: Place): void {
  const { mode } = statSync(dirname(place.path))
  if ((mode & 0o1002) === 0o002) {
    place.warn(`${nameOfPlace(place)} is in a folder that anyone can write to: they could replace the file`)
  }
}
