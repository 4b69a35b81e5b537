import type { ApprovalEnding, ApprovalRow } from '../schemas/state.js'

/** Of one owner, that nobody has decided: more than anyone reads before they expire. */
export const MOST_WAITING_PER_OWNER = 50
/** Of all owners. */
export const MOST_WAITING = 1000
/** What one look ends or forgets: few, so that no statement is slow. */
export const CLEARED = 100
/** A call that came in time may be at work for so long; what nobody has decided is kept as long, and no longer, for it may be large: milliseconds. */
export const WORKING_MS = 60 * 60 * 1000
/** How long what was decided is kept after it has expired: milliseconds. */
export const KEPT_MS = 24 * 60 * 60 * 1000

/** A row of either engine. */
export interface StoredApproval {
  id: string
  owner: string
  call: string
  request: string
  decision: string | null
  ending: ApprovalEnding | null
  /** Milliseconds since the epoch; a text where the driver gives a bigint. */
  expires_at: number | string
}

export const APPROVAL_COLUMNS = 'id, owner, call, request, decision, ending, expires_at'
/** The condition of rows that nobody has decided and that have not ended. */
export const UNDECIDED = 'decision IS NULL AND ending IS NULL'

/** A row as the port has it (schemas/state.ts). */
export const approvalOf = ({ id, owner, call, expires_at: expiresAt, ...row }: StoredApproval): ApprovalRow => ({
  id,
  key: { owner, call },
  request: row.request,
  decision: row.decision,
  ending: row.ending,
  expiresAt: Number(expiresAt),
})
