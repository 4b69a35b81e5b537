import { emptyRow, type FlowRow } from './encode-flow.js'
import type { Steps } from '../text/pace-work.js'

/** Numbers kept of a row: its codes, and its sums and times. */
const CODES = 14
const SUMS = 5

/** Rows kept as numbers, 96 bytes each: what a query answered until it is known whether it answered everything. */
export interface HeldRows {
  /** `isWanted` comes back with the row. */
  readonly add: (row: FlowRow, isWanted: boolean) => void
  /** Empties it; its memory stays for the next rows. */
  clear(): void
  /** Hands every row over; it is valid until the next. */
  replay(take: (row: FlowRow, isWanted: boolean) => void): Steps<void>
}

export function holdRows(): HeldRows {
  let size = 0
  let codes = new Int32Array(1024 * CODES)
  let sums = new Float64Array(1024 * SUMS)
  const row = emptyRow()
  return {
    add(given, isWanted) {
      if ((size + 1) * CODES > codes.length) {
        codes = doubled(codes, new Int32Array(2 * codes.length))
        sums = doubled(sums, new Float64Array(2 * sums.length))
      }
      // Spelled out: reading fields by name takes several times as long.
      let at = size * CODES
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
      codes[at++] = given.variant
      codes[at] = isWanted ? 1 : 0
      at = size * SUMS
      sums[at++] = given.connections
      sums[at++] = given.bytesIn
      sums[at++] = given.bytesOut
      sums[at++] = given.first
      sums[at] = given.last
      size++
    },
    clear() {
      size = 0
    },
    *replay(take) {
      for (let place = 0; place < size; place++) {
        let at = place * CODES
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
        row.variant = codes[at++]!
        const isWanted = codes[at] === 1
        at = place * SUMS
        row.connections = sums[at++]!
        row.bytesIn = sums[at++]!
        row.bytesOut = sums[at++]!
        row.first = sums[at++]!
        row.last = sums[at]!
        row.count = 1
        take(row, isWanted)
        if (place % 256 === 255) yield
      }
    },
  }
}

function doubled<T extends Int32Array | Float64Array>(from: T, to: T): T {
  to.set(from)
  return to
}

/** The rows of earlier parts of the same traffic, so that one that returns is not counted as another. */
export interface SeenRows {
  /**
   * Marks a row of a part (1, 2 …) that an earlier part had: its `count` becomes 0 and its `state` that of its latest observation,
   * which the parts before, being later in time, know. A row that its own part has twice counts as two.
   */
  mark(row: FlowRow, part: number): void
}

/** How full the table may be. */
const MOST_FULL = 0.8

/**
 * Keeps 12 bytes a row and none of its values: two rows are one where 64 bits of their hashes agree. Of 12,800,000 rows, the most that
 * 64 parts have, two different ones do so with a chance of one in 200,000.
 */
export function createSeenRows(): SeenRows {
  let size = 0
  // Two halves of a hash, the part that had the row last (0: the place is free), and the state.
  let places = 1 << 14
  let low = new Uint32Array(places)
  let high = new Uint32Array(places)
  let parts = new Uint16Array(places)
  let states = new Uint16Array(places)
  const identity = new Int32Array(12)

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
      // What makes a row this row and no other.
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
          row.count = 0
          row.state = states[place]!
        }
        return
      }
    },
  }
}

/** Takes a number into a hash, in which every bit of it reaches every bit. */
function mix(hash: number, number: number, factor: number): number {
  let mixed = Math.imul(hash ^ number, factor)
  mixed ^= mixed >>> 15
  mixed = Math.imul(mixed, 0x846ca68b)
  return mixed ^ (mixed >>> 13)
}
