import { LONGEST_NOTE, type AskedApproval } from '../../../schemas/approvals.js'
import { ToolError } from '../../../schemas/errors.js'
import type { Notice } from '../layout/page-layout.js'

/** What a person has sent: their verdict, or a note that is too long, with what to say of it. */
type ReadDecision = { verdict: 'approved' | 'denied'; note?: string } | { note: string; error: string }

const VERDICTS: Readonly<Record<string, 'approved' | 'denied'>> = { approve: 'approved', deny: 'denied' }

/**
 * Reads the form of a decision. A note becomes one line. Throws ToolError `invalid_argument` for a form that is not the page's: neither of
 * its buttons, or both.
 */
export function readDecision(body: unknown): ReadDecision {
  const { verdict: pressed, note: written = '' } = (body ?? {}) as Record<string, unknown>
  const verdict = typeof pressed === 'string' && Object.hasOwn(VERDICTS, pressed) ? VERDICTS[pressed] : undefined
  if (verdict === undefined || typeof written !== 'string')
    throw new ToolError('invalid_argument', 'This form says neither yes nor no.', { argument: 'verdict' })
  const note = written.replace(/\s+/g, ' ').trim()
  if (note.length > LONGEST_NOTE)
    return {
      note: written.slice(0, 4 * LONGEST_NOTE),
      error: `The note has ${note.length} characters, and may have ${LONGEST_NOTE}. Nothing was decided yet.`,
    }
  return { verdict, ...(note !== '' && { note }) }
}

/** Whether somebody has to log in again before they decide. Times in milliseconds since the epoch; nobody knows when: they have to. */
export const wantsLogin = (authenticatedAt: number | undefined, maxAgeSeconds: number, now: number): boolean =>
  maxAgeSeconds > 0 && (authenticatedAt === undefined || now - authenticatedAt > maxAgeSeconds * 1000)

/** What the page says to somebody who came too late; null where theirs is the decision that stands. */
export function noticeOfDecision(
  won: boolean,
  verdict: 'approved' | 'denied',
  { state, decision }: AskedApproval,
): Notice | null {
  if (won) return null
  const wanted = verdict === 'approved' ? 'approval' : 'denial'
  if (decision === null)
    return {
      kind: 'warning',
      title: 'Nothing was decided',
      text: `Your ${wanted} came too late: this request is ${state}.`,
    }
  return {
    kind: 'warning',
    title: 'It had been decided before',
    text: `Your ${wanted} changed nothing: the first decision stands.`,
  }
}
