import { compareTexts } from '../text/compare-texts.js'
import type { FlowRow } from './encode-flow.js'
import { growingBlocks, placeInBlock } from './growing-blocks.js'

/**
 * A set of distinct tuples of numbers. Each tuple is identified by its slot: 0 for the first tuple added, 1 for the
 * second, and so on.
 */
interface TupleTable {
  /**
   * Returns the slot of a tuple; a new tuple gets the next free slot. The tuple is copied, so the caller may reuse the
   * array.
   */
  slot(tuple: Int32Array): number
  /** Returns the number at position `column` of the tuple stored in slot `slot`. */
  at(slot: number, column: number): number
  readonly size: number
}

/**
 * Creates a table for tuples of `width` numbers. It uses open addressing over typed arrays: 200,000 tuples of five
 * numbers take 8 MB and need no objects.
 */
export function createTupleTable(width: number): TupleTable {
  let size = 0
  const keys = growingBlocks((places) => new Int32Array(places * width))
  // Each bucket holds the slot of a tuple plus one, or 0 if the bucket is free. The number of buckets is a power of
  // two, and at most half of them are in use.
  let buckets = new Int32Array(1024)

  // Plain loops are faster here: with so few numbers, calling the methods or iterators of typed arrays would take
  // longer than the comparison itself.
  const equals = (slot: number, tuple: Int32Array) => {
    const block = keys.of(slot)
    const start = placeInBlock(slot) * width
    for (let column = 0; column < width; column++) if (block[start + column] !== tuple[column]) return false
    return true
  }
  const rehash = () => {
    buckets = new Int32Array(buckets.length * 4)
    const mask = buckets.length - 1
    for (let slot = 0; slot < size; slot++) {
      let bucket = hash(keys.of(slot), placeInBlock(slot) * width, width) & mask
      while (buckets[bucket] !== 0) bucket = (bucket + 1) & mask
      buckets[bucket] = slot + 1
    }
  }

  return {
    slot(tuple) {
      const mask = buckets.length - 1
      let bucket = hash(tuple, 0, width) & mask
      for (;;) {
        const entry = buckets[bucket] as number
        if (entry === 0) break
        if (equals(entry - 1, tuple)) return entry - 1
        bucket = (bucket + 1) & mask
      }
      const block = keys.upTo(size)
      const start = placeInBlock(size) * width
      for (let column = 0; column < width; column++) block[start + column] = tuple[column] as number
      buckets[bucket] = ++size
      if (size * 2 > buckets.length) rehash()
      return size - 1
    },
    at: (slot, column) => keys.of(slot)[placeInBlock(slot) * width + column] as number,
    get size() {
      return size
    },
  }
}

/**
 * Hashes `width` numbers from index `start` on. Every bit of every number affects the low bits that select the bucket.
 */
function hash(numbers: Int32Array, start: number, width: number): number {
  let mixed = 0
  for (let at = start; at < start + width; at++) {
    mixed = Math.imul(mixed ^ (numbers[at] as number), 0x9e3779b1)
    mixed ^= mixed >>> 15
  }
  mixed = Math.imul(mixed, 0x85ebca6b)
  return (mixed ^ (mixed >>> 13)) >>> 0
}

/**
 * The totals of a set of rows. Received and sent bytes are counted separately, as seen from the destination. Times are
 * RFC 3339 in UTC, or null if no row has a time.
 */
export interface Measures {
  connections: number
  bytes_in: number
  bytes_out: number
  first_detected: string | null
  last_detected: string | null
}

/** The totals of many groups, in typed arrays. A row whose `count` is 0 still adds its connections, bytes and times. */
interface MeasureTable {
  add(group: number, row: FlowRow): void
  connections(group: number): number
  of(group: number): { rows: number; measures: Measures }
}

const FIELDS = 6
const [ROWS, CONNECTIONS, BYTES_IN, BYTES_OUT, FIRST, LAST] = [0, 1, 2, 3, 4, 5]

export function createMeasures(): MeasureTable {
  const sums = growingBlocks((groups) => new Float64Array(groups * FIELDS))
  const at = (group: number, field: number) =>
    sums.has(group) ? (sums.of(group)[placeInBlock(group) * FIELDS + field] as number) : 0
  return {
    add(group, row) {
      const block = sums.upTo(group)
      const start = placeInBlock(group) * FIELDS
      const isNew = block[start + ROWS] === 0
      block[start + ROWS]! += row.count
      block[start + CONNECTIONS]! += row.connections
      block[start + BYTES_IN]! += row.bytesIn
      block[start + BYTES_OUT]! += row.bytesOut
      const first = block[start + FIRST] as number
      const last = block[start + LAST] as number
      // Comparisons with NaN are false, so a missing time never replaces a known one.
      if (isNew || Number.isNaN(first) || row.first < first) block[start + FIRST] = row.first
      if (isNew || Number.isNaN(last) || row.last > last) block[start + LAST] = row.last
    },
    connections: (group) => at(group, CONNECTIONS),
    of: (group) => ({
      rows: at(group, ROWS),
      measures: {
        connections: at(group, CONNECTIONS),
        bytes_in: at(group, BYTES_IN),
        bytes_out: at(group, BYTES_OUT),
        first_detected: at(group, ROWS) === 0 ? null : toTime(at(group, FIRST)),
        last_detected: at(group, ROWS) === 0 ? null : toTime(at(group, LAST)),
      },
    }),
  }
}

/** Formats milliseconds since the epoch as the PCE does: without a fraction if it is zero. Returns null for NaN. */
export function toTime(milliseconds: number): string | null {
  return Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString().replace('.000Z', 'Z')
}

/**
 * Considers the items 0 to size-1 whose value is at least `least`, counts them, and picks the `limit` items with the
 * highest values. Items with equal values are ordered by `compareTies`. Not all items are sorted: a summary may have
 * 200,000 groups of which a hundred are shown, and a full sort would block all other calls.
 */
export function pickTop(
  size: number,
  limit: number,
  least: number,
  valueOf: (item: number) => number,
  compareTies: (a: number, b: number) => number,
): { total: number; top: number[] } {
  const values = new Float64Array(size)
  let total = 0
  for (let item = 0; item < size; item++) {
    const value = valueOf(item)
    if (value >= least) values[total++] = value
  }
  const wanted = Math.min(limit, total)
  if (wanted === 0) return { total, top: [] }
  const cut = values.subarray(0, total).sort()[total - wanted] as number
  const compare = (a: number, b: number) => valueOf(b) - valueOf(a) || compareTies(a, b)
  const all = () => Array.from({ length: size }, (_, item) => item)
  if (wanted === total)
    return {
      total,
      top: all()
        .filter((item) => valueOf(item) >= least)
        .sort(compare),
    }

  const above: number[] = []
  // Items whose value equals the lowest accepted value compete for the remaining places. `tied` holds the best of these
  // items, in order.
  const tied: number[] = []
  let places = wanted
  for (let item = 0; item < size; item++) if (valueOf(item) > cut) places -= 1
  for (let item = 0; item < size; item++) {
    const value = valueOf(item)
    if (value > cut) above.push(item)
    else if (value === cut) insertSorted(tied, item, places, compareTies)
  }
  return { total, top: [...above.sort(compare), ...tied] }
}

function insertSorted(list: number[], item: number, places: number, compare: (a: number, b: number) => number): void {
  const last = list[list.length - 1]
  if (list.length === places && last !== undefined && compare(item, last) >= 0) return
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(item, list[middle] as number) < 0) high = middle
    else low = middle + 1
  }
  list.splice(low, 0, item)
  if (list.length > places) list.pop()
}

/** Returns the `limit` alphabetically first strings without sorting all of them. */
export function firstByName(texts: readonly string[], limit: number): string[] {
  const compare = (a: number, b: number) => compareTexts(texts[a] as string, texts[b] as string)
  return pickTop(texts.length, limit, 0, () => 0, compare).top.map((at) => texts[at] as string)
}
