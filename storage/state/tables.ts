import type { Owner } from '../../schemas/caller.js'
import type { Challenges, CredentialRecords, Notes, SealedCredentials, UsedTokens } from '../../schemas/state.js'
import type { Queries, Sql, Value } from './run-queries.js'

interface Row {
  iss: string
  sub: string
  version: string
  kek_id: string
  /** libsql gives bytes as Buffer for one row and as ArrayBuffer for several. */
  wrapped_key: ArrayBuffer | Buffer
  sealed: ArrayBuffer | Buffer
}

const COLUMNS = 'iss, sub, version, kek_id, wrapped_key, sealed'
const FIRST = `SELECT ${COLUMNS} FROM credentials ORDER BY iss, sub LIMIT ?`
const NEXT = `SELECT ${COLUMNS} FROM credentials WHERE (iss, sub) > (?, ?) ORDER BY iss, sub LIMIT ?`

/** The records of the keystore in the file (schemas/state.ts). */
export function credentialRecords({ read, write }: Queries): CredentialRecords {
  return {
    get: (owner) =>
      read((sql) => {
        const row = sql.one<Row>(`SELECT ${COLUMNS} FROM credentials WHERE iss = ? AND sub = ?`, ...keyOf(owner))
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

/** libsql takes bytes as Buffer only. */
const bytes = (value: Uint8Array): Buffer => Buffer.from(value.buffer, value.byteOffset, value.byteLength)

function recordOf(row: Row): SealedCredentials {
  const { version, kek_id: kekId, wrapped_key: wrappedKey, sealed } = row
  return { version, kekId, wrappedKey: new Uint8Array(wrappedKey), sealed: new Uint8Array(sealed) }
}

/** How long a used id is kept after its token has expired, against clocks that are set back. */
const KEPT_MS = 24 * 60 * 60 * 1000
/** How many expired rows one write clears away: more than one, so that the file does not grow, and few, so that no write is slow. */
const CLEARED = 100
const FORGOTTEN = 'used_tokens_forgotten_until'

/**
 * The used confirm tokens in the file (schemas/state.ts; D42). Ids that have expired long ago are forgotten; the latest expiry
 * among the forgotten is remembered, and a token that expires no later counts as used whatever the clock says by then.
 *
 * @param now milliseconds since the epoch.
 */
export function usedTokens({ read, write }: Queries, now: () => number): UsedTokens {
  return {
    claim: async (id, expiresAt) => {
      if (!Number.isSafeInteger(expiresAt)) throw new RangeError('expiresAt must be whole milliseconds')
      return write((sql) => {
        const forgottenUntil = readNote(sql, FORGOTTEN)
        if (forgottenUntil !== null && expiresAt <= Number(forgottenUntil)) return false
        const isFirst = sql.run('INSERT OR IGNORE INTO used_tokens VALUES (?, ?)', checkText(id), expiresAt) === 1
        if (isFirst) forget(sql, now() - KEPT_MS)
        return isFirst
      })
    },
    isUsed: (id) => read((sql) => sql.one('SELECT 1 FROM used_tokens WHERE id = ?', checkText(id)) !== undefined),
  }
}

function forget(sql: Sql, expiredBefore: number): void {
  const old = 'SELECT expires_at FROM used_tokens WHERE expires_at <= ? ORDER BY expires_at LIMIT ?'
  const { until } = sql.one<{ until: number | null }>(
    `SELECT max(expires_at) AS until FROM (${old})`,
    expiredBefore,
    CLEARED,
  )!
  if (until === null) return
  sql.run('DELETE FROM used_tokens WHERE expires_at <= ?', until)
  // Never lower: all that expired earlier has been forgotten before.
  sql.run('INSERT OR REPLACE INTO notes VALUES (?, ?)', FORGOTTEN, String(until))
}

/** What callers have been asked to confirm, in the file (schemas/state.ts). `now` in milliseconds since the epoch. */
export function challenges({ read, write }: Queries, now: () => number): Challenges {
  return {
    put: (key, boundTo, expiresAt) =>
      write((sql) => {
        const expired = 'SELECT key FROM challenges WHERE expires_at <= ? LIMIT ?'
        sql.run(`DELETE FROM challenges WHERE key IN (${expired})`, now(), CLEARED)
        sql.run('INSERT OR REPLACE INTO challenges VALUES (?, ?, ?)', checkText(key), checkText(boundTo), expiresAt)
      }),
    get: (key) =>
      read((sql) => {
        const found = 'SELECT bound_to FROM challenges WHERE key = ? AND expires_at > ?'
        return sql.one<{ bound_to: string }>(found, checkText(key), now())?.bound_to ?? null
      }),
  }
}

/** Small facts about the file, in the file (schemas/state.ts). */
export function notes({ read, write }: Queries): Notes {
  return {
    get: (name) => read((sql) => readNote(sql, name)),
    set: (name, value) =>
      write((sql) => void sql.run('INSERT OR REPLACE INTO notes VALUES (?, ?)', checkText(name), checkText(value))),
    setOnce: (name, value) =>
      write((sql) => {
        sql.run('INSERT OR IGNORE INTO notes VALUES (?, ?)', checkText(name), checkText(value))
        return readNote(sql, name)!
      }),
  }
}

/** Null where there is none. */
const readNote = (sql: Sql, name: string): string | null =>
  sql.one<{ value: string }>('SELECT value FROM notes WHERE name = ?', checkText(name))?.value ?? null

/**
 * Returns the text as it is, when the file can hold it unchanged. Two strings with different lone surrogates would become one and the
 * same in UTF-8, so that one caller could stand for another. Throws RangeError, never with the text.
 */
function checkText(text: string): string {
  if (text.includes('\0') || Buffer.from(text, 'utf8').toString('utf8') !== text) {
    throw new RangeError('text with NUL or lone surrogates cannot be stored')
  }
  return text
}
