import type { ClockTime, FreezeWindow } from '../schemas/guardrails.js'
import { shown, type Reading } from './read-values.js'

const NAME = 'MCP_FREEZE_WINDOWS'
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
/** Matches a time of day, with or without a day of the week. */
const CLOCK = /^(?:([a-z]{3}) )?(\d{2}):(\d{2})$/
const DATE = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})$/
const EXAMPLE = 'Fri 18:00 - Mon 06:00 Europe/Berlin; 2026-12-20T00:00/2027-01-04T00:00 Europe/Berlin'
const MOST_WINDOWS = 100

/**
 * Reads the freeze windows in MCP_FREEZE_WINDOWS, which are separated by semicolons. Returns undefined if the variable
 * is not set.
 */
export function readFreezes(reading: Reading): FreezeWindow[] | undefined {
  const { [NAME]: written } = reading.env
  if (!written) return undefined
  const entries = written.split(';').flatMap((entry) => entry.replaceAll(/\s+/gu, ' ').trim() || [])
  if (entries.length === 0 || entries.length > MOST_WINDOWS) {
    const problem = `${NAME} must have 1 to ${MOST_WINDOWS} windows`
    reading.faults.push({ problem, remedy: `It has ${entries.length}: write, for example, ${NAME}=${EXAMPLE}` })
    return []
  }
  return entries.flatMap((entry) => {
    const window = parseWindow(entry)
    if (typeof window !== 'string') return [window]
    reading.faults.push({ problem: `${NAME}: ${shown(entry)} ${window}`, remedy: `Write, for example, ${EXAMPLE}` })
    return []
  })
}

/**
 * Parses one freeze window. If the string is not valid, returns the problem as the end of a sentence that begins with
 * the string.
 */
function parseWindow(text: string): FreezeWindow | string {
  const at = text.lastIndexOf(' ')
  const [times, zone] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)]
  if (!isZone(zone)) return `must end with a time zone such as Europe/Berlin, and ${shown(zone)} is none`
  return times.includes('/') ? parseSingle(text, times, zone) : parseRecurring(text, times, zone)
}

function parseSingle(text: string, times: string, zone: string): FreezeWindow | string {
  const ends = times.split('/').map((end) => parseDate(end.trim()))
  const [from, to] = ends
  if (ends.length !== 2 || from == null || to == null) return 'must be two dates with times, with a slash between them'
  return from < to ? { is: 'single', text, zone, from, to } : 'ends before it begins'
}

function parseRecurring(text: string, times: string, zone: string): FreezeWindow | string {
  const ends = times
    .replaceAll(/ ?[-–] ?/gu, '-')
    .split('-')
    .map(parseClock)
  const [from, to] = ends
  if (ends.length !== 2 || from == null || to == null)
    return 'must be two times, such as 22:00 - 06:00 or Fri 18:00 - Mon 06:00, or two dates with times'
  if ((from.day === undefined) !== (to.day === undefined)) return 'must have a day of the week at both ends, or at none'
  return from.day === to.day && from.minute === to.minute
    ? 'begins and ends at the same time'
    : { is: 'recurring', text, zone, from, to }
}

function parseClock(text: string): ClockTime | null {
  const [, day, hour, minute] = CLOCK.exec(text.toLowerCase()) ?? []
  const at = Number(hour) * 60 + Number(minute)
  if (!(at < 24 * 60) || Number(minute) > 59) return null
  if (day === undefined) return { minute: at }
  const index = DAYS.indexOf(day)
  return index === -1 ? null : { day: index, minute: at }
}

/**
 * Converts a local date and time to minutes since the epoch as if the time zone were UTC. Returns null if there is no
 * such date or time.
 */
function parseDate(text: string): number | null {
  const [, year, month, day, hour, minute] = (DATE.exec(text) ?? []).map(Number)
  const instant = Date.UTC(year ?? NaN, (month ?? NaN) - 1, day, hour, minute)
  // Date.UTC turns a date that does not exist, such as 31 June, into another date, so the result is compared with the
  // input.
  return !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(text) ? instant / 60_000 : null
}

function isZone(zone: string): boolean {
  try {
    return zone !== '' && new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
