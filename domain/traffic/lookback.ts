import { Type } from '@sinclair/typebox'
import { ToolError } from '../../schemas/errors.js'
import { parseTrafficWindow, type TrafficWindow } from './traffic-window.js'

const DAY_MS = 86_400_000

/** From midnight UTC, so many days before today, to the end of today (design decision 4; tools contract, A6). */
export function lookbackWindow(now: number, days: number): TrafficWindow {
  const day = (instant: number) => new Date(instant).toISOString().slice(0, 10)
  return { start: `${day(now - days * DAY_MS)}T00:00:00Z`, end: `${day(now)}T23:59:59Z` }
}

/** The argument `lookback_days` of the tools that look at the last days. */
export const lookbackDays = (days: number) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: 365, default: days, description: 'Days back' }))

/**
 * The window of a tool that takes dates or a number of days: from `start_date`, else so many days before now, to `end_date`, else
 * the end of today. Days count back from now whatever the end is (design decision 4). Throws invalid_window as parseTrafficWindow
 * does, and for an `end_date` without `start_date` that lies before these days.
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
  throw new ToolError(
    'invalid_window',
    `end_date ${end} lies before the ${days} days that count back from now; give start_date as well.`,
    { argument: 'end_date', value: end, start: window.start },
  )
}
