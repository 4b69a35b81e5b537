import type { Owner } from '../../schemas/caller.js'
import type {
  ChallengeKey,
  Challenges,
  CredentialRecords,
  Notes,
  SealedCredentials,
  UsedTokens,
} from '../../schemas/state.js'
import { bounded } from '../bound-value.js'
import { checkText, endOf } from '../check-text.js'
import type { Queries, Sql, Value } from './run-queries.js'
import { forgetSpent, spend } from './spent.js'

/** The text 'SVMC', stored in bytes 68 to 71 of the file, which identifies it as a file of this program. */
export const APPLICATION_ID = 0x53564d43

/**
 * The version of the tables. It is raised with every change after which older programs could not use the file. A file
 * with a higher version is left unchanged.
 */
export const SCHEMA_VERSION = 1

/**
 * The statements that create all tables of a new file in one transaction. WAL mode is stored in the file. Caller ids
 * are TEXT and compared byte by byte, so that an operator can see who is registered; secrets are only in `wrapped_key`
 * and `sealed`.
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
 * The settings of every connection. Overwritten and deleted rows are zeroed, code that the schema of a manipulated file
 * could contain is not trusted, and the write-ahead log shrinks again after many writes. SQLite does not wait for a
 * busy file, because its wait would block the event loop; `run-queries.ts` waits instead.
 */
export const SET_UP_CONNECTION = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA secure_delete = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA cell_size_check = ON;
  PRAGMA journal_size_limit = 4194304;
`

interface Row {
  iss: string
  sub: string
  version: string
  kek_id: string
  /**
   * The columns of the wrapped key and the sealed credentials. libsql returns their bytes as Buffer for a single row
   * and as ArrayBuffer for several rows.
   */
  wrapped_key: ArrayBuffer | Buffer
  sealed: ArrayBuffer | Buffer
}

const COLUMNS = 'iss, sub, version, kek_id, wrapped_key, sealed'
const READ_COLUMNS = `iss, sub, ${bounded('version')}, ${bounded('kek_id')}, ${bounded('wrapped_key', `x''`)}, ${bounded('sealed', `x''`)}`
const FIRST = `SELECT ${READ_COLUMNS} FROM credentials ORDER BY iss, sub LIMIT ?`
const NEXT = `SELECT ${READ_COLUMNS} FROM credentials WHERE (iss, sub) > (?, ?) ORDER BY iss, sub LIMIT ?`

/**
 * The name of the note which says that the keystore in this file has been moved to a database. The note contains the
 * location of that database.
 */
export const MOVED_NOTE = 'moved_to'

/** Writes the note that the keystore has been moved; must be called within a write. */
export const noteMove = (sql: Sql, to: string): void => setNote(sql, MOVED_NOTE, to)

/**
 * Creates an accessor for the keystore's records in the file (see schemas/state.ts). After the keystore has been moved,
 * the records can no longer be changed.
 */
export function credentialRecords({ read, write: writeAnyway }: Queries): CredentialRecords {
  const write = <T>(work: (sql: Sql) => T): Promise<T> =>
    writeAnyway((sql) => {
      const moved = readNote(sql, MOVED_NOTE)
      if (moved !== null)
        throw new Error(`the keystore was moved to the database at ${moved}: set MCP_STATE_URL to it and restart`)
      return work(sql)
    })
  return {
    get: (owner) =>
      read((sql) => {
        const row = sql.one<Row>(`SELECT ${READ_COLUMNS} FROM credentials WHERE iss = ? AND sub = ?`, ...keyOf(owner))
        return row === undefined ? null : recordOf(row)
      }),
    put: (owner, record, only) =>
      write((sql) => {
        if (only?.isMet(only.notes.map((name) => readNote(sql, name))) === false) return false
        put(sql, owner, record)
        return true
      }),
    replace: (owner, wrappedKey, record) =>
      write((sql) => {
        const found = 'SELECT 1 FROM credentials WHERE iss = ? AND sub = ? AND wrapped_key = ?'
        if (sql.one(found, ...keyOf(owner), bytes(wrappedKey)) === undefined) return false
        put(sql, owner, record)
        return true
      }),
    remove: (owner) =>
      write((sql) => sql.run('DELETE FROM credentials WHERE iss = ? AND sub = ?', ...keyOf(owner)) > 0),
    page: (after, limit) =>
      read((sql) => {
        const rows = after === null ? sql.all<Row>(FIRST, limit) : sql.all<Row>(NEXT, ...keyOf(after), limit)
        return rows.map((row) => ({ owner: { iss: row.iss, sub: row.sub }, record: recordOf(row) }))
      }),
  }
}

function put(sql: Sql, owner: Owner, record: SealedCredentials): void {
  const { version, kekId, wrappedKey, sealed } = record
  const values: Value[] = [...keyOf(owner), version, kekId, bytes(wrappedKey), bytes(sealed)]
  sql.run(`INSERT OR REPLACE INTO credentials (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)`, ...values)
}

const keyOf = ({ iss, sub }: Owner): [string, string] => [checkText(iss), checkText(sub)]

/** Returns bytes as a Buffer, which is the only form that libsql accepts. */
const bytes = (value: Uint8Array): Buffer => Buffer.from(value.buffer, value.byteOffset, value.byteLength)

function recordOf(row: Row): SealedCredentials {
  const { version, kek_id: kekId, wrapped_key: wrappedKey, sealed } = row
  return { version, kekId, wrappedKey: new Uint8Array(wrappedKey), sealed: new Uint8Array(sealed) }
}

/** The time for which the id of a used token is kept after the token has expired, in case a clock is set back. */
const KEPT_MS = 24 * 60 * 60 * 1000
/**
 * Maximum number of expired rows that one write deletes. It is more than one, so that the file does not grow, but
 * small, so that no write is slow.
 */
const CLEARED = 100
const FORGOTTEN = 'used_tokens_forgotten_until'

/**
 * Creates an accessor for the used confirm tokens in the file (see schemas/state.ts; D42). The ids of tokens that
 * expired long ago are deleted, but the latest of their expiry times is kept. A token whose expiry time is not later
 * than this time counts as used, whatever the clock shows by then.
 *
 * @param now returns milliseconds since the epoch.
 */
export function usedTokens({ read, write }: Queries, now: () => number): UsedTokens {
  return {
    claim: async (id, expiresAt) => {
      if (!Number.isSafeInteger(expiresAt)) throw new RangeError('expiresAt must be whole milliseconds')
      return write((sql) => {
        const forgottenUntil = readNote(sql, FORGOTTEN)
        if (forgottenUntil !== null && expiresAt <= Number(forgottenUntil)) return false
        const isFirst =
          spend(sql, id, expiresAt) &&
          sql.run('INSERT OR IGNORE INTO used_tokens VALUES (?, ?)', checkText(id), expiresAt) === 1
        if (isFirst) forget(sql, now() - KEPT_MS)
        return isFirst
      })
    },
    isUsed: (id) =>
      read((sql) => {
        const used = 'SELECT 1 FROM used_tokens WHERE id = ? UNION SELECT 1 FROM spent WHERE id = ?'
        return sql.one(used, checkText(id), checkText(id)) !== undefined
      }),
  }
}

function forget(sql: Sql, expiredBefore: number): void {
  forgetSpent(sql, expiredBefore)
  const old = 'SELECT expires_at FROM used_tokens WHERE expires_at <= ? ORDER BY expires_at LIMIT ?'
  const { until } = sql.one<{ until: number | null }>(
    `SELECT max(expires_at) AS until FROM (${old})`,
    expiredBefore,
    CLEARED,
  )!
  if (until === null) return
  sql.run('DELETE FROM used_tokens WHERE expires_at <= ?', until)
  // The stored time never decreases, because all ids that expired before it have already been deleted.
  sql.run('INSERT OR REPLACE INTO notes VALUES (?, ?)', FORGOTTEN, String(until))
}

/** Maximum number of open confirmation questions of one owner. Nobody can read more before they expire. */
export const MOST_CHALLENGES_PER_OWNER = 100
/** Maximum number of open confirmation questions in the file. */
export const MOST_CHALLENGES = 10_000

/**
 * Creates an accessor for the confirmation questions in the file (see schemas/state.ts). `now` returns milliseconds
 * since the epoch.
 */
export function challenges({ read, write }: Queries, now: () => number): Challenges {
  // The owner comes first in the key, so that the primary key also finds all questions of an owner.
  const rowKey = ({ owner, call }: ChallengeKey) => checkText(`${owner}:${call}`)
  const latest = (where: string) => `SELECT key FROM challenges ${where} ORDER BY expires_at DESC LIMIT -1 OFFSET ?`
  return {
    put: (key, boundTo, expiresAt) =>
      write((sql) => {
        const expired = 'SELECT key FROM challenges WHERE expires_at <= ? LIMIT ?'
        sql.run(`DELETE FROM challenges WHERE key IN (${expired})`, now(), CLEARED)
        sql.run('DELETE FROM challenges WHERE key = ?', rowKey(key))
        const own = `DELETE FROM challenges WHERE key IN (${latest('WHERE key > ? AND key < ?')})`
        sql.run(own, `${key.owner}:`, `${key.owner};`, MOST_CHALLENGES_PER_OWNER - 1)
        sql.run(`DELETE FROM challenges WHERE key IN (${latest('')})`, MOST_CHALLENGES - 1)
        sql.run('INSERT INTO challenges VALUES (?, ?, ?)', rowKey(key), checkText(boundTo), expiresAt)
      }),
    get: (key) =>
      read((sql) => {
        const found = `SELECT ${bounded('bound_to')} FROM challenges WHERE key = ? AND expires_at > ?`
        return sql.one<{ bound_to: string }>(found, rowKey(key), now())?.bound_to ?? null
      }),
    removeAll: (owner) =>
      write((sql) => sql.run('DELETE FROM challenges WHERE key > ? AND key < ?', `${owner}:`, `${owner};`)),
  }
}

/** Creates an accessor for the notes in the file, which are small facts about the file (see schemas/state.ts). */
export function notes({ read, readNow, edition, write }: Queries): Notes {
  return {
    get: (name) => read((sql) => readNote(sql, name)),
    getNow: (name) => readNow((sql) => readNote(sql, name)),
    edition,
    list: (prefix, after, limit) =>
      read((sql) =>
        sql.all<{ name: string; value: string }>(
          `SELECT name, ${bounded('value')} FROM notes WHERE name > ? AND name < ? ORDER BY name LIMIT ?`,
          checkText(after > prefix ? after : prefix),
          endOf(prefix),
          limit,
        ),
      ),
    set: (name, value) => write((sql) => setNote(sql, name, value)),
    remove: (name) => write((sql) => sql.run('DELETE FROM notes WHERE name = ?', checkText(name)) > 0),
    setOnce: (name, value) =>
      write((sql) => {
        sql.run('INSERT OR IGNORE INTO notes VALUES (?, ?)', checkText(name), checkText(value))
        return readNote(sql, name)!
      }),
  }
}

/** Writes a note, a small named value. Must be called within a write. */
const setNote = (sql: Sql, name: string, value: string): void =>
  void sql.run('INSERT OR REPLACE INTO notes VALUES (?, ?)', checkText(name), checkText(value))

/** Reads a note, a small named value. Returns null if there is none. */
const readNote = (sql: Sql, name: string): string | null =>
  sql.one<{ value: string }>(`SELECT ${bounded('value')} FROM notes WHERE name = ?`, checkText(name))?.value ?? null
