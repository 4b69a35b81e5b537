import { ToolError } from '../../schemas/errors.js'
import { quote } from '../text/escape-text.js'
import { readTime } from '../traffic/traffic-window.js'

/**
 * A span of time, including its start and its end. Start or end may be missing. Times are in the PCE's format, with a
 * time zone.
 */
export interface Span {
  since?: string
  until?: string
  /**
   * Returns true if the time is in the span. A time that cannot be parsed is in the span only if the span has neither
   * start nor end.
   */
  has: (time: string | undefined) => boolean
}

/**
 * Reads the arguments `since` and `until`. A date without a time stands for the whole day in UTC. Throws
 * invalid_argument if one of them is not a time, or if the span ends before it begins.
 */
export function readSpan({ since, until }: { since?: string; until?: string }): Span {
  const [from, to] = [readBound('since', since, '00:00:00'), readBound('until', until, '23:59:59.999')]
  if (from !== undefined && to !== undefined && Date.parse(from) > Date.parse(to))
    throw new ToolError('invalid_argument', 'since is after until; swap them.', { argument: 'since' })
  const [first, last] = [
    from === undefined ? -Infinity : Date.parse(from),
    to === undefined ? Infinity : Date.parse(to),
  ]
  return {
    ...(from !== undefined && { since: from }),
    ...(to !== undefined && { until: to }),
    has(time) {
      const at = Date.parse(time ?? '')
      return Number.isNaN(at) ? from === undefined && to === undefined : at >= first && at <= last
    },
  }
}

function readBound(argument: string, text: string | undefined, timeOfBareDate: string): string | undefined {
  if (text === undefined) return undefined
  const time = readTime(text, timeOfBareDate)
  if (time !== null) return time
  const why = `${argument} ${quote(text)} is not a time. Use YYYY-MM-DD, an ISO 8601 timestamp or epoch seconds.`
  throw new ToolError('invalid_argument', why, { argument })
}
