import type { FlowRow } from './encode-flow.js'

/** What rows add up to. Bytes are into and out of the destination; times are RFC 3339 in UTC, null when no row has one. */
export interface Measures {
  connections: number
  bytes_in: number
  bytes_out: number
  first_detected: string | null
  last_detected: string | null
}

/** The sums of many groups, in typed arrays. */
export interface MeasureTable {
  add(group: number, row: FlowRow): void
  connections(group: number): number
  of(group: number): { rows: number; measures: Measures }
}

const FIELDS = 6
const [ROWS, CONNECTIONS, BYTES_IN, BYTES_OUT, FIRST, LAST] = [0, 1, 2, 3, 4, 5]

export function createMeasures(): MeasureTable {
  let sums = new Float64Array(64 * FIELDS)
  const at = (group: number, field: number) => sums[group * FIELDS + field] as number
  return {
    add(group, row) {
      const start = group * FIELDS
      if (start + FIELDS > sums.length) {
        const longer = new Float64Array(Math.max(sums.length * 2, start + FIELDS))
        longer.set(sums)
        sums = longer
      }
      const isNew = sums[start + ROWS] === 0
      sums[start + ROWS]! += 1
      sums[start + CONNECTIONS]! += row.connections
      sums[start + BYTES_IN]! += row.bytesIn
      sums[start + BYTES_OUT]! += row.bytesOut
      const first = sums[start + FIRST] as number
      const last = sums[start + LAST] as number
      // A comparison with NaN is false: a time that is missing never wins.
      if (isNew || Number.isNaN(first) || row.first < first) sums[start + FIRST] = row.first
      if (isNew || Number.isNaN(last) || row.last > last) sums[start + LAST] = row.last
    },
    connections: (group) => at(group, CONNECTIONS),
    of: (group) => ({
      rows: at(group, ROWS),
      measures: {
        connections: at(group, CONNECTIONS),
        bytes_in: at(group, BYTES_IN),
        bytes_out: at(group, BYTES_OUT),
        first_detected: toTime(at(group, FIRST)),
        last_detected: toTime(at(group, LAST)),
      },
    }),
  }
}

/** Milliseconds since the epoch as the PCE writes them, without empty milliseconds. */
export function toTime(milliseconds: number): string | null {
  return Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString().replace('.000Z', 'Z')
}
