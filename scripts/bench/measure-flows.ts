import { tools } from '../../tools/index.js'
import { callTool, runChild } from './run-child.js'
import { startPce } from './start-pce.js'
import { median } from './statistics.js'

const ROUNDS = 3
const SIZES = [10_000, 50_000, 200_000] as const
const MIB = 1024 * 1024
/** The tool to which the targets for time and memory apply. */
export const SUMMARY = 'get-traffic-flows-summary'

/**
 * The tools that read the whole estate, from the simplest to the most complex. If one of them does not exist yet, the
 * report leaves it out.
 */
const CALLS: Readonly<Record<string, object>> = {
  [SUMMARY]: { start_date: '2026-06-08', end_date: '2026-06-14' },
  'identify-infrastructure-services': { lookback_days: 7 },
  'detect-lateral-movement-paths': { lookback_days: 7 },
}

interface Reading {
  ms: number
  cpuMs: number
  rows: number
  connections?: number
  idle: number
  peak: number
}
interface CallReading extends Reading {
  longestBlockMs: number
}

export interface SizeFigures {
  rows: number
  /** The medians of the rounds: the seconds until the answer, and the processor time of all threads. */
  seconds: number
  cpuSeconds: number
  /**
   * The difference between the process's peak memory (the kernel's maxRSS) and its idle memory in MiB, in the worst
   * round.
   */
  memory: number
}

export interface ToolFigures {
  name: string
  sizes: (SizeFigures & {
    /**
     * The seconds and the processor seconds, each divided by the same figure of the lower bound in the same round, as
     * the median of the rounds.
     */
    ratio: number
    cpuRatio: number
    /** The longest delay of the event loop in milliseconds, as the median of the rounds. */
    longestBlockMs: number
  })[]
  /** The seconds for 200,000 rows divided by those for 50,000 in the same round, as the median of the rounds. */
  growth: number
}

export interface FlowFigures {
  /** The lower bound: the same download, read with bare got and one JSON.parse. */
  floors: SizeFigures[]
  tools: ToolFigures[]
}

/**
 * Measures tools on generated estates of several sizes, each compared with only reading and parsing the same download.
 * Every measurement is made in a new process. In every round, all sizes and tools are measured one after the other, so
 * that a slow minute of the machine affects all of them equally.
 */
export async function measureFlows(): Promise<FlowFigures> {
  const names = Object.keys(CALLS).filter((name) => tools.some((tool) => tool.name === name))
  const estates = await Promise.all(
    SIZES.map(async (rows) => ({ rows, ...(await startPce('serve-flows.ts', [String(rows)])) })),
  )
  try {
    // The measurements are grouped by size, then by round.
    const rounds: { floor: Reading; calls: CallReading[] }[][] = SIZES.map(() => [])
    for (let round = 0; round < ROUNDS; round++)
      for (const [size, { rows, port }] of estates.entries()) rounds[size]!.push(await readOnce(names, rows, port))
    return {
      floors: SIZES.map((rows, size) =>
        addUp(
          rows,
          rounds[size]!.map(({ floor }) => floor),
        ),
      ),
      tools: names.map((name, at) => {
        const pairs = rounds.map((list) => list.map(({ floor, calls }) => ({ floor, call: calls[at]! })))
        const [, middle, most] = pairs as [Pair[], Pair[], Pair[]]
        return {
          name,
          sizes: SIZES.map((rows, size) => comparePairs(rows, pairs[size]!)),
          growth: median(most.map(({ call }, round) => call.ms / middle[round]!.call.ms)),
        }
      }),
    }
  } finally {
    for (const { stop } of estates) stop()
  }
}

interface Pair {
  floor: Reading
  call: CallReading
}

async function readOnce(names: readonly string[], rows: number, port: string) {
  const floor = checked(await runChild<Reading>('read-flows.mjs', ['bare'], port), rows)
  const calls: CallReading[] = []
  for (const name of names) {
    const reading = await callTool<CallReading>(name, CALLS[name]!, port)
    calls.push(checked(reading, rows, floor.connections))
  }
  return { floor, calls }
}

/**
 * Returns the measurement. Throws if too few rows were read, because such a measurement would be fast but worthless.
 */
function checked<R extends Reading>(reading: R, rows: number, connections = reading.connections): R {
  if (reading.rows !== rows) throw new Error(`${reading.rows} rows were read instead of ${rows}`)
  if (reading.connections !== undefined && reading.connections !== connections)
    throw new Error(`${reading.connections} connections were counted instead of ${connections}`)
  return reading
}

const addUp = (rows: number, readings: readonly Reading[]): SizeFigures => ({
  rows,
  seconds: median(readings.map(({ ms }) => ms / 1000)),
  cpuSeconds: median(readings.map(({ cpuMs }) => cpuMs / 1000)),
  memory: Math.max(...readings.map(({ peak, idle }) => (peak - idle) / MIB)),
})

const comparePairs = (rows: number, pairs: readonly Pair[]) => ({
  ...addUp(
    rows,
    pairs.map(({ call }) => call),
  ),
  ratio: median(pairs.map(({ floor, call }) => call.ms / floor.ms)),
  cpuRatio: median(pairs.map(({ floor, call }) => call.cpuMs / floor.cpuMs)),
  longestBlockMs: median(pairs.map(({ call }) => call.longestBlockMs)),
})
