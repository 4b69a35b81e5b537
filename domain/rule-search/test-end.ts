import { ToolError } from '../../schemas/errors.js'
import { readExpiry, startOfDay } from '../policy/read-expiry.js'
import { unknown, type Answer } from '../policy/three-valued.js'

const DAY_MS = 86_400_000

/**
 * Creates a function that returns whether a rule has ended before a day. It is undecided if the rule's description
 * mentions an end that cannot be read.
 *
 * @param before the day, `YYYY-MM-DD` in UTC, or `today`.
 * @throws {ToolError} invalid_argument if `before` is neither.
 */
export function testEnd(before: string, now: number): (rule: { description?: string | null | undefined }) => Answer {
  const day = before.trim()
  const from = day.toLowerCase() === 'today' ? now - (now % DAY_MS) : startOfDay(day)
  if (from === null) {
    const text = 'expires_before is neither today nor a day of the calendar in the form YYYY-MM-DD.'
    throw new ToolError('invalid_argument', text, { argument: 'expires_before' })
  }
  return ({ description }) => {
    const end = readExpiry(description)
    if (end.kind === 'ends') return end.over <= from ? 'yes' : 'no'
    return end.kind === 'unclear' ? unknown('expiry') : 'no'
  }
}
