import type { Approvals } from '../../schemas/state.js'
import {
  APPROVAL_COLUMNS,
  approvalOf as rowOf,
  byExpiry,
  CLEARED,
  KEPT_MS,
  MOST_WAITING,
  MOST_WAITING_PER_OWNER,
  type StoredApproval as Row,
  TURN,
  UNDECIDED,
  WORKING_MS,
} from '../approval-rows.js'
import { bounded } from '../bound-value.js'
import { checkText } from '../check-text.js'
import type { Queries, Sql } from './run-queries.js'
import { forgetSpent, spend } from './spent.js'

/**
 * The SQL that adds the table of approvals to a file without it. Older programs do not use the table, so the schema
 * number is not raised, and they can still use the file if an upgrade is reversed (D144).
 */
export const ADD_APPROVALS = `
  CREATE TABLE IF NOT EXISTS approvals (
    id TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, call TEXT NOT NULL, request TEXT NOT NULL, decision TEXT, ending TEXT,
    is_current INTEGER NOT NULL, expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS approvals_of_call ON approvals (owner, call) WHERE is_current = 1;
  CREATE INDEX IF NOT EXISTS approvals_by_expiry ON approvals (expires_at);
`

/**
 * The SQL that adds the table of the first of two approvals of a call. It is no column of the table of approvals, because
 * older programs add rows to that table without naming its columns (D293).
 */
export const ADD_FIRST_DECISIONS = `
  CREATE TABLE IF NOT EXISTS first_decisions (id TEXT PRIMARY KEY NOT NULL, decision TEXT NOT NULL) STRICT, WITHOUT ROWID;
`

const COLUMNS = `${APPROVAL_COLUMNS},
  (SELECT ${bounded('decision')} FROM first_decisions WHERE first_decisions.id = approvals.id) AS first_decision`

/**
 * Creates an accessor for the approvals in the file (see schemas/state.ts). `now` returns milliseconds since the epoch.
 */
export function approvals({ read, write }: Queries, now: () => number): Approvals {
  const current = (sql: Sql, owner: string, call: string) =>
    sql.one<Row>(`SELECT ${COLUMNS} FROM approvals WHERE owner = ? AND call = ? AND is_current = 1`, owner, call)
  return {
    open: ({ id, key, request, expiresAt }, instead) =>
      write((sql) => {
        const [owner, call] = [checkText(key.owner), checkText(key.call)]
        const found = current(sql, owner, call)
        if (found && found.ending === null && Number(found.expires_at) > now() && found.id !== instead)
          return rowOf(found)
        sql.run('UPDATE approvals SET is_current = 0 WHERE owner = ? AND call = ? AND is_current = 1', owner, call)
        const latest = (where: string) =>
          `UPDATE approvals SET expires_at = ? WHERE id IN (SELECT id FROM approvals WHERE ${UNDECIDED} ${where} ORDER BY expires_at DESC LIMIT -1 OFFSET ?)`
        sql.run(latest('AND owner = ?'), now(), owner, MOST_WAITING_PER_OWNER - 1)
        sql.run(latest(''), now(), MOST_WAITING - 1)
        const values = [checkText(id), owner, call, checkText(request), expiresAt]
        sql.run(`INSERT INTO approvals VALUES (?, ?, ?, ?, NULL, NULL, 1, ?)`, ...values)
        return { id, key, request, decision: null, firstDecision: null, ending: null, expiresAt }
      }),
    get: (id) =>
      read((sql) => {
        const row = sql.one<Row>(`SELECT ${COLUMNS} FROM approvals WHERE id = ?`, checkText(id))
        return row === undefined ? null : rowOf(row)
      }),
    find: ({ owner, call }) =>
      read((sql) => {
        const row = current(sql, checkText(owner), checkText(call))
        return row === undefined ? null : rowOf(row)
      }),
    waiting: (owner, { inAll, ofEach, except = [] }) =>
      read((sql) => {
        const others = 'id NOT IN (SELECT value FROM json_each(?))'
        const where = `WHERE ${UNDECIDED} AND expires_at > ? AND ${others}${owner === null ? '' : ' AND owner = ?'}`
        const values = [now(), JSON.stringify(except), ...(owner === null ? [] : [checkText(owner)])]
        const { total } = sql.one<{ total: number }>(`SELECT count(*) AS total FROM approvals ${where}`, ...values)!
        const rows = sql.all<Row>(
          `SELECT ${COLUMNS} FROM (SELECT *, ${TURN} FROM approvals ${where}) AS approvals
           WHERE turn <= ? ORDER BY turn, expires_at, id LIMIT ?`,
          ...values,
          ofEach,
          inAll,
        )
        return { total, rows: rows.map(rowOf).sort(byExpiry) }
      }),
    live: (after, limit) =>
      read((sql) => {
        const rows = sql.all<Row>(
          `SELECT ${COLUMNS} FROM approvals WHERE ending IS NULL AND expires_at > ? AND (expires_at, id) > (?, ?)
           ORDER BY expires_at, id LIMIT ?`,
          now(),
          after?.expiresAt ?? 0,
          checkText(after?.id ?? ''),
          limit,
        )
        return rows.map(rowOf)
      }),
    decide: (id, decision, after) =>
      write((sql) => {
        const open = `UPDATE approvals SET decision = ? WHERE id = ? AND ${UNDECIDED} AND expires_at > ?`
        const values = [checkText(decision), checkText(id), now()]
        if (after === undefined) return sql.run(open, ...values) === 1
        const known = 'AND id IN (SELECT id FROM first_decisions WHERE decision = ?)'
        return sql.run(`${open} ${known}`, ...values, checkText(after)) === 1
      }),
    approveFirst: (id, decision) =>
      write((sql) => {
        const open = `INSERT INTO first_decisions (id, decision) SELECT id, ? FROM approvals
          WHERE id = ? AND ${UNDECIDED} AND expires_at > ? ON CONFLICT (id) DO NOTHING`
        return sql.run(open, checkText(decision), checkText(id), now()) === 1
      }),
    end: (id, ending) =>
      write((sql) => {
        const open = 'SELECT expires_at FROM approvals WHERE id = ? AND ending IS NULL'
        const found = sql.one<{ expires_at: number }>(open, checkText(id))
        if (found === undefined) return false
        sql.run('UPDATE approvals SET ending = ? WHERE id = ?', ending, id)
        return spend(sql, id, Math.max(found.expires_at, now()))
      }),
    expire: () =>
      write((sql) => {
        const rows = sql.all<Row>(
          `SELECT ${COLUMNS} FROM approvals WHERE ending IS NULL
           AND (decision IS NULL AND expires_at <= ? OR expires_at <= ?) ORDER BY expires_at LIMIT ?`,
          now(),
          now() - WORKING_MS,
          CLEARED,
        )
        for (const { id } of rows) sql.run(`UPDATE approvals SET ending = 'expired' WHERE id = ?`, id)
        const old =
          'SELECT id FROM approvals WHERE ending IS NOT NULL AND expires_at <= CASE WHEN decision IS NULL THEN ? ELSE ? END LIMIT ?'
        sql.run(`DELETE FROM approvals WHERE id IN (${old})`, now() - WORKING_MS, now() - KEPT_MS, CLEARED)
        sql.run(REMOVE_LEFT)
        forgetSpent(sql, now() - KEPT_MS)
        return rows.map((row) => ({ ...rowOf(row), ending: 'expired' as const }))
      }),
    removeAll: (owner) =>
      write((sql) => {
        const removed = sql.run('DELETE FROM approvals WHERE owner = ?', checkText(owner))
        sql.run(REMOVE_LEFT)
        return removed
      }),
  }
}

/**
 * The SQL that removes first approvals of questions that no longer exist, including questions that older programs have
 * removed.
 */
const REMOVE_LEFT = 'DELETE FROM first_decisions WHERE id NOT IN (SELECT id FROM approvals)'
