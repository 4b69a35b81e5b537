import { emptyRow, type FlowRow } from './encode-flow.js'
import { growingBlocks, placeInBlock } from './growing-blocks.js'
import type { Steps } from '../text/pace-work.js'

/** Numbers of values stored for each row: CODES for its codes, SUMS for its totals and times. */
const CODES = 16
const SUMS = 5

/**
 * A store that holds the rows of a query until they can be passed on, for example until all rows have arrived. A row
 * takes 104 bytes.
 */
export interface HeldRows {
  /**
   * Stores a row with the flag `isWanted` and returns its place, counted from 0. `replay` later passes on the row
   * together with its flag.
   */
  readonly add: (row: FlowRow, isWanted: boolean) => number
  /**
   * Adds the totals of a row to those of the row stored in this place, and extends the stored first and last times if
   * needed.
   */
  readonly addTo: (place: number, row: FlowRow) => void
  /** Removes all rows but keeps the memory allocated for the next rows. */
  clear(): void
  /** Passes every stored row to `take`. The row object is reused, so it is valid only until the next row. */
  replay(take: (row: FlowRow, isWanted: boolean) => void): Steps<void>
}

export function holdRows(): HeldRows {
  let size = 0
  const codesOf = growingBlocks((places) => new Int32Array(places * CODES))
  const sumsOf = growingBlocks((places) => new Float64Array(places * SUMS))
  const row = emptyRow()
  return {
    add(given, isWanted) {
      const codes = codesOf.upTo(size)
      const sums = sumsOf.upTo(size)
      // The fields are written out one by one, because accessing them by name in a loop takes several times as long as
      // this.
      let at = placeInBlock(size) * CODES
      codes[at++] = given.src
      codes[at++] = given.dst
      codes[at++] = given.port
      codes[at++] = given.proto
      codes[at++] = given.process
      codes[at++] = given.windowsService
      codes[at++] = given.user
      codes[at++] = given.decision
      codes[at++] = given.direction
      codes[at++] = given.state
      codes[at++] = given.rules
      codes[at++] = given.draftDecision
      codes[at++] = given.network
      codes[at++] = given.clientType
      codes[at++] = given.variant
      codes[at] = isWanted ? 1 : 0
      at = placeInBlock(size) * SUMS
      sums[at++] = given.connections
      sums[at++] = given.bytesIn
      sums[at++] = given.bytesOut
      sums[at++] = given.first
      sums[at] = given.last
      return size++
    },
    addTo(place, given) {
      const sums = sumsOf.of(place)
      const at = placeInBlock(place) * SUMS
      sums[at]! += given.connections
      sums[at + 1]! += given.bytesIn
      sums[at + 2]! += given.bytesOut
      // Comparisons with NaN are false, so a missing time never replaces a known one.
      if (Number.isNaN(sums[at + 3]) || given.first < sums[at + 3]!) sums[at + 3] = given.first
      if (Number.isNaN(sums[at + 4]) || given.last > sums[at + 4]!) sums[at + 4] = given.last
    },
    clear() {
      size = 0
    },
    *replay(take) {
      for (let place = 0; place < size; place++) {
        const codes = codesOf.of(place)
        const sums = sumsOf.of(place)
        let at = placeInBlock(place) * CODES
        row.src = codes[at++]!
        row.dst = codes[at++]!
        row.port = codes[at++]!
        row.proto = codes[at++]!
        row.process = codes[at++]!
        row.windowsService = codes[at++]!
        row.user = codes[at++]!
        row.decision = codes[at++]!
        row.direction = codes[at++]!
        row.state = codes[at++]!
        row.rules = codes[at++]!
        row.draftDecision = codes[at++]!
        row.network = codes[at++]!
        row.clientType = codes[at++]!
        row.variant = codes[at++]!
        const isWanted = codes[at] === 1
        at = placeInBlock(place) * SUMS
        row.connections = sums[at++]!
        row.bytesIn = sums[at++]!
        row.bytesOut = sums[at++]!
        row.first = sums[at++]!
        row.last = sums[at]!
        row.count = row.reports = 1
        take(row, isWanted)
        if (place % 256 === 255) yield
      }
    },
  }
}

/** Remembers the rows that earlier parts of a divided query contained, so that a repeated row is not counted twice. */
export interface SeenRows {
  /**
   * Checks whether an earlier part of the query already contained this row. If so, the row's `count` and `reports`
   * become 0. Its `state` is replaced with the `state` that it had in the earlier part, because that state is the
   * latest: the parts are read from the latest traffic to the oldest. A row that occurs twice in the same part counts
   * twice.
   * @param part the number of the row's part, from 1.
   */
  mark(row: FlowRow, part: number): void
}

/** Maximum share of the hash table that may be in use before it grows. */
const MOST_FULL = 0.8

/**
 * Creates a memory of rows already seen. It stores 12 bytes per row instead of the row's values. Two rows count as the
 * same if their 64-bit hashes are equal. Among 12,800,000 rows, the maximum for 64 parts, the probability of a
 * collision is one in 200,000.
 */
export function createSeenRows(): SeenRows {
  let size = 0
  // A place in the hash table has four numbers: both halves of a row's hash, the number of the last part that contained
  // the row (0 if the place is free), and the row's state.
  let places = 1 << 14
  let low = new Uint32Array(places)
  let high = new Uint32Array(places)
  let parts = new Uint16Array(places)
  let states = new Uint16Array(places)
  const identity = new Int32Array(IDENTITY)

  const placeOf = (one: number, other: number): number => {
    let place = one & (places - 1)
    while (parts[place] !== 0 && (low[place] !== one || high[place] !== other)) place = (place + 1) & (places - 1)
    return place
  }
  const grow = () => {
    const old = { low, high, parts, states }
    places *= 2
    low = new Uint32Array(places)
    high = new Uint32Array(places)
    parts = new Uint16Array(places)
    states = new Uint16Array(places)
    for (const [at, part] of old.parts.entries()) {
      if (part === 0) continue
      const place = placeOf(old.low[at]!, old.high[at]!)
      low[place] = old.low[at]!
      high[place] = old.high[at]!
      parts[place] = part
      states[place] = old.states[at]!
    }
  }

  return {
    mark(row, part) {
      writeIdentity(row, identity)
      let one = 0x2545f491
      let other = 0x1b873593
      for (let at = 0; at < identity.length; at++) {
        one = mix(one, identity[at]!, 0x9e3779b1)
        other = mix(other, identity[at]!, 0xcc9e2d51)
      }
      for (let again = 0; ; again++) {
        const [a, b] = [mix(one, again, 0x85ebca6b) >>> 0, mix(other, again, 0xc2b2ae35) >>> 0]
        const place = placeOf(a, b)
        const last = parts[place]
        if (last === part) continue
        parts[place] = part
        if (last === 0) {
          low[place] = a
          high[place] = b
          states[place] = row.state
          if (++size > places * MOST_FULL) grow()
        } else {
          row.count = row.reports = 0
          row.state = states[place]!
        }
        return
      }
    },
  }
}

/** Number of values that identify a row. */
export const IDENTITY = 14

/**
 * Writes the values that identify a row into `identity`. If several parts of a query contain the row, these values are
 * the same in each.
 */
export function writeIdentity(row: FlowRow, identity: Int32Array): void {
  identity[0] = row.src
  identity[1] = row.dst
  identity[2] = row.port
  identity[3] = row.proto
  identity[4] = row.process
  identity[5] = row.windowsService
  identity[6] = row.user
  identity[7] = row.decision
  identity[8] = row.direction
  identity[9] = row.rules
  identity[10] = row.draftDecision
  identity[11] = row.variant
  identity[12] = row.network
  identity[13] = row.clientType
}

/** Mixes a number into a hash, so that each bit of the number affects every bit of the hash. */
function mix(hash: number, number: number, factor: number): number {
  let mixed = Math.imul(hash ^ number, factor)
  mixed ^= mixed >>> 15
  mixed = Math.imul(mixed, 0x846ca68b)
  return mixed ^ (mixed >>> 13)
}
