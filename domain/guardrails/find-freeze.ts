import type { ClockTime, FreezeWindow } from '../../schemas/guardrails.js'

const MINUTE_MS = 60_000
const DAY_MINUTES = 24 * 60
const DAY_MS = DAY_MINUTES * MINUTE_MS
/** Maximum number of overlapping windows that are followed to find the end of a freeze. */
const MOST_FOLLOWED = 200

/**
 * The freeze in force: its window, and the time at which changes are possible again, in milliseconds since the epoch.
 */
export interface Freeze {
  readonly window: FreezeWindow
  /** The end of the last window in an unbroken series of windows; null if the series is too long to find its end. */
  readonly until: number | null
}

/** Returns the freeze that is in force at the instant `now`; null if there is none. */
export function findFreeze(windows: readonly FreezeWindow[], now: number): Freeze | null {
  const first = findLongest(windows, now)
  if (first === null) return null
  let { until } = first
  for (let count = 0; count < MOST_FOLLOWED; count++) {
    const next = findLongest(windows, until)
    if (next === null) return { window: first.window, until }
    until = next.until
  }
  return { window: first.window, until: null }
}

function findLongest(windows: readonly FreezeWindow[], at: number): { window: FreezeWindow; until: number } | null {
  const found = windows.flatMap((window) => {
    const until = endOf(window, at)
    return until === null ? [] : [{ window, until }]
  })
  return found.reduce<(typeof found)[number] | null>(
    (most, one) => (most && most.until >= one.until ? most : one),
    null,
  )
}

/** Returns when the window that contains the instant ends; null if none of its occurrences contains it. */
function endOf(window: FreezeWindow, at: number): number | null {
  const { zone } = window
  const spans = window.is === 'single' ? [window] : occurrencesOf(window, localMinutes(zone, at))
  const ends = spans.flatMap(({ from, to }) => {
    const end = toInstant(zone, to, 'last')
    return toInstant(zone, from, 'first') <= at && at < end ? [end] : []
  })
  return ends.length === 0 ? null : Math.max(...ends)
}

/**
 * Returns the occurrences of a window, in local minutes, that begin at most a day after the given local time or a few
 * days before it.
 */
function occurrencesOf({ from, to }: { from: ClockTime; to: ClockTime }, local: number) {
  const isWeekly = from.day !== undefined && to.day !== undefined
  const period = (isWeekly ? 7 : 1) * DAY_MINUTES
  const days = isWeekly ? to.day - from.day : 0
  const length = (((days * DAY_MINUTES + to.minute - from.minute) % period) + period) % period
  const today = Math.floor(local / DAY_MINUTES)
  return Array.from({ length: isWeekly ? 9 : 3 }, (_, back) => today + 1 - back)
    .filter((day) => !isWeekly || weekday(day) === from.day)
    .map((day) => ({ from: day * DAY_MINUTES + from.minute, to: day * DAY_MINUTES + from.minute + length }))
}

/** Returns the day of the week of a day that is counted from the epoch, which was a Thursday. 0 is Sunday. */
const weekday = (day: number) => (((day + 4) % 7) + 7) % 7

/**
 * Converts a local time to an instant. When clocks go back, a local time occurs twice; the argument selects the `first`
 * or the `last` of the two instants. A local time that clocks skip when they go forward becomes the moment of the
 * change.
 */
function toInstant(zone: string, local: number, which: 'first' | 'last'): number {
  const asUtc = local * MINUTE_MS
  const [before, after] = [offsetAt(zone, asUtc - DAY_MS), offsetAt(zone, asUtc + DAY_MS)]
  const fitting = [asUtc - before, asUtc - after].filter((instant) => instant + offsetAt(zone, instant) === asUtc)
  if (fitting.length > 0) return which === 'first' ? Math.min(...fitting) : Math.max(...fitting)
  let [low, high] = [asUtc - after, asUtc - before]
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(zone, middle) === before) low = middle
    else high = middle
  }
  return Math.round(high / MINUTE_MS) * MINUTE_MS
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** Returns the difference in milliseconds between local time in the zone and UTC at an instant. */
function offsetAt(zone: string, instant: number): number {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  formats.set(zone, format)
  const parts = new Map(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]))
  const [year, month, day, hour, minute, second] = (['year', 'month', 'day', 'hour', 'minute', 'second'] as const).map(
    (type) => parts.get(type) ?? NaN,
  )
  return Date.UTC(year!, month! - 1, day, hour, minute, second) - Math.floor(instant / 1000) * 1000
}

const localMinutes = (zone: string, instant: number) => Math.floor((instant + offsetAt(zone, instant)) / MINUTE_MS)

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']

/** Formats an instant as local time in a zone: `Mon 2026-12-28 06:00 Europe/Berlin`. */
export function sayLocal(zone: string, instant: number): string {
  const local = localMinutes(zone, instant)
  const written = new Date(local * MINUTE_MS).toISOString().slice(0, 16).replace('T', ' ')
  return `${DAYS[weekday(Math.floor(local / DAY_MINUTES))]} ${written} ${zone}`
}
