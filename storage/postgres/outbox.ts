import type { Outbox } from '../../schemas/state.js'
import { bounded } from '../bound-value.js'
import { checkText } from '../check-text.js'
import { LEASE, messageOf, MOST_MESSAGES, type StoredMessage } from '../outbox-limits.js'
import type { Database } from './connect.js'

/**
 * The SQL of the current time in milliseconds since the epoch, by the database's clock, which all replicas share for
 * their leases.
 */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
/** The SQL of the time at which the lease in the note `n` ends; 0 if the note does not have the expected form. */
const UNTIL = `CASE WHEN n.value ~ '^[0-9]{1,16} ' THEN split_part(n.value, ' ', 1)::bigint ELSE 0 END`

/**
 * Creates an accessor for the outbox in the database (see schemas/state.ts). `now` returns milliseconds since the
 * epoch.
 */
export function outbox({ query }: Database, now: () => number): Outbox {
  return {
    async add(messages) {
      const { count } = await query(
        `INSERT INTO svc_mcp.outbox (id, body, created_at, due_at)
         SELECT id, body, at, at FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS m (id, body, at, number)
         ORDER BY number LIMIT greatest(0, ${MOST_MESSAGES} - (SELECT count(*) FROM svc_mcp.outbox))`,
        [
          messages.map(({ id }) => checkText(id)),
          messages.map(({ body }) => checkText(body)),
          messages.map(({ createdAt }) => String(createdAt)),
        ],
      )
      return messages.length - count
    },
    async look() {
      const { rows } = await query<{ waiting: string; due_at: string | null }>(
        'SELECT count(*) AS waiting, min(due_at) AS due_at FROM svc_mcp.outbox',
        [],
      )
      const [found] = rows
      return { waiting: Number(found?.waiting ?? 0), dueAt: found?.due_at == null ? null : Number(found.due_at) }
    },
    async take(holder, leaseMs) {
      const time = now()
      // A lease that ends later than any valid lease could is ignored: a clock was ahead, or another program wrote the
      // note.
      const { rows } = await query<StoredMessage>(
        `WITH led AS (
           INSERT INTO svc_mcp.notes AS n (name, value) VALUES ('${LEASE}', (${NOW} + $3) || ' ' || $4::text)
           ON CONFLICT (name) DO UPDATE SET value = excluded.value
             WHERE split_part(n.value, ' ', 2) = $4 OR NOT (${UNTIL} > ${NOW} AND ${UNTIL} <= ${NOW} + $3)
           RETURNING 1)
         UPDATE svc_mcp.outbox SET attempts = attempts + 1, due_at = $2 WHERE id = (
           SELECT id FROM svc_mcp.outbox WHERE due_at <= $1 AND EXISTS (SELECT 1 FROM led)
           ORDER BY due_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING id, ${bounded('body')}, created_at, attempts`,
        [time, time + leaseMs, leaseMs, checkText(holder)],
      )
      return rows[0] === undefined ? null : messageOf(rows[0])
    },
    async defer(id, dueAt) {
      await query('UPDATE svc_mcp.outbox SET due_at = $2 WHERE id = $1', [id, dueAt])
    },
    async remove(id) {
      await query('DELETE FROM svc_mcp.outbox WHERE id = $1', [id])
    },
  }
}
