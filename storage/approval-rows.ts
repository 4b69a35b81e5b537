import type { ApprovalEnding, ApprovalRow } from '../schemas/state.js'
import { bounded } from './bound-value.js'

/**
 * Maximum number of approval questions of one owner that nobody has decided yet. Nobody can read more of them before
 * they expire.
 */
export const MOST_WAITING_PER_OWNER = 50
/** Maximum number of undecided approval questions of all owners together. */
export const MOST_WAITING = 1000
/**
 * Maximum number of rows that one clean-up marks as expired, and maximum number that it deletes. It is small, so that
 * no statement is slow.
 */
export const CLEARED = 100
/**
 * The time, in milliseconds, for which an approval can still be used after it has expired, because a call that arrived
 * in time may still be running. Undecided questions are deleted after the same time, because they may be large.
 */
export const WORKING_MS = 60 * 60 * 1000
/** The time in milliseconds for which decided approval questions are kept after they have expired. */
export const KEPT_MS = 24 * 60 * 60 * 1000

/** A row of the table of approvals, in the form in which both database engines return it. */
export interface StoredApproval {
  id: string
  owner: string
  call: string
  request: string
  decision: string | null
  first_decision: string | null
  ending: string | null
  /** The time of expiry in milliseconds since the epoch; a string if the driver returns a bigint. */
  expires_at: number | string
}

/** The SQL that reads the columns of an approval, except for its first decision. A value that is too long is read as an empty value. */
export const APPROVAL_COLUMNS = `${bounded('id')}, ${bounded('owner')}, ${bounded('call')}, ${bounded('request')}, ${bounded('decision')}, ${bounded('ending')}, expires_at`
/** The SQL condition for questions that have not been decided and have not become void. */
export const UNDECIDED = 'decision IS NULL AND ending IS NULL'
/**
 * The SQL of a computed column that numbers the questions of each owner separately, in the order in which they expire.
 */
export const TURN = 'row_number() OVER (PARTITION BY owner ORDER BY expires_at, id) AS turn'
/** Compares two questions for sorting: the question that expires first comes first. */
export const byExpiry = (one: ApprovalRow, other: ApprovalRow): number =>
  one.expiresAt - other.expiresAt || (one.id < other.id ? -1 : 1)

/** Converts a row to the form of the interface in schemas/state.ts. */
export const approvalOf = ({ id, owner, call, expires_at: expiresAt, ...row }: StoredApproval): ApprovalRow => ({
  id,
  key: { owner, call },
  request: row.request,
  decision: row.decision,
  firstDecision: row.first_decision,
  ending: endingOf(row.ending),
  expiresAt: Number(expiresAt),
})

const ENDINGS: readonly string[] = ['used', 'void', 'expired', 'revoked'] satisfies ApprovalEnding[]

/**
 * Converts the stored word that says how an approval ended. A word that this server never writes counts as `void`, so
 * that it does not permit the call.
 */
const endingOf = (stored: string | null): ApprovalEnding | null =>
  stored === null || ENDINGS.includes(stored) ? (stored as ApprovalEnding | null) : 'void'
