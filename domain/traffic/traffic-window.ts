import { Type } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'

/** The window of a traffic query: RFC 3339 in UTC, both ends included. */
export interface TrafficWindow {
  start: string
  end: string
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
/** Date and time; the zone is optional and UTC without one (D4). */
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(Z|z|[+-]\d{2}:?\d{2})?$/
/** An epoch number with this many digits or more counts milliseconds (T6). */
const MILLISECOND_DIGITS = 12

/**
 * The window between two dates as callers write them: YYYY-MM-DD (its first second as a start, its last as an end), an ISO
 * timestamp, or epoch seconds or milliseconds. Throws invalid_window for a date that does not exist and for a start after the end,
 * both of which the PCE accepts and answers with nothing.
 */
export function parseTrafficWindow(startDate: string, endDate: string): TrafficWindow {
  const start = parseInstant('start_date', startDate, '00:00:00')
  const end = parseInstant('end_date', endDate, '23:59:59')
  if (start > end) {
    throw new ToolError('invalid_window', `start_date ${startDate} is after end_date ${endDate}; swap them.`, {
      start_date: startDate,
      end_date: endDate,
    })
  }
  return { start: toTimestamp(start), end: toTimestamp(end) }
}

/** Milliseconds since the epoch as the PCE takes times: without milliseconds when they are zero. */
function toTimestamp(instant: number): string {
  return new Date(instant).toISOString().replace('.000Z', 'Z')
}

/**
 * A time as callers write it, as the PCE takes it; `timeOfBareDate` is of a YYYY-MM-DD, and without a zone it is UTC. Null for what is no
 * time.
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
      `${field} "${text}" is not a date. Use YYYY-MM-DD, an ISO 8601 timestamp or epoch seconds.`,
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
  // Date.parse refuses hours above 24 and minutes above 59, but takes 24:00 as the next day.
  return Number(hours) > 23 ? NaN : Date.parse(`${date}T${hours}:${minutes}:${seconds}${milliseconds}${offset}`)
}

/** Whether a YYYY-MM-DD exists: Date.parse turns 30 February into March, so a day too many always shows in the month. */
function isRealDate(text: string): boolean {
  const parts = DATE.exec(text)
  if (parts === null) return false
  const [year, month, day] = parts.slice(1).map(Number) as [number, number, number]
  return new Date(Date.UTC(year, month - 1, day)).getUTCMonth() === month - 1
}

const DAY_MS = 86_400_000

/** From midnight UTC `days` days before today to the end of today (D4, T6). */
export function lookbackWindow(now: number, days: number): TrafficWindow {
  const day = (instant: number) => new Date(instant).toISOString().slice(0, 10)
  return { start: `${day(now - days * DAY_MS)}T00:00:00Z`, end: `${day(now)}T23:59:59Z` }
}

/** The argument `lookback_days`. */
export const lookbackDays = (days: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 365, default: days, description: 'Days back' }))

/**
 * The window of a tool that takes dates or a number of days: from `start_date`, else `days` days before now, to `end_date`,
 * otherwise the end of today. Days count back from now whatever the end is (D4). Throws invalid_window as parseTrafficWindow
 * does, and for an `end_date` without `start_date` that is before those days.
 */
export function windowOfDatesOrDays(
  now: number,
  { start_date: start, end_date: end }: { start_date?: string; end_date?: string },
  days: number,
): TrafficWindow {
  const lookback = lookbackWindow(now, days)
  if (start !== undefined) return parseTrafficWindow(start, end ?? lookback.end)
  if (end === undefined) return lookback
  const window = { start: lookback.start, end: parseTrafficWindow('1970-01-01', end).end }
  if (Date.parse(window.end) >= Date.parse(window.start)) return window
  throw new ToolError('invalid_window', `end_date ${end} is before the last ${days} days; give start_date as well.`, {
    argument: 'end_date',
    value: end,
    start: window.start,
  })
}
