import type { Owner } from '../../schemas/caller.js'
import type { CredentialRecords, SealedCredentials } from '../../schemas/state.js'
import { checkText } from './check-text.js'
import { readNote } from './notes.js'
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
