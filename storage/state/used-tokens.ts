import type { UsedTokens } from '../../schemas/state.js'
import { checkText } from './check-text.js'
import { readNote } from './notes.js'
import type { Queries, Sql } from './run-queries.js'

/** How long a used id is kept after its token has expired, against clocks that are set back. */
const KEPT_MS = 24 * 60 * 60 * 1000
/** How many old ids one claim clears away: more than one, so that the file does not grow, and few, so that no claim is slow. */
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
