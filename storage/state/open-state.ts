import { resolve } from 'node:path'
import Database from 'libsql'
import { StartupError } from '../../schemas/config.js'
import type { State } from '../../schemas/state.js'
import {
  checkPlace,
  codeOf,
  createFile,
  DAMAGED,
  isCutOff,
  nameOf,
  type Place,
  refuse,
  removeDrafts,
  warnOfDirectory,
} from './place-file.js'
import { type Queries, runQueries } from './run-queries.js'
import { challenges, credentialRecords, notes, usedTokens } from './tables.js'

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

/** An answer this young is given again: /readyz is asked by anybody, and every check costs a write that waits for the disk. */
const FRESH_MS = 1000
const LOCK_WAIT_MS = 1000

/** The statement that proves that the file can be written: as claims and credentials do, and changing nothing of theirs. */
export const WRITE_MARK = `INSERT OR REPLACE INTO notes VALUES ('checked', hex(randomblob(8)))`

/** Writes a mark to the disk. Whoever asks meanwhile, or within a second, gets the same answer. Rejects with Error. `now` in milliseconds. */
export function checkWritable({ write }: Queries, now: () => number): () => Promise<void> {
  let last: Promise<void> | undefined
  let isRunning = false
  let checkedAt = -Infinity
  return () => {
    const age = now() - checkedAt
    if (last !== undefined && (isRunning || (age >= 0 && age < FRESH_MS))) return last
    isRunning = true
    last = write((sql) => void sql.run(WRITE_MARK), LOCK_WAIT_MS).finally(() => {
      isRunning = false
      checkedAt = now()
    })
    return last
  }
}

/** 'SVMC': says in bytes 68 to 71 of the file whose it is. */
export const APPLICATION_ID = 0x53564d43

/** Rises with every change of the tables; a file of a higher number is left alone. */
export const SCHEMA_VERSION = 1

/**
 * A whole new file, in one transaction. WAL mode stays with the file. Ids of callers are TEXT, compared byte by byte, so that an operator
 * can see who is registered; everything that is to be kept from readers of the file is in `wrapped_key` and `sealed`.
 */
export const CREATE_FILE = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  BEGIN IMMEDIATE;
  CREATE TABLE credentials (
    iss TEXT NOT NULL, sub TEXT NOT NULL, version TEXT NOT NULL, kek_id TEXT NOT NULL, wrapped_key BLOB NOT NULL, sealed BLOB NOT NULL,
    PRIMARY KEY (iss, sub)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE used_tokens (id TEXT PRIMARY KEY NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX used_tokens_by_expiry ON used_tokens (expires_at);
  CREATE TABLE challenges (key TEXT PRIMARY KEY NOT NULL, bound_to TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX challenges_by_expiry ON challenges (expires_at);
  CREATE TABLE notes (name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
  COMMIT;
`

/**
 * Of every connection. A busy file is waited for outside SQLite (`run-queries.ts`), whose own wait would stop the event loop.
 * Overwritten and deleted rows are zeroed; code in a foreign schema is not trusted; the write-ahead log shrinks again after a burst.
 */
export const SET_UP_CONNECTION = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA secure_delete = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA cell_size_check = ON;
  PRAGMA journal_size_limit = 4194304;
`
