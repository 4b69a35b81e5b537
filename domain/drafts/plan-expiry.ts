import { ToolError } from '../../schemas/errors.js'
import { FORM, markExpiry, readExpiry, startOfDay } from '../policy/read-expiry.js'

/** The marker that removes the end of a rule, for messages. */
const NEVER = '[expires: never]'

/**
 * Returns the description for a new rule that ends after the day `expires`.
 *
 * @throws {ToolError} invalid_argument if `expires` is not a date or is in the past, or if the description names
 * another end.
 */
export function describeWithEnd(
  description: string | undefined,
  expires: string | undefined,
  now: number,
): string | undefined {
  if (expires === undefined) return description
  const day = expires.trim()
  const from = startOfDay(day)
  if (from === null) {
    const details = { argument: 'expires' }
    throw new ToolError('invalid_argument', 'expires is not a day of the calendar in the form YYYY-MM-DD.', details)
  }
  const today = new Date(now).toISOString().slice(0, 10)
  if (day < today) {
    const text = `expires is ${day}, which is over (today is ${today}, UTC): the rule would have ended before it begins.`
    throw new ToolError('invalid_argument', text, { argument: 'expires' })
  }
  const said = readExpiry(description)
  if (said.kind === 'ends' && said.date === day) return description
  if (said.kind === 'none' || (said.kind === 'unclear' && !said.isMarker)) return markExpiry(description ?? '', day)
  const other = said.kind === 'ends' ? said.date : said.kind === 'never' ? NEVER : said.why
  const text = `The description names an end of its own (${other}), beside expires ${day}. Give one of them.`
  throw new ToolError('invalid_argument', text, { argument: 'description' })
}

/**
 * Throws if a description contains a malformed expiry marker, because the rule would then never end.
 *
 * @throws {ToolError} invalid_argument, with the index of the rule if the call writes several rules.
 */
export function requireReadableEnd(description: string | undefined, ruleIndex?: number): void {
  const said = readExpiry(description)
  if (said.kind !== 'unclear' || !said.isMarker) return
  const details = { argument: 'description', ...(ruleIndex !== undefined && { rule_index: ruleIndex }) }
  const hint = `Write ${FORM}, the last day in UTC, or leave the brackets out.`
  throw new ToolError('invalid_argument', `The end in the description cannot be read: ${said.why}.`, details, { hint })
}

/**
 * Returns a warning if a new description gives an end of the rule that has passed, or mentions a date in a way that no
 * tool reads as an end.
 */
export function warnOfWrittenEnd(description: string | undefined, now: number): string[] {
  const said = readExpiry(description)
  if (said.kind === 'ends' && said.over <= now)
    return [`The description says that the rule ended after ${said.date} (UTC), which is over.`]
  return said.kind === 'unclear' && !said.isMarker
    ? [`The description is not read as an end of the rule: ${said.why}.`]
    : []
}

/**
 * Warns like `warnOfWrittenEnd`. For a new rule whose end is in the future, it says instead that the PCE does not know
 * the end, and which tool removes the rule.
 */
export function tellEnd(description: string | undefined, now: number): string[] {
  const said = readExpiry(description)
  return said.kind === 'ends' && said.over > now
    ? [`The PCE does not end the rule after ${said.date}: retire-expired has to be run then.`]
    : warnOfWrittenEnd(description, now)
}

/**
 * Returns the description to store when a rule's description changes, with warnings about the rule's expiry. If the new
 * description gives no expiry date, the expiry marker of the current description is kept, because editing a description
 * must not make a temporary rule permanent.
 *
 * @throws {ToolError} under the conditions of requireReadableEnd, unless the description stays the same.
 */
export function keepEnd(
  current: string | null | undefined,
  asked: string | undefined,
  now: number,
): { description?: string; warnings: string[] } {
  if (asked === undefined) return { warnings: [] }
  if (asked === (current ?? '')) return { description: asked, warnings: [] }
  requireReadableEnd(asked)
  const [was, is] = [readExpiry(current), readExpiry(asked)]
  const written = warnOfWrittenEnd(asked, now)
  if (was.kind === 'ends' && (is.kind === 'none' || is.kind === 'unclear')) {
    const kept = `The rule still ends after ${was.date}: the new description said nothing of that, so its marker was kept. To take the end away, write ${NEVER}.`
    return { description: markExpiry(asked, was.date), warnings: [kept, ...written] }
  }
  if (was.kind === 'ends' && is.kind === 'never')
    return { description: asked, warnings: [`The rule no longer ends after ${was.date}.`] }
  if (was.kind === 'ends' && is.kind === 'ends' && is.date !== was.date)
    return {
      description: asked,
      warnings: [`The rule ends after ${is.date}, no longer after ${was.date}.`, ...written],
    }
  const lost = was.kind === 'unclear' && is.kind === 'none'
  const gone = `The old description was about an end that could not be read (${was.kind === 'unclear' ? was.why : ''}); the new one is not.`
  return { description: asked, warnings: [...(lost ? [gone] : []), ...written] }
}
