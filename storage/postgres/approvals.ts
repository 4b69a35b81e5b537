import type { ApprovalRow, Approvals } from '../../schemas/state.js'
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
import type { Database, Query } from './connect.js'

const COLUMNS = `${APPROVAL_COLUMNS}, ${bounded('first_decision')}`

/**
 * Creates an accessor for the approvals in the database (see schemas/state.ts). `now` returns milliseconds since the
 * epoch.
 */
export function approvals({ query }: Database, now: () => number): Approvals {
  const first = async (...statement: Parameters<Query>): Promise<ApprovalRow | null> => {
    const { rows } = await query<Row>(...statement)
    return rows[0] === undefined ? null : rowOf(rows[0])
  }
  return {
    async open({ id, key, request, expiresAt }, instead) {
      const opened = await first(
        `SELECT ${COLUMNS} FROM (SELECT opened.*, first_decision
           FROM svc_mcp.open_approval_1($1, $2, $3, $4, $5, $6, $7, $8, $9) AS opened
           LEFT JOIN svc_mcp.approvals AS known ON known.id = opened.id) AS approvals`,
        [
          checkText(id),
          checkText(key.owner),
          checkText(key.call),
          checkText(request),
          expiresAt,
          now(),
          instead ?? null,
          MOST_WAITING_PER_OWNER,
          MOST_WAITING,
        ],
      )
      return opened!
    },
    get: async (id) => first(`SELECT ${COLUMNS} FROM svc_mcp.approvals WHERE id = $1`, [checkText(id)]),
    find: async ({ owner, call }) =>
      first(`SELECT ${COLUMNS} FROM svc_mcp.approvals WHERE owner = $1 AND call = $2 AND is_current`, [
        checkText(owner),
        checkText(call),
      ]),
    async waiting(owner, { inAll, ofEach, except = [] }) {
      const { rows } = await query<Row & { total: string }>(
        `SELECT ${COLUMNS}, total FROM (
           SELECT *, ${TURN}, count(*) OVER () AS total FROM svc_mcp.approvals
           WHERE ${UNDECIDED} AND expires_at > $1 AND ($2::text IS NULL OR owner = $2) AND id <> ALL($5::text[])) AS waiting
         WHERE turn <= $3 ORDER BY turn, expires_at, id LIMIT $4`,
        [now(), owner === null ? null : checkText(owner), ofEach, inAll, except],
      )
      return { total: Number(rows[0]?.total ?? 0), rows: rows.map(({ total: _, ...row }) => rowOf(row)).sort(byExpiry) }
    },
    async live(after, limit) {
      const { rows } = await query<Row>(
        `SELECT ${COLUMNS} FROM svc_mcp.approvals WHERE ending IS NULL AND expires_at > $1 AND (expires_at, id) > ($2, $3)
         ORDER BY expires_at, id LIMIT $4`,
        [now(), after?.expiresAt ?? 0, checkText(after?.id ?? ''), limit],
      )
      return rows.map(rowOf)
    },
    async decide(id, decision, after) {
      const open = `UPDATE svc_mcp.approvals SET decision = $2 WHERE id = $1 AND ${UNDECIDED} AND expires_at > $3
        AND ($4::text IS NULL OR first_decision = $4)`
      return (await query(open, [checkText(id), checkText(decision), now(), after ?? null])).count === 1
    },
    async approveFirst(id, decision) {
      const open = `UPDATE svc_mcp.approvals SET first_decision = $2
        WHERE id = $1 AND ${UNDECIDED} AND expires_at > $3 AND first_decision IS NULL`
      return (await query(open, [checkText(id), checkText(decision), now()])).count === 1
    },
    async end(id, ending) {
      const { rows } = await query<{ is_first: boolean }>('SELECT svc_mcp.end_approval_1($1, $2, $3) AS is_first', [
        checkText(id),
        ending,
        now(),
      ])
      return rows[0]?.is_first === true
    },
    async expire() {
      const { rows } = await query<Row>(
        `UPDATE svc_mcp.approvals SET ending = 'expired' WHERE ending IS NULL AND id IN (
           SELECT id FROM svc_mcp.approvals WHERE ending IS NULL AND (decision IS NULL AND expires_at <= $1 OR expires_at <= $2)
           ORDER BY expires_at LIMIT ${CLEARED} FOR UPDATE SKIP LOCKED)
         RETURNING ${COLUMNS}`,
        [now(), now() - WORKING_MS],
      )
      await query(
        `DELETE FROM svc_mcp.approvals WHERE id IN (
           SELECT id FROM svc_mcp.approvals WHERE ending IS NOT NULL AND expires_at <= CASE WHEN decision IS NULL THEN $1::bigint ELSE $2::bigint END
           LIMIT ${CLEARED} FOR UPDATE SKIP LOCKED)`,
        [now() - WORKING_MS, now() - KEPT_MS],
      )
      return rows.map(rowOf)
    },
    async removeAll(owner) {
      return (await query('DELETE FROM svc_mcp.approvals WHERE owner = $1', [checkText(owner)])).count
    },
  }
}
