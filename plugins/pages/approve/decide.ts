import { LONGEST_NOTE, type AskedApproval } from '../../../schemas/approvals.js'
import { ToolError } from '../../../schemas/errors.js'
import type { Notice } from '../layout/page-layout.js'

/**
 * The submitted verdict and note. If the note is too long, the submitted note and an error message take the place of
 * the verdict.
 */
type ReadDecision = { verdict: 'approved' | 'denied'; note?: string } | { note: string; error: string }

const VERDICTS: Readonly<Record<string, 'approved' | 'denied'>> = { approve: 'approved', deny: 'denied' }

/**
 * Reads the submitted form and converts the note to a single line. Throws ToolError `invalid_argument` if not exactly
 * one of the page's two buttons was pressed, or if there is more than one note.
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

/**
 * Returns true if the person must log in again before deciding. An unknown login time counts as too old. Times are in
 * milliseconds since the epoch.
 */
export const wantsLogin = (authenticatedAt: number | undefined, maxAgeSeconds: number, now: number): boolean =>
  maxAgeSeconds > 0 && (authenticatedAt === undefined || now - authenticatedAt > maxAgeSeconds * 1000)

/** Returns the notice for a person whose decision came too late. Returns null if the decision counts (`won`). */
export function noticeOfDecision(
  won: boolean,
  verdict: 'approved' | 'denied',
  { state, decision, first }: AskedApproval,
): Notice | null {
  if (won) return null
  if (state === 'pending' && first !== null)
    return {
      kind: 'warning',
      title: 'You have approved it before',
      text: 'Your second approval changed nothing: it takes another person.',
    }
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
