import { workInTurns } from '../text/pace-work.js'
import type { FlowEncoder, FlowRow } from './encode-flow.js'
import type { FlowEnd } from './flow-ends.js'
import { holdRows } from './hold-rows.js'

/** The options for holding rows until their sources and destinations have been looked up. */
interface Waiting {
  /**
   * A long query is divided into parts, which are read one after the other. If more rows than this are held when the
   * next part begins, all of them are passed on first.
   */
  most: number
  prepare: (ends?: Iterable<FlowEnd>) => Promise<void>
  pass: (row: FlowRow) => void
  signal: AbortSignal
}

/**
 * Holds the rows of a query until the caller has looked up their sources and destinations. This way, only those that
 * occur in the rows are looked up. If there are too many rows to hold, the caller looks up all possible ones instead,
 * and later rows are passed on at once.
 */
export function waitForEnds(
  { ends }: FlowEncoder,
  { most, prepare, pass, signal }: Waiting,
): { add: (row: FlowRow) => void; beforePart: () => Promise<void>; finish(): Promise<void> } {
  const held = holdRows()
  const codes = new Set<number>()
  let waiting = 0
  let isReady = false
  function* occurring() {
    for (const code of codes) yield ends.end(code)
  }
  const release = async (found?: Iterable<FlowEnd>) => {
    await prepare(found)
    isReady = true
    const replay = held.replay((row, isCounted) => {
      row.count = row.reports = isCounted ? 1 : 0
      pass(row)
    })
    await workInTurns(replay, signal)
    held.clear()
    codes.clear()
  }
  return {
    add(row) {
      if (isReady) return pass(row)
      waiting += 1
      codes.add(row.src).add(row.dst)
      held.add(row, row.count === 1)
    },
    beforePart: async () => {
      if (!isReady && waiting > most) await release()
    },
    async finish() {
      if (!isReady) await release(occurring())
    },
  }
}
