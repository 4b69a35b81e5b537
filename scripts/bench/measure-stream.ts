import { runChild } from './run-child.js'
import { startPce } from './start-pce.js'
import { median } from './statistics.js'

const ROUNDS = 5
const ROWS = 200_000
const MIB = 1024 * 1024

interface Reading {
  ms: number
  rows: number
  connections: number
  idle: number
  peak: number
}

export interface StreamFigures {
  /** The milliseconds from the query to the last row, as the median of the rounds. */
  bare: number
  ours: number
  /** The client's time divided by that of bare got in the same round, as the median of the rounds. */
  ratio: number
  /**
   * The difference between the process's peak memory (the kernel's maxRSS) and its idle memory in MiB: the medians, and
   * the client's worst round.
   */
  bareMemory: number
  memory: number
  worstMemory: number
}

/**
 * Measures how 200,000 rows are read and parsed through streamTrafficFlows, and through bare got with one JSON.parse.
 * Every measurement is made in a new process.
 */
export async function measureStream(): Promise<StreamFigures> {
  const pce = await startPce()
  try {
    const read = async (reader: 'bare' | 'client') =>
      checked(await runChild<Reading>('read-flows.mjs', [reader], pce.port))
    const rounds: { bare: Reading; ours: Reading }[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push({ bare: await read('bare'), ours: await read('client') })
    const sums = new Set(rounds.flatMap(({ bare, ours }) => [bare.connections, ours.connections]))
    if (sums.size !== 1) throw new Error('the two readers have not read the same rows')
    const memory = rounds.map(({ ours }) => above(ours))
    return {
      bare: median(rounds.map(({ bare }) => bare.ms)),
      ours: median(rounds.map(({ ours }) => ours.ms)),
      ratio: median(rounds.map(({ bare, ours }) => ours.ms / bare.ms)),
      bareMemory: median(rounds.map(({ bare }) => above(bare))),
      memory: median(memory),
      worstMemory: Math.max(...memory),
    }
  } finally {
    pce.stop()
  }
}

const above = ({ peak, idle }: Reading) => (peak - idle) / MIB

function checked(reading: Reading): Reading {
  if (reading.rows !== ROWS) throw new Error(`${reading.rows} rows were read instead of ${ROWS}`)
  return reading
}
