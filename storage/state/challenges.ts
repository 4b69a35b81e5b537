import type { Challenges } from '../../schemas/state.js'
import { checkText } from './check-text.js'
import type { Queries } from './run-queries.js'

/** How many expired ones a new one clears away. */
const CLEARED = 100

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
