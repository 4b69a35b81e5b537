import { ToolError } from '../../schemas/errors.js'
import { quote } from '../text/escape-text.js'
import { chooseWindow, readTime, type TrafficWindow, type WindowChoice } from './traffic-window.js'

/**
 * One of the two time windows that are compared, with its length in hours. Hours that have not passed yet do not count.
 */
export interface ComparedWindow {
  window: TrafficWindow
  /** The last instant that counts: the end of the window, or the present time if that is earlier. */
  until: string
  hours: number
}

/** The two windows of a comparison. */
export interface ComparedWindows {
  before: ComparedWindow
  now: ComparedWindow
  /**
   * Sentences that warn of differences between the windows (such as their lengths) that could be mistaken for
   * differences in traffic.
   */
  notes: string[]
}

/** The arguments with which a caller chooses the two time windows whose traffic is compared. */
export interface WindowsChoice extends WindowChoice {
  before_start_date?: string
  before_end_date?: string
  days_earlier?: number
}

const SECOND_MS = 1000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
/** The largest relative difference between the lengths of two windows that still count as equally long. */
const EQUAL_LENGTH = 0.01
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const

/** Returns true if two windows are so nearly equal in length that their connection counts can be compared directly. */
export const areEquallyLong = (one: number, other: number): boolean =>
  Math.abs(one - other) <= EQUAL_LENGTH * Math.max(one, other)

/**
 * Chooses the two windows of a comparison. The present window is chosen as in all tools. By default, the earlier window
 * has the same length and is shifted back by the fewest whole days that avoid an overlap, so that both windows cover
 * the same times of day.
 *
 * @param now the current time in milliseconds since the epoch
 * @param days the default of `lookback_days`
 * @throws {ToolError} invalid_window, with the argument, for a value that is not a date, for a window that has not
 * begun yet, and for windows that overlap or are in the wrong order; invalid_argument if two arguments both determine
 * the earlier window.
 */
export function chooseWindows(now: number, choice: WindowsChoice, days: number): ComparedWindows {
  const { window } = chooseWindow(now, choice, days)
  const start = Date.parse(window.start)
  const end = passedEnd(window, now)
  if (start > end) {
    throw new ToolError('invalid_window', `start_date ${quote(window.start)} has not come yet.`, {
      argument: 'start_date',
      start: window.start,
    })
  }
  const before = windowBefore(choice, start, end)
  const lengthOf = (from: number, to: number) => (to - from + SECOND_MS) / HOUR_MS
  const earlier = { start: Date.parse(before.start), end: Date.parse(before.end) }
  if (earlier.start > earlier.end)
    throw wrongWindow(
      'before_end_date',
      before,
      `before_start_date ${before.start} is after before_end_date; swap them.`,
    )
  if (earlier.end >= start) {
    const argument = choice.days_earlier === undefined ? 'before_end_date' : 'days_earlier'
    throw wrongWindow(
      argument,
      before,
      `The window before ends at ${before.end}, but the window it is compared with begins at ${window.start}: they may not overlap.`,
    )
  }
  const windows = {
    before: { window: before, until: before.end, hours: lengthOf(earlier.start, earlier.end) },
    now: { window, until: toTimestamp(end), hours: lengthOf(start, end) },
  }
  return { ...windows, notes: describeDifferences(windows, start - earlier.start) }
}

/** Returns the end of a window, or the current time if that is earlier, in whole seconds. */
const passedEnd = ({ end }: TrafficWindow, now: number): number =>
  Math.min(Date.parse(end), Math.floor(now / SECOND_MS) * SECOND_MS)

const wrongWindow = (argument: string, before: TrafficWindow, message: string) =>
  new ToolError('invalid_window', message, { argument, before_start: before.start, before_end: before.end })

function windowBefore(choice: WindowsChoice, start: number, end: number): TrafficWindow {
  const { before_start_date: from, before_end_date: to, days_earlier: days } = choice
  const length = end - start
  if (from === undefined && to === undefined) {
    const shift = (days ?? Math.ceil((length + SECOND_MS) / DAY_MS)) * DAY_MS
    return { start: toTimestamp(start - shift), end: toTimestamp(end - shift) }
  }
  if (days !== undefined) {
    throw new ToolError(
      'invalid_argument',
      'days_earlier and before_start_date both choose the window before; give one.',
      {
        argument: 'days_earlier',
      },
    )
  }
  const first = from === undefined ? undefined : parse('before_start_date', from, '00:00:00')
  const last = to === undefined ? undefined : parse('before_end_date', to, '23:59:59')
  return {
    start: toTimestamp(first ?? (last as number) - length),
    end: toTimestamp(last ?? (first as number) + length),
  }
}

function parse(argument: string, text: string, timeOfBareDate: string): number {
  const time = readTime(text, timeOfBareDate)
  if (time !== null) return Date.parse(time)
  throw new ToolError(
    'invalid_window',
    `${argument} ${quote(text)} is not a date. Use YYYY-MM-DD, an ISO 8601 timestamp or epoch seconds.`,
    { argument, value: text },
  )
}

const toTimestamp = (instant: number): string => new Date(instant).toISOString().replace('.000Z', 'Z')

function describeDifferences({ before, now }: Pick<ComparedWindows, 'before' | 'now'>, apart: number): string[] {
  const hours = ({ hours: of }: ComparedWindow) => `${roundHours(of)} h`
  const longer = Math.max(before.hours, now.hours) * HOUR_MS
  const notes: string[] = []
  if (!areEquallyLong(before.hours, now.hours))
    notes.push(`The window before has ${hours(before)}, now has ${hours(now)}: connections are compared per hour.`)
  if (longer < WEEK_MS - HOUR_MS && apart % WEEK_MS !== 0)
    notes.push(
      `Before begins on a ${weekdayOf(before)}, now on a ${weekdayOf(now)}; days_earlier: 7 compares the same weekdays.`,
    )
  if (longer % DAY_MS > SECOND_MS && apart % DAY_MS !== 0) notes.push('The windows cover different times of the day.')
  return notes
}

const weekdayOf = ({ window }: ComparedWindow): string => WEEKDAYS[new Date(window.start).getUTCDay()] as string

/** Rounds a number of hours for display, to two decimals. */
export const roundHours = (hours: number): number => Math.round(hours * 100) / 100
