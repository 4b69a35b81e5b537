import { isJudged, JUDGED_DECISIONS, readDecision } from '../../schemas/pce/policy-decisions.js'
import type { Steps } from '../text/pace-work.js'
import { endColumns } from './columns.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import { createTupleTable } from './group-tables.js'
import { growingBlocks, placeInBlock } from './growing-blocks.js'
import { holdRows, IDENTITY, writeIdentity } from './hold-rows.js'

/**
 * Maximum number of seconds between the two reports of one conversation. VENs report every ten minutes, and their
 * clocks differ.
 */
const MOST_APART = 600

/** Codes for the end that reported a row: the source or the destination. */
const [SOURCE, DESTINATION] = [0, 1] as const

/**
 * Creates a store for the reports of both ends about conversations or parts of them, each identified by a tuple. A
 * report consists of the number of connections, and the first and last time in seconds. The store uses typed arrays,
 * because a divided query may have a million conversations. A report takes 16 bytes in addition to the tuple.
 */
function createReports(width: number) {
  const table = createTupleTable(width)
  const ends = [createSums(), createSums()] as const
  const has = (slot: number, end: number) => ends[end]!.has(slot)
  const connectionsOf = (slot: number, end: number) => ends[end]!.connections(slot)
  return {
    has,
    connections: connectionsOf,
    /** Returns the number at position `column` of the tuple stored in slot `slot`. */
    key: (slot: number, column: number) => table.at(slot, column),
    size: () => table.size,
    add(tuple: Int32Array, end: number, row: FlowRow): number {
      const slot = table.slot(tuple)
      ends[end]!.add(slot, row)
      return slot
    },
    greater: (slot: number) => Math.max(connectionsOf(slot, SOURCE), connectionsOf(slot, DESTINATION)),
    lesser: (slot: number) => Math.min(connectionsOf(slot, SOURCE), connectionsOf(slot, DESTINATION)),
    /**
     * Returns true if both ends reported the conversation, or the part of it, in this slot. If the times of both
     * reports are known, they must also be close together.
     */
    isPair(slot: number): boolean {
      if (!has(slot, SOURCE) || !has(slot, DESTINATION)) return false
      const isAfter = (one: number, other: number) => ends[one]!.first(slot) - ends[other]!.last(slot) > MOST_APART
      return !isAfter(SOURCE, DESTINATION) && !isAfter(DESTINATION, SOURCE)
    },
  }
}

/** Creates a store for the reports of all sources, or of all destinations, indexed by the slot of the tuple. */
function createSums() {
  const blocks = growingBlocks((places) => ({
    // The value is NaN if this end of the conversation did not report it.
    connections: new Float64Array(places).fill(NaN),
    firsts: new Int32Array(places),
    lasts: new Int32Array(places),
  }))
  const has = (slot: number) => blocks.has(slot) && !Number.isNaN(blocks.of(slot).connections[placeInBlock(slot)])
  return {
    has,
    connections: (slot: number) => (has(slot) ? blocks.of(slot).connections[placeInBlock(slot)]! : 0),
    first: (slot: number) => blocks.of(slot).firsts[placeInBlock(slot)]!,
    last: (slot: number) => blocks.of(slot).lasts[placeInBlock(slot)]!,
    add(slot: number, row: FlowRow): void {
      const { connections, firsts, lasts } = blocks.upTo(slot)
      const place = placeInBlock(slot)
      const isNew = Number.isNaN(connections[place])
      connections[place] = (isNew ? 0 : connections[place]!) + row.connections
      // If a time is missing, the report may be about the same conversation as any report from the other end of it.
      const first = Number.isNaN(row.first) ? EARLIEST : Math.floor(row.first / 1000)
      const last = Number.isNaN(row.last) ? LATEST : Math.floor(row.last / 1000)
      if (isNew || first < firsts[place]!) firsts[place] = first
      if (isNew || last > lasts[place]!) lasts[place] = last
    },
  }
}

/** The smallest and the greatest time that can be stored, in seconds since the epoch. */
const [EARLIEST, LATEST] = [-(2 ** 31), 2 ** 31 - 1]

/**
 * Creates a function that writes into `tuple` the values that both reports of one conversation have in common: the two
 * ends, port, protocol and `variant` (see `FlowRow`). The directions of two such reports are opposite, and their
 * programs, users and rules may differ, because these belong to the reporting end. The function returns the end that
 * reported the row. It returns null if the row cannot have a counterpart, because it does not show which end reported
 * it, or because one of its ends is only an address and so reports nothing.
 */
function createIdentifier(encoder: FlowEncoder, tuple: Int32Array) {
  const { direction } = encoder.dictionaries
  const [inbound, outbound] = [direction.code('inbound'), direction.code('outbound')]
  const identity = endColumns(encoder, ({ workload, name, ip }) => {
    const object = workload ?? name
    return object && `${object} ${ip ?? ''}`
  })
  return (row: FlowRow): typeof SOURCE | typeof DESTINATION | null => {
    if (row.direction !== inbound && row.direction !== outbound) return null
    tuple[0] = identity.src.code(row)
    tuple[1] = identity.dst.code(row)
    tuple[2] = row.port
    tuple[3] = row.proto
    tuple[4] = row.variant
    if (tuple[0] === 0 || tuple[1] === 0) return null
    return row.direction === inbound ? DESTINATION : SOURCE
  }
}

/**
 * A receiver for the rows of a query, which may arrive in several parts. It recognises conversations that both ends
 * reported.
 */
export interface ReportSink {
  add(row: FlowRow): void
  /** Computes the final counts. It must be called after the last row. */
  finish(): Steps<void>
  /** Returns the number of connections that the PCE's rows contain twice, once in the report of each end. */
  repeated(): number
}

/** Creates a sink that passes on every row unchanged and only counts the connections that both ends reported. */
export function countReports(encoder: FlowEncoder, take: (row: FlowRow) => void): ReportSink {
  const tuple = new Int32Array(5)
  const identify = createIdentifier(encoder, tuple)
  const conversations = createReports(tuple.length)
  let repeated = 0
  return {
    add(row) {
      const end = identify(row)
      if (end !== null) conversations.add(tuple, end, row)
      take(row)
    },
    *finish() {
      for (let slot = 0; slot < conversations.size(); slot++) {
        if (conversations.isPair(slot)) repeated += conversations.lesser(slot)
        if (slot % 256 === 255) yield
      }
    },
    repeated: () => repeated,
  }
}

/**
 * How one cell is passed on: which end's rows, and how many connections. A cell is a part of a conversation; see
 * `mergeReports`.
 */
interface Share {
  /**
   * The end of the conversation (source or destination) whose rows are passed on; null if no rows of the cell are
   * passed on.
   */
  end: number | null
  /** Number of connections that are still to be passed on with these rows. */
  left: number
  /** Number of connections that are added to the first row passed on, because only the other end reported them. */
  surplus: number
}

/**
 * Creates a sink that passes on every conversation once. If its two ends reported different numbers of connections, the
 * greater number counts, and connections with stricter decisions are counted first. If the ends agree on no decision,
 * only the report that contains the strictest decision counts. All rows are held until the last row has arrived,
 * because only then are the reports of both ends known (D223).
 */
export function mergeReports(encoder: FlowEncoder, take: (row: FlowRow) => void): ReportSink {
  const tuple = new Int32Array(5)
  const identify = createIdentifier(encoder, tuple)
  const strictnessOf = createStrictness(encoder)
  // A cell is the part of a conversation whose rows have the same two decisions: one of the active policy and one of
  // the draft policy.
  const cellTuple = new Int32Array(3)
  const held = holdRows()
  const conversations = createReports(tuple.length)
  const cells = createReports(cellTuple.length)
  /** For each held row, its cell and its reporting end, combined into one number. */
  const places: number[] = []
  /** Number of PCE rows of each conversation. A row that occurs in several parts of the query counts once. */
  const rows: number[] = []
  const identity = new Int32Array(IDENTITY)
  const identities = createTupleTable(IDENTITY)
  /** For each distinct row identity, the place at which the row with this identity is held. */
  const placeOf: number[] = []
  let repeated = 0

  /**
   * Determines for each cell how many connections count, and which end's rows are passed on. Conversations that only
   * one end reported have no entries.
   */
  function* share(): Steps<Map<number, Share>> {
    const shares = new Map<number, Share>()
    const ofPairs = new Map<number, number[]>()
    for (let cell = 0; cell < cells.size(); cell++) {
      const conversation = cells.key(cell, 0)
      if (conversations.isPair(conversation)) {
        const known = ofPairs.get(conversation)
        if (known === undefined) ofPairs.set(conversation, [cell])
        else known.push(cell)
      }
      if (cell % 256 === 255) yield
    }
    const { has } = cells
    const strictness = (cell: number) => strictnessOf(cells.key(cell, 1), cells.key(cell, 2))
    for (const [conversation, own] of ofPairs) {
      yield
      repeated += conversations.lesser(conversation)
      const strictFirst = own.sort((a, b) => strictness(b) - strictness(a))
      const strictest = strictFirst[0]!
      const agreed = strictFirst.some((cell) => has(cell, SOURCE) && has(cell, DESTINATION))
      const stricter = has(strictest, SOURCE) ? SOURCE : DESTINATION
      let left = conversations.greater(conversation)
      const isEmpty = left === 0
      const surplus = agreed ? 0 : left - conversations.connections(conversation, stricter)
      for (const cell of strictFirst) {
        const more = cells.connections(cell, DESTINATION) - cells.connections(cell, SOURCE)
        const isCounted = agreed ? left > 0 || (isEmpty && cell === strictest) : has(cell, stricter)
        const end = more > 0 || (more === 0 && has(cell, DESTINATION)) ? DESTINATION : SOURCE
        const counted = Math.min(cells.greater(cell), left)
        if (isCounted) left -= counted
        shares.set(cell, { end: isCounted ? end : null, left: counted, surplus: cell === strictest ? surplus : 0 })
      }
    }
    return shares
  }

  return {
    add(row) {
      const end = identify(row)
      if (end === null) return take(row)
      const conversation = conversations.add(tuple, end, row)
      rows[conversation] = (rows[conversation] ?? 0) + row.count
      cellTuple[0] = conversation
      cellTuple[1] = row.decision
      cellTuple[2] = row.draftDecision
      const cell = cells.add(cellTuple, end, row)
      // A row that repeats a row from an earlier part is merged into it. Therefore no more rows are held than one query
      // could return.
      writeIdentity(row, identity)
      const slot = identities.slot(identity)
      const earlier = placeOf[slot]
      if (row.count === 0 && earlier !== undefined) return held.addTo(earlier, row)
      places.push(cell * 2 + end)
      placeOf[slot] = held.add(row, row.count === 1)
    },
    *finish() {
      const shares = yield* share()
      let place = 0
      yield* held.replay((row, isNew) => {
        const [cell, end] = [places[place]! >> 1, places[place]! & 1]
        place += 1
        row.count = row.reports = isNew ? 1 : 0
        const counted = shares.get(cell)
        if (counted === undefined) return take(row)
        if (counted.end !== end || (counted.left === 0 && row.connections > 0)) return
        const connections = Math.min(row.connections, counted.left)
        counted.left -= connections
        row.connections = connections + counted.surplus
        counted.surplus = 0
        const conversation = cells.key(cell, 0)
        row.reports = rows[conversation]!
        rows[conversation] = 0
        take(row)
      })
    },
    repeated: () => repeated,
  }
}

/**
 * Creates a function that returns how strict a pair of decisions is. The decision of the active policy counts first;
 * the decision of the draft policy breaks ties.
 */
function createStrictness({ dictionaries: { decision, draftDecision } }: FlowEncoder) {
  const rankOf = (word: string | null) => {
    const read = readDecision(word)
    return isJudged(read) ? JUDGED_DECISIONS.indexOf(read) + 1 : 0
  }
  return (active: number, draft: number): number =>
    rankOf(decision.value(active)) * (JUDGED_DECISIONS.length + 1) + rankOf(draftDecision.value(draft))
}
