import { resolve } from 'node:path'
import Database from 'libsql'
import { StartupError } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import { challenges } from './challenges.js'
import { checkPlace, codeOf, DAMAGED, isCutOff, nameOf, refuse, warnOfDirectory, type Place } from './check-place.js'
import { checkWritable, WRITE_MARK } from './check-writable.js'
import { createFile, removeDrafts } from './create-file.js'
import { credentialRecords } from './credential-records.js'
import { notes } from './notes.js'
import { runQueries, type Queries } from './run-queries.js'
import { APPLICATION_ID, SCHEMA_VERSION, SET_UP_CONNECTION } from './schema.js'
import { usedTokens } from './used-tokens.js'

export interface StateOptions {
  /** Milliseconds since the epoch. */
  now: () => number
  /** The variable that names the path, for messages. */
  variable: string
  /** Takes a line for the operator about something that was put right, or is unwise. */
  warn?: (line: string) => void
  /** What it means for the operator that there was no file. A new one is warned of with these words. */
  ifNew?: string
}

/** Only while the process starts, and may wait with the event loop stopped. */
const LOCK_WAIT_AT_START_MS = 5000

/**
 * Opens the one SQLite file of the service, or makes a new one where there is none (D24). What exists is never replaced: a file
 * that is damaged, foreign or of a newer version stops the start.
 *
 * @throws {StartupError} in one line with the variable, the path and what is wrong; never with content.
 */
export function openState(path: string, { now, variable, warn = () => {}, ifNew }: StateOptions): State {
  const place: Place = { path: resolve(path), variable, warn }
  if (checkPlace(place)) removeDrafts(place)
  else warnOfNewFile(place, createFile(place), ifNew)
  warnOfDirectory(place)
  const queries = connect(place)
  return {
    credentials: credentialRecords(queries),
    usedTokens: usedTokens(queries, now),
    challenges: challenges(queries, now),
    notes: notes(queries),
    checkWritable: checkWritable(queries, now),
    close: queries.close,
  }
}

/** A volume that is not mounted, or another working directory, would else look like a service that nobody has used yet. */
function warnOfNewFile(place: Place, madeDirectory: string | null | undefined, ifNew: string | undefined): void {
  if (ifNew === undefined || madeDirectory === undefined) return
  const within = madeDirectory === null ? '' : `, in the new folder '${madeDirectory}'`
  place.warn(`${nameOf(place)} was not there and has been created${within}: ${ifNew}`)
}

function connect(place: Place): Queries {
  let db: Database.Database | undefined
  try {
    db = new Database(place.path)
    db.exec(`PRAGMA busy_timeout = ${LOCK_WAIT_AT_START_MS}`)
    checkIdentity(place, db)
    db.exec(SET_UP_CONNECTION)
    checkWhole(place, db)
    db.exec(WRITE_MARK)
    db.exec('PRAGMA busy_timeout = 0')
    return runQueries(db, place.path)
  } catch (error) {
    db?.close()
    if (error instanceof StartupError) throw error
    const code = codeOf(error)
    if (code === 'SQLITE_NOTADB') return refuse(place, 'is no SQLite file')
    if (code.startsWith('SQLITE_CORRUPT')) return refuse(place, DAMAGED)
    return refuse(place, `cannot be opened for writing: ${code}`)
  }
}

/** Whose file it is comes first: nothing may be written to a foreign one. */
function checkIdentity(place: Place, db: Database.Database): void {
  if (pragma(db, 'application_id') !== APPLICATION_ID) refuse(place, 'is an SQLite file of another program')
  const version = pragma(db, 'user_version') as number
  if (version > SCHEMA_VERSION) {
    refuse(place, `was written by a newer version of this server (schema ${version}, known ${SCHEMA_VERSION})`)
  }
  if (version !== SCHEMA_VERSION) refuse(place, DAMAGED)
}

/** Milliseconds for 10,000 users, so it is done at every start. */
function checkWhole(place: Place, db: Database.Database): void {
  if (isCutOff(place) || pragma(db, 'quick_check') !== 'ok') refuse(place, DAMAGED)
}

function pragma(db: Database.Database, name: string): unknown {
  return (db.pragma(name) as Record<string, unknown>[])[0]?.[name]
}
