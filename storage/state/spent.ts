import { checkText } from '../check-text.js'
import type { Sql } from './run-queries.js'

/**
 * The SQL that adds the second record of used ids to files that lack it. Older programs neither see nor need the table
 * (D144).
 */
export const ADD_SPENT = `
  CREATE TABLE IF NOT EXISTS spent (id TEXT PRIMARY KEY NOT NULL, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS spent_by_expiry ON spent (expires_at);
`

/** Maximum number of ids that one write forgets. */
const CLEARED = 100

/**
 * Records that an id has been used, beside its row in `used_tokens` or `approvals`, which somebody may put back (D240).
 * Must be called within a write. Returns false if the id was used before.
 */
export const spend = (sql: Sql, id: string, expiresAt: number): boolean =>
  sql.run('INSERT OR IGNORE INTO spent VALUES (?, ?)', checkText(id), expiresAt) === 1

/** Forgets used ids that expired before the given time. Must be called within a write. */
export const forgetSpent = (sql: Sql, expiredBefore: number): void =>
  void sql.run(
    'DELETE FROM spent WHERE id IN (SELECT id FROM spent WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)',
    expiredBefore,
    CLEARED,
  )
