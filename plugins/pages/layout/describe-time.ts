const WHEN = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
const AGO = new Intl.RelativeTimeFormat('en')
const MINUTE_MS = 60_000

/** Describes a moment in words. `at` is in milliseconds since the epoch. */
export const describeMoment = (at: number): string => `${WHEN.format(new Date(at))} UTC`

/**
 * Describes how long ago something was, in days, hours or minutes: the largest of these units of which at least one has
 * passed. `ms` is in milliseconds.
 */
export function describeAge(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS)
  if (minutes < 1) return 'just now'
  return AGO.format(...inLargestUnit(-minutes))
}

/** Describes how soon something will be, in the same units as `describeAge`. */
export function describeWait(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS)
  return minutes < 1 ? 'in less than a minute' : AGO.format(...inLargestUnit(minutes))
}

function inLargestUnit(minutes: number): [number, 'minute' | 'hour' | 'day'] {
  const length = Math.abs(minutes)
  if (length < 60) return [minutes, 'minute']
  const hours = Math.floor(length / 60)
  return hours < 24 ? [Math.sign(minutes) * hours, 'hour'] : [Math.sign(minutes) * Math.floor(hours / 24), 'day']
}
