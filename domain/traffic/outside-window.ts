import { countOf } from '../text/describe-numbers.js'
import type { FlowRow } from './encode-flow.js'
import type { TrafficWindow } from './traffic-window.js'

/**
 * The side on which the times of a row extend beyond the requested window: before it, after it, or both. This happens
 * because a PCE aggregates traffic before it applies the window (P85).
 */
export type OutsideWindow = 'before' | 'after' | 'both'

/**
 * The number of rows whose times extend beyond the window, and the number of their connections. It is not known how
 * many of these connections were inside the window.
 */
export interface ReachingOut {
  rows: number
  connections: number
}

/**
 * Returns the side on which the times `first` and `last` extend beyond the window; null if they are inside the window
 * or not known.
 */
function sideOf({ start, end }: TrafficWindow, first: number, last: number): OutsideWindow | null {
  // Comparisons with NaN are false, so an unknown time never counts as beyond the window.
  const [isBefore, isAfter] = [first < Date.parse(start), last > Date.parse(end)]
  if (isBefore) return isAfter ? 'both' : 'before'
  return isAfter ? 'after' : null
}

/**
 * Returns the side on which the times of a group of rows extend beyond the window; null if they are inside the window
 * or not known.
 */
export const outsideWindow = (
  window: TrafficWindow,
  { first_detected: first, last_detected: last }: Times,
): OutsideWindow | null => sideOf(window, timeOf(first), timeOf(last))

interface Times {
  first_detected: string | null
  last_detected: string | null
}

const timeOf = (time: string | null): number => (time === null ? NaN : Date.parse(time))

/** Adds `outside_window` to a row of an answer if its times extend beyond the window. */
export function markOutside<R extends Times>(window: TrafficWindow, row: R): R & { outside_window?: OutsideWindow } {
  const side = outsideWindow(window, row)
  return side === null ? row : { ...row, outside_window: side }
}

/** Creates a counter of the rows of a query whose times extend beyond its window. */
export function watchReach(window: TrafficWindow): { see(row: FlowRow): void; found: ReachingOut } {
  const [start, end] = [Date.parse(window.start), Date.parse(window.end)]
  const found = { rows: 0, connections: 0 }
  return {
    found,
    see(row) {
      if (!(row.first < start || row.last > end)) return
      found.rows += row.count
      found.connections += row.connections
    },
  }
}

/**
 * Returns a note on the rows that extend beyond the window, for all queries of one answer together, or an empty string
 * if there are none. Two queries may return the same rows, so the sum is an upper limit.
 */
export function describeReach(readings: readonly ReachingOut[]): string {
  const [rows, connections] = (['rows', 'connections'] as const).map((field) =>
    readings.reduce((total, read) => total + read[field], 0),
  ) as [number, number]
  if (rows === 0) return ''
  const those = `${readings.length > 1 ? 'Up to ' : ''}${countOf(rows, 'row')} with ${countOf(connections, 'connection')}`
  return `${those} ${rows === 1 ? 'reaches' : 'reach'} out of the window, because the PCE adds up before it cuts: how many of these connections were inside is not known.`
}
