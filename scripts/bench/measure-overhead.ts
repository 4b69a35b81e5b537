import { runChild } from './run-child.js'
import { startPce } from './start-pce.js'
import { median } from './statistics.js'

export interface Overhead {
  /** Milliseconds per GET with its JSON parsed, median of the rounds. */
  bare: number
  ours: number
  /** Ours over bare got's of the same round, median of the rounds. */
  ratio: number
}

/** What the client adds to a GET: through it and through bare got, with equal agents, in turn within every round. */
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
