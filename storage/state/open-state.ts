import { resolve } from 'node:path'
import Database from 'libsql'
import { StartupError } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { revocations } from '../revocations.js'
import { shareRecent } from '../share-recent.js'
import { createFile, removeDrafts } from './create-file.js'
import {
  checkPlace,
  closeToOthers,
  codeOf,
  DAMAGED,
  isCutOff,
  nameOfPlace,
  type Place,
  refuse,
  warnOfDirectory,
} from './place-file.js'
import { ADD_APPROVALS, ADD_FIRST_DECISIONS, approvals } from './approvals.js'
import { type Queries, runQueries, writeInTurn } from './run-queries.js'
import { ADD_OUTBOX, outbox } from './outbox.js'
import { ADD_SPENT } from './spent.js'
import {
  APPLICATION_ID,
  challenges,
  credentialRecords,
  noteMove,
  notes,
  SCHEMA_VERSION,
  SET_UP_CONNECTION,
  usedTokens,
} from './tables.js'

export interface StateOptions {
  /** Returns milliseconds since the epoch. */
  now: () => number
  /** The variable that names the path, for messages. */
  variable: string
  /** Receives a line for the operator about something that was repaired or is unsafe. */
  warn?: (line: string) => void
  /**
   * The end of the warning that a new file was created. It tells the operator what this means, and what to check if a
   * file should already have existed.
   */
  ifNew?: string
}

/** The state in a file. Unlike the state in a database, it closes synchronously. */
export type FileState = Omit<State, 'close'> & {
  close: () => void
  /**
   * Runs `work`, which moves the keystore to the location `to`. While `work` runs, nothing can be written to the file:
   * writes of this process fail at once, and writes of other processes wait and fail after five seconds. If `work`
   * resolves, no process ever changes a keystore record in the file again. If it rejects, everything is as before.
   */
  moveAway: (to: string, work: () => Promise<void>) => Promise<void>
}

/** Maximum time, in milliseconds, to wait for a locked file at the start, when blocking the event loop does no harm. */
const LOCK_WAIT_AT_START_MS = 15_000

/**
 * Opens the server's single SQLite file, or creates it if there is none (D24). An existing file is never replaced: if
 * it is damaged, belongs to another program or comes from a newer version, the start fails.
 *
 * @throws {StartupError} that names the variable, the path and the problem, but never content of the file.
 */
export function openState(path: string, { now, variable, warn = () => {}, ifNew }: StateOptions): FileState {
  const place: Place = { path: resolve(path), variable, warn }
  const found = checkPlace(place)
  if (found.length > 0) removeDrafts(place)
  else warnOfNewFile(place, createFile(place), ifNew)
  const queries = connect(place, found)
  const allNotes = notes(queries)
  warnOfDirectory(place)
  return {
    credentials: credentialRecords(queries),
    usedTokens: usedTokens(queries, now),
    challenges: challenges(queries, now),
    approvals: approvals(queries, now),
    outbox: outbox(queries, now),
    notes: allNotes,
    revocations: revocations(allNotes),
    checkWritable: shareRecent(() => queries.write((sql) => void sql.run(WRITE_MARK), LOCK_WAIT_MS), now),
    moveAway: (to, work) => queries.holdStill(work, (sql) => noteMove(sql, to)),
    close: queries.close,
  }
}

/**
 * Warns that a new file was created. Otherwise, a volume that is not mounted or a wrong working directory would look
 * like a server that has never been used.
 */
function warnOfNewFile(place: Place, madeDirectory: string | null | undefined, ifNew: string | undefined): void {
  if (ifNew === undefined || madeDirectory === undefined) return
  const within = madeDirectory === null ? '' : `, in the new folder '${madeDirectory}'`
  place.warn(`${nameOfPlace(place)} did not exist and has been created${within}: ${ifNew}`)
}

function connect(place: Place, found: readonly string[]): Queries {
  let db: Database.Database | undefined
  try {
    db = new Database(place.path)
    db.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_AT_START_MS}`)
    checkIdentity(place, db)
    closeToOthers(place, found)
    db.exec(SET_UP_CONNECTION)
    checkWhole(place, db)
    db.exec('PRAGMA busy_timeout = 0')
    writeInTurn(
      db,
      `${ADD_APPROVALS};${ADD_FIRST_DECISIONS};${ADD_SPENT};${ADD_OUTBOX};${WRITE_MARK}`,
      LOCK_WAIT_AT_START_MS,
    )
    return runQueries(db, place.path)
  } catch (error) {
    db?.close()
    if (error instanceof StartupError) throw error
    const code = codeOf(error)
    if (code === 'SQLITE_NOTADB') return refuse(place, 'is not an SQLite file', ELSEWHERE)
    if (code.startsWith('SQLITE_CORRUPT')) return refuse(place, ...DAMAGED)
    if (code.startsWith('SQLITE_BUSY'))
      return refuse(
        place,
        `is in use: another process has held it for ${LOCK_WAIT_AT_START_MS / 1000} s`,
        'Stop the program that holds it, perhaps a backup or an SQLite shell.',
      )
    return refuse(place, `cannot be opened for writing: ${code}`, 'Check the disk and the permissions of the file.')
  }
}

const ELSEWHERE = 'It was not changed. Use the path of another file, which will be created.'

/**
 * Checks that the file belongs to this program. This check comes before all others, because nothing may be written to a
 * file of another program.
 */
function checkIdentity(place: Place, db: Database.Database): void {
  if (pragma(db, 'application_id') !== APPLICATION_ID) refuse(place, 'is an SQLite file of another program', ELSEWHERE)
  const version = pragma(db, 'user_version') as number
  if (version > SCHEMA_VERSION) {
    refuse(
      place,
      `was written by a newer version of this server (schema ${version}, known ${SCHEMA_VERSION})`,
      'Run that version again, or restore the backup from before its first start.',
    )
  }
  if (version !== SCHEMA_VERSION) refuse(place, ...DAMAGED)
}

/** Checks the file for damage. This is done at every start, because it takes only milliseconds for 10,000 users. */
function checkWhole(place: Place, db: Database.Database): void {
  if (isCutOff(place) || pragma(db, 'quick_check') !== 'ok') refuse(place, ...DAMAGED)
}

function pragma(db: Database.Database, name: string): unknown {
  return (db.pragma(name) as Record<string, unknown>[])[0]?.[name]
}

/** Maximum time, in milliseconds, that the write test waits while another process is writing. */
const LOCK_WAIT_MS = 1000

/** A statement that tests whether the file can be written, without changing used tokens or credentials. */
export const WRITE_MARK = `INSERT OR REPLACE INTO notes VALUES ('checked', hex(randomblob(8)))`
