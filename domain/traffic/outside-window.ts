import { countOf } from '../text/describe-numbers.js'
import type { FlowRow } from './encode-flow.js'
import type { TrafficWindow } from './traffic-window.js'

/** The side on which the times of traffic reach out of the window, because a PCE adds up before it cuts (P85). */
export type OutsideWindow = 'before' | 'after' | 'both'

/** Rows whose times reach out of the window, and their connections, of which nobody knows how many are inside. */
export interface ReachingOut {
  rows: number
  connections: number
}

/** Returns the side on which these times reach out of the window; null if they are inside or not known. */
function sideOf({ start, end }: TrafficWindow, first: number, last: number): OutsideWindow | null {
  // Comparisons with NaN are false, so a time that is not known reaches out nowhere.
  const [isBefore, isAfter] = [first < Date.parse(start), last > Date.parse(end)]
  if (isBefore) return isAfter ? 'both' : 'before'
  return isAfter ? 'after' : null
}

/** Returns the side on which the first and last time of a group of rows reach out of the window; null if none does. */
export const outsideWindow = (
  window: TrafficWindow,
  { first_detected: first, last_detected: last }: Times,
): OutsideWindow | null => sideOf(window, timeOf(first), timeOf(last))

interface Times {
  first_detected: string | null
  last_detected: string | null
}

const timeOf = (time: string | null): number => (time === null ? NaN : Date.parse(time))

/** Returns the row of an answer with `outside_window`, if its times reach out of the window. */
export function markOutside<R extends Times>(window: TrafficWindow, row: R): R & { outside_window?: OutsideWindow } {
  const side = outsideWindow(window, row)
  return side === null ? row : { ...row, outside_window: side }
}

/** Counts the rows of a query that reach out of its window. */
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
 * Says what the counts cover, of all readings of one answer together; returns an empty text if no row reaches out of
 * the window. Two readings may have the same rows.
 */
export function describeReach(readings: readonly ReachingOut[]): string {
  const [rows, connections] = (['rows', 'connections'] as const).map((field) =>
    readings.reduce((total, read) => total + read[field], 0),
  ) as [number, number]
  if (rows === 0) return ''
  const those = `${readings.length > 1 ? 'Up to ' : ''}${countOf(rows, 'row')} with ${countOf(connections, 'connection')}`
  return `${those} ${rows === 1 ? 'reaches' : 'reach'} out of the window, because the PCE adds up before it cuts: how many of these connections were inside is not known.`
}
