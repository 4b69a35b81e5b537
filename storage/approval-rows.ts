import type { ApprovalEnding, ApprovalRow } from '../schemas/state.js'
import { bounded } from './bound-value.js'

/** Maximum number of undecided questions of one owner; nobody reads as many before they expire. */
export const MOST_WAITING_PER_OWNER = 50
/** Maximum number of undecided questions of all owners together. */
export const MOST_WAITING = 1000
/** Maximum number of rows that one pass ends or deletes. It is small, so that no statement is slow. */
export const CLEARED = 100
/**
 * The time in milliseconds for which an expired approval remains usable, because a call that arrived in time may still
 * be running. Undecided questions are deleted after the same time, since they may be large.
 */
export const WORKING_MS = 60 * 60 * 1000
/** The time in milliseconds for which decided questions are kept after they have expired. */
export const KEPT_MS = 24 * 60 * 60 * 1000

/** A row in the form in which both database engines return it. */
export interface StoredApproval {
  id: string
  owner: string
  call: string
  request: string
  decision: string | null
  ending: string | null
  /** The time of expiry in milliseconds since the epoch; a string if the driver returns a bigint. */
  expires_at: number | string
}

/** The SQL of the columns, none of which is longer than this server writes it. */
export const APPROVAL_COLUMNS = `id, owner, call, ${bounded('request')}, ${bounded('decision')}, ${bounded('ending')}, expires_at`
/** The SQL condition for questions that are undecided and have not been ended. */
export const UNDECIDED = 'decision IS NULL AND ending IS NULL'
/** The SQL column that counts the questions of each owner, from the first to expire on. */
export const TURN = 'row_number() OVER (PARTITION BY owner ORDER BY expires_at, id) AS turn'
/** Orders questions as the list of a person has them: the first to expire first. */
export const byExpiry = (one: ApprovalRow, other: ApprovalRow): number =>
  one.expiresAt - other.expiresAt || (one.id < other.id ? -1 : 1)

/** Converts a row to the form of the interface in schemas/state.ts. */
export const approvalOf = ({ id, owner, call, expires_at: expiresAt, ...row }: StoredApproval): ApprovalRow => ({
  id,
  key: { owner, call },
  request: row.request,
  decision: row.decision,
  ending: endingOf(row.ending),
  expiresAt: Number(expiresAt),
})

const ENDINGS: readonly string[] = ['used', 'void', 'expired'] satisfies ApprovalEnding[]

/** Reads how a row ended. What this server does not write permits no run either. */
const endingOf = (stored: string | null): ApprovalEnding | null =>
  stored === null || ENDINGS.includes(stored) ? (stored as ApprovalEnding | null) : 'void'
