import { checkText } from '../check-text.js'
import type { Sql } from './run-queries.js'

/**
 * The SQL that adds a table to a file without it. The table contains a second record of each used id. Older programs do
 * not use this table (D144).
 */
export const ADD_SPENT = `
  CREATE TABLE IF NOT EXISTS spent (id TEXT PRIMARY KEY NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS spent_by_expiry ON spent (expires_at);
`

/** Maximum number of expired ids that one write deletes. */
const CLEARED = 100

/**
 * Records in a second table that an id was used, because somebody could reset its row in `used_tokens` or `approvals`
 * (D240). Must be called within a write. Returns false if the id was already used.
 */
export const spend = (sql: Sql, id: string, expiresAt: number): boolean =>
  sql.run('INSERT OR IGNORE INTO spent VALUES (?, ?)', checkText(id), expiresAt) === 1

/** Deletes used ids that expired before the given time, up to a maximum number. Must be called within a write. */
export const forgetSpent = (sql: Sql, expiredBefore: number): void =>
  void sql.run(
    'DELETE FROM spent WHERE id IN (SELECT id FROM spent WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)',
    expiredBefore,
    CLEARED,
  )
