import { Type } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import { countOf } from '../text/describe-numbers.js'
import { quote } from '../text/escape-text.js'

/** The time window of a traffic query: RFC 3339 in UTC, both ends included. */
export interface TrafficWindow {
  start: string
  end: string
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
/** Matches a date with a time. The time zone is optional; a time without a zone is UTC (D4). */
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(Z|z|[+-]\d{2}:?\d{2})?$/
/** Minimum number of digits of an epoch time in milliseconds. A number with fewer digits is in seconds (T6). */
const MILLISECOND_DIGITS = 12

/**
 * Parses the two dates of a window. Each may be YYYY-MM-DD (the first second of the day for the start, the last second
 * for the end), an ISO timestamp, or epoch seconds or milliseconds.
 * @throws {ToolError} invalid_window for a date that does not exist, and for a start after the end. The PCE accepts
 * both and answers with no flows, which would mislead.
 */
export function parseTrafficWindow(startDate: string, endDate: string): TrafficWindow {
  const start = parseInstant('start_date', startDate, '00:00:00')
  const end = parseInstant('end_date', endDate, '23:59:59')
  if (start > end) {
    throw new ToolError(
      'invalid_window',
      `start_date ${quote(startDate)} is after end_date ${quote(endDate)}; swap them.`,
      {
        start_date: startDate,
        end_date: endDate,
      },
    )
  }
  return { start: toTimestamp(start), end: toTimestamp(end) }
}

/** Formats milliseconds since the epoch as the PCE expects times: without a fraction if it is zero. */
function toTimestamp(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z')
}

/**
 * Parses a time that a caller gave and formats it for the PCE. A date without a time (YYYY-MM-DD) gets
 * `timeOfBareDate`; a time without a zone is UTC. Returns null if the text is not a time.
 */
export function readTime(text: string, timeOfBareDate: string): string | null {
  const instant = readInstant(text, timeOfBareDate)
  return instant === null ? null : toTimestamp(instant)
}

function readInstant(text: string, timeOfBareDate: string): number | null {
  const trimmed = text.trim()
  const instant =
    parseEpoch(trimmed) ?? (isRealDate(trimmed) ? Date.parse(`${trimmed}T${timeOfBareDate}Z`) : parseTimestamp(trimmed))
  return Number.isNaN(instant) || instant < 0 || instant > Date.UTC(9999, 11, 31) ? null : instant
}

function parseInstant(field: string, text: string, timeOfBareDate: string): number {
  const instant = readInstant(text, timeOfBareDate)
  if (instant === null) {
    throw new ToolError(
      'invalid_window',
      `${field} ${quote(text)} is not a date. Use YYYY-MM-DD, an ISO 8601 timestamp or epoch seconds.`,
      { argument: field, value: text },
    )
  }
  return instant
}

function parseEpoch(text: string): number | undefined {
  if (!/^\d{9,15}$/.test(text)) return undefined
  return text.length >= MILLISECOND_DIGITS ? Number(text) : Number(text) * 1000
}

function parseTimestamp(text: string): number {
  const parts = TIMESTAMP.exec(text)
  if (parts === null || !isRealDate(parts[1] as string)) return NaN
  const [, date, hours, minutes, seconds = '00', fraction, zone = 'Z'] = parts
  const milliseconds = fraction === undefined ? '' : `.${fraction.slice(0, 3).padEnd(3, '0')}`
  const offset = zone.toUpperCase().replace(/^([+-]\d{2})(\d{2})$/, '$1:$2')
  // Date.parse rejects hours above 24 and minutes above 59, but reads 24:00 as the next day. So this function checks
  // the hour itself.
  return Number(hours) > 23 ? NaN : Date.parse(`${date}T${hours}:${minutes}:${seconds}${milliseconds}${offset}`)
}

/**
 * Returns true if a string is a date YYYY-MM-DD that exists. JavaScript's Date turns 30 February into a day in March,
 * so a day that does not exist shows up as another month.
 */
function isRealDate(text: string): boolean {
  const parts = DATE.exec(text)
  if (parts === null) return false
  const [year, month, day] = parts.slice(1).map(Number) as [number, number, number]
  return new Date(Date.UTC(year, month - 1, day)).getUTCMonth() === month - 1
}

const DAY_MS = 86_400_000

/** Returns the window from midnight UTC `days` days before today to the end of today (D4, T6). */
export function lookbackWindow(now: number, days: number): TrafficWindow {
  const day = (instant: number) => new Date(instant).toISOString().slice(0, 10)
  return { start: `${day(now - days * DAY_MS)}T00:00:00Z`, end: `${day(now)}T23:59:59Z` }
}

/**
 * Returns the schema of the argument `lookback_days` with the default `days`. Its description in tools/list names this
 * default, because it differs between tools, unless `listed` gives another text.
 */
export const lookbackDays = (days: number, listed = `Default ${days}`) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 365, default: days, description: 'Days', listed }))

/**
 * Returns the schema of the window arguments of a tool that reads traffic: a number of days back from now, or two
 * dates.
 */
export const windowInput = (days: number, listed?: string) => ({
  lookback_days: lookbackDays(days, listed),
  start_date: Type.Optional(Type.String({ description: 'From' })),
  end_date: Type.Optional(Type.String({ description: 'To' })),
})

/** The window arguments that a caller gave. */
export interface WindowChoice {
  lookback_days?: number
  start_date?: string
  end_date?: string
}

/** The window that a caller chose, with the number of days from its start until today. */
export interface ChosenWindow {
  window: TrafficWindow
  days: number
  /** A description of the window that completes the phrase "the traffic of …". */
  period: string
}

/**
 * Returns the time window for a tool that accepts either dates or a number of days. The window starts at `start_date`,
 * or else `lookback_days` (by default `days`) before now, and ends at `end_date`, or else at the end of today. Days are
 * always counted back from now, even if the window ends earlier (D4).
 *
 * @throws {ToolError} invalid_window as parseTrafficWindow does, and if `end_date` is before the start that results
 * from the number of days.
 */
export function chooseWindow(now: number, choice: WindowChoice, days: number): ChosenWindow {
  const { start_date: start, end_date: end, lookback_days: back = days } = choice
  const last = `the last ${countOf(back, 'day')}`
  if (start === undefined && end === undefined) return { window: lookbackWindow(now, back), days: back, period: last }
  const window = windowOfDates(now, { start, end }, back)
  const midnight = (instant: number) => Math.floor(instant / DAY_MS)
  return {
    window,
    days: Math.max(0, midnight(now) - midnight(Date.parse(window.start))),
    period: `${window.start} to ${window.end}`,
  }
}

function windowOfDates(
  now: number,
  { start, end }: { start: string | undefined; end: string | undefined },
  days: number,
): TrafficWindow {
  const lookback = lookbackWindow(now, days)
  if (start !== undefined) return parseTrafficWindow(start, end ?? lookback.end)
  if (end === undefined) return lookback
  const window = { start: lookback.start, end: parseTrafficWindow('1970-01-01', end).end }
  if (Date.parse(window.end) >= Date.parse(window.start)) return window
  throw new ToolError(
    'invalid_window',
    `end_date ${quote(end)} is before the last ${days} days; give start_date as well.`,
    {
      argument: 'end_date',
      value: end,
      start: window.start,
    },
  )
}
