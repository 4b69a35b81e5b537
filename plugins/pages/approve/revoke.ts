import type { AskedApproval } from '../../../schemas/approvals.js'
import { ToolError } from '../../../schemas/errors.js'
import type { ApprovalPlace } from '../../../schemas/state.js'
import { titleOf } from '../../../tools/define.js'
import { isApprovalId } from '../check-request.js'
import type { Notice } from '../layout/page-layout.js'

/** Returns the text by which a URL refers to a position in the list of all live requests. */
export const writePlace = ({ expiresAt, id }: ApprovalPlace): string => `${expiresAt}.${id}`

/** Maximum number of digits of a time in milliseconds since the epoch. */
const LONGEST_TIME = 15

/**
 * Reads the position after which a page of the list of all live requests begins. Returns null for the first page.
 * Throws ToolError `invalid_argument` for any text that `writePlace` does not write.
 */
export function readPlace(text: unknown): ApprovalPlace | null {
  if (text === undefined || text === '') return null
  const [time = '', id = '', ...rest] = typeof text === 'string' ? text.split('.') : []
  const isTime = /^\d+$/.test(time) && time.length <= LONGEST_TIME
  if (isTime && isApprovalId(id) && rest.length === 0) return { expiresAt: Number(time), id }
  throw new ToolError('invalid_argument', 'This is no page of the list.', { argument: 'after' })
}

/**
 * Reads from a submitted revocation the path to which the browser returns, without the base path. Null stands for the
 * page of the request. Throws ToolError `invalid_argument` for a position that `readPlace` cannot read.
 */
export function readBack(body: unknown): string | null {
  const { to, after } = (body ?? {}) as Record<string, unknown>
  if (to === 'list') return '/approve'
  if (to !== 'all') return null
  const place = readPlace(after)
  return place === null ? '/approve/all' : `/approve/all?after=${writePlace(place)}`
}

/** Returns the notice that tells the admin the outcome of the revocation. */
export function noticeOfRevocation(won: boolean, { request, state }: AskedApproval): Notice {
  const call = `“${titleOf({ name: request.tool })}”`
  if (won) return { kind: 'good', title: 'Revoked', text: `The call ${call} does not run with this request.` }
  if (state === 'revoked') return { kind: 'good', title: 'It had been revoked before', text: `${call} does not run.` }
  return { kind: 'warning', title: 'Nothing was revoked', text: `It came too late: this request is ${state}.` }
}
