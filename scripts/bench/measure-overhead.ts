import { runChild } from './run-child.js'
import { startPce } from './start-pce.js'
import { median } from './statistics.js'

export interface Overhead {
  /** Milliseconds for a GET including parsing its JSON, as the median of the rounds. */
  bare: number
  ours: number
  /** The client's time divided by that of bare got in the same round, as the median of the rounds. */
  ratio: number
}

/**
 * Measures how much time the client adds to a GET. The client and bare got use equal agents and take turns in every
 * round.
 */
export async function measureOverhead(): Promise<Overhead> {
  const pce = await startPce()
  try {
    const rounds = await runChild<{ bare: number; ours: number }[]>('call-pce.mjs', [], pce.port)
    return {
      bare: median(rounds.map(({ bare }) => bare)),
      ours: median(rounds.map(({ ours }) => ours)),
      ratio: median(rounds.map(({ bare, ours }) => ours / bare)),
    }
  } finally {
    pce.stop()
  }
}
