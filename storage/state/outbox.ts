import type { Outbox } from '../../schemas/state.js'
import { bounded } from '../bound-value.js'
import { checkText } from '../check-text.js'
import { LEASE, messageOf, MOST_MESSAGES, type StoredMessage } from '../outbox-limits.js'
import type { Queries, Sql } from './run-queries.js'

/** The SQL that adds the table of messages to a file without it. Older programs do not use this table (D144). */
export const ADD_OUTBOX = `
  CREATE TABLE IF NOT EXISTS outbox (
    id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL, due_at INTEGER NOT NULL, attempts INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS outbox_by_due ON outbox (due_at);
`

/** Creates an accessor for the outbox in the file (see schemas/state.ts). `now` returns milliseconds since the epoch. */
export function outbox({ read, write }: Queries, now: () => number): Outbox {
  return {
    add: (messages) =>
      write((sql) => {
        const { waiting } = sql.one<{ waiting: number }>('SELECT count(*) AS waiting FROM outbox')!
        const kept = messages.slice(0, Math.max(0, MOST_MESSAGES - waiting))
        for (const { id, body, createdAt } of kept)
          sql.run('INSERT INTO outbox VALUES (?, ?, ?, ?, 0)', checkText(id), checkText(body), createdAt, createdAt)
        return messages.length - kept.length
      }),
    look: () =>
      read((sql) => {
        const { waiting, due_at: dueAt } = sql.one<Looked>(
          'SELECT count(*) AS waiting, min(due_at) AS due_at FROM outbox',
        )!
        return { waiting, dueAt }
      }),
    take: (holder, leaseMs) =>
      write((sql) => {
        const time = now()
        const [until, owner] = readLease(sql)
        // A lease that ends later than any valid lease could is ignored: a clock was ahead, or another program wrote
        // the note.
        if (owner !== holder && until > time && until <= time + leaseMs) return null
        const due = 'SELECT id FROM outbox WHERE due_at <= ? ORDER BY due_at, id LIMIT 1'
        const id = sql.one<{ id: string }>(due, time)?.id
        if (id === undefined) return null
        sql.run('INSERT OR REPLACE INTO notes VALUES (?, ?)', LEASE, `${time + leaseMs} ${holder}`)
        sql.run('UPDATE outbox SET attempts = attempts + 1, due_at = ? WHERE id = ?', time + leaseMs, id)
        const taken = `SELECT id, ${bounded('body')}, created_at, attempts FROM outbox WHERE id = ?`
        return messageOf(sql.one<StoredMessage>(taken, id)!)
      }),
    defer: (id, dueAt) => write((sql) => void sql.run('UPDATE outbox SET due_at = ? WHERE id = ?', dueAt, id)),
    remove: (id) => write((sql) => void sql.run('DELETE FROM outbox WHERE id = ?', id)),
  }
}

interface Looked {
  waiting: number
  due_at: number | null
}

function readLease(sql: Sql): [until: number, holder: string] {
  const value = sql.one<{ value: string }>(`SELECT ${bounded('value')} FROM notes WHERE name = ?`, LEASE)?.value ?? ''
  const [until = '', holder = ''] = value.split(' ')
  return [Number(until), holder]
}
