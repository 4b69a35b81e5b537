import type { FlowRow } from './flow-rows.js'

/** What the rows of one group add up to. */
export interface Measures {
  connections: number
  bytes_in: number
  bytes_out: number
  first_detected: string | null
  last_detected: string | null
}

export function noMeasures(): Measures {
  return { connections: 0, bytes_in: 0, bytes_out: 0, first_detected: null, last_detected: null }
}

/** Adds a row to a group's sums and widens its time span. RFC 3339 times of one PCE compare as text. */
export function addRow(measures: Measures, row: FlowRow): void {
  measures.connections += row.num_connections
  measures.bytes_in += row.bytes_in
  measures.bytes_out += row.bytes_out
  const { first_detected: first, last_detected: last } = row
  if (first !== null && (measures.first_detected === null || first < measures.first_detected))
    measures.first_detected = first
  if (last !== null && (measures.last_detected === null || last > measures.last_detected)) measures.last_detected = last
}

/** Groups of rows that share the values of some keys; a key without value is a group of its own, never dropped (A8). */
export interface Groups<K extends object> {
  add(keys: K, row: FlowRow): void
  readonly size: number
  /** The groups with most connections, at most `limit`; ties in the order of their keys, so that two runs answer alike. */
  busiest(limit: number): (K & Measures)[]
}

export function groupFlows<K extends object>(): Groups<K> {
  const groups = new Map<string, K & Measures>()
  return {
    add(keys, row) {
      const id = Object.values(keys).join('\u0000')
      let group = groups.get(id)
      if (group === undefined) groups.set(id, (group = { ...keys, ...noMeasures() }))
      addRow(group, row)
    },
    get size() {
      return groups.size
    },
    busiest: (limit) => pickBusiest(groups, limit, ({ connections }) => connections).map(([, group]) => group),
  }
}

/**
 * The `limit` entries with the highest numbers, ties by key. Only those that can be among them are sorted by key: a summary may
 * have 200,000 groups of which some hundred are shown, and sorting them all holds every other call up for seconds.
 */
export function pickBusiest<T>(
  entries: ReadonlyMap<string, T>,
  limit: number,
  numberOf: (item: T) => number,
): [string, T][] {
  const numbers = Float64Array.from(entries.values(), numberOf).sort()
  const least = numbers[Math.max(0, numbers.length - limit)] ?? 0
  return [...entries]
    .filter(([, item]) => numberOf(item) >= least)
    .sort(([idA, a], [idB, b]) => numberOf(b) - numberOf(a) || (idA < idB ? -1 : 1))
    .slice(0, limit)
}
