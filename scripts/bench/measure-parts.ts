import { SUMMARY } from './measure-flows.js'
import { callTool } from './run-child.js'
import { startPce } from './start-pce.js'
import { median } from './statistics.js'
import { judge } from './judge.js'

const ROUNDS = 3
/** The number of rows of one day. It is so large that two days do not fit into one query. */
const ROWS_OF_A_DAY = 170_000
const DAYS = 12
const LAST = '2026-06-14'
const FIRST = '2026-06-03'
const MIB = 1024 * 1024

interface Reading {
  ms: number
  rows: number
  parts?: number
  idle: number
  peak: number
}

export interface PartsFigures {
  /** The rows per second, as medians of the rounds: for one query, and for all days in parts. */
  single: number
  divided: number
  /** The rate in parts divided by that of one query in the same round, as the median of the rounds. */
  ratio: number
  /** The memory that the parts need in addition to that of one query, in MiB, in the worst round. */
  memory: number
}

/**
 * Measures two summaries: that of one day, which is a single query, and that of twelve days with `complete: true`,
 * which needs one part for each day and reads over two million rows in total. Every measurement is made in a new
 * process, and the two take turns in every round.
 */
export async function measureParts(): Promise<PartsFigures> {
  const { port, stop } = await startPce('serve-flows.ts', [String(ROWS_OF_A_DAY), 'daily'])
  const read = async (args: object, parts: number | undefined) => {
    const reading = await callTool<Reading>(SUMMARY, args, port)
    // All days have the same rows, so the rows of only one day are counted.
    if (reading.rows !== ROWS_OF_A_DAY || reading.parts !== parts)
      throw new Error(`${reading.rows} rows in ${reading.parts} parts instead of ${ROWS_OF_A_DAY} in ${parts}`)
    return { speed: ((parts ?? 1) * ROWS_OF_A_DAY) / (reading.ms / 1000), memory: (reading.peak - reading.idle) / MIB }
  }
  try {
    const rounds = []
    for (let round = 0; round < ROUNDS; round++)
      rounds.push({
        single: await read({ start_date: LAST, end_date: LAST }, undefined),
        divided: await read({ start_date: FIRST, end_date: LAST, complete: true }, DAYS),
      })
    return {
      single: median(rounds.map(({ single }) => single.speed)),
      divided: median(rounds.map(({ divided }) => divided.speed)),
      ratio: median(rounds.map(({ single, divided }) => divided.speed / single.speed)),
      memory: Math.max(...rounds.map(({ single, divided }) => divided.memory - single.memory)),
    }
  } finally {
    stop()
  }
}

/** Formats the lines of the report. */
export function describeParts({ single, divided, ratio, memory }: PartsFigures): string[] {
  const speed = (rows: number) => `${rows.toFixed(0).padStart(7)} rows/s`
  return [
    `Traffic past the row limit: ${SUMMARY} over ${DAYS} days of ${ROWS_OF_A_DAY} rows`,
    `  one day, one query          ${speed(single)}`,
    `  complete: true, ${DAYS} parts    ${speed(divided)}`,
    `  ratio                       ${ratio.toFixed(2)}   ${judge(ratio, { atLeast: 1 }, 2)}`,
    `  memory more than one query  ${memory.toFixed(0).padStart(4)} MiB   ${judge(memory, { atMost: 150 })}`,
  ]
}
