import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ToolError } from '../../../schemas/errors.js'

const MIB = 1024 * 1024
/** Objects made of a text take some times its length. */
const TIMES_TEXT = 8
/** How far the heap may grow for a moment: this share of V8's own limit. */
const SHORT_OF_HARD = 0.9

/**
 * V8's limit for a thread, in times of what a call may use. It is the last resort and must stay out of reach: the process may end with
 * the thread that reaches it (on Node.js 24 at times, on any where a single allocation does not fit).
 */
export const HARD_LIMIT = 4

/**
 * Looks at the heap of this thread. To be asked whenever the PCE has sent something, since that is what an analysis grows by, and now
 * and then.
 *
 * @returns a function that takes the bytes of what is about to be parsed and throws `analysis_failed {reason: 'out_of_memory'}` where
 *   more than `limitMib` is in use after a garbage collection.
 */
export function createHeapGuard(limitMib: number): (bytes: number) => void {
  const limit = limitMib * MIB
  const used = () => v8.getHeapStatistics().used_heap_size
  const fits = (bytes: number) => {
    const now = used()
    return now <= limit && now + bytes * TIMES_TEXT <= limit * HARD_LIMIT * SHORT_OF_HARD
  }
  let collect: (() => void) | undefined
  return (bytes) => {
    if (fits(bytes)) return
    if (collect === undefined) {
      v8.setFlagsFromString('--expose-gc')
      collect = runInNewContext('gc') as () => void
    }
    collect()
    if (!fits(bytes)) throw outOfMemory(limitMib)
  }
}

/** What a call is told that needs more than it may use. */
export const outOfMemory = (limitMib: number) =>
  new ToolError(
    'analysis_failed',
    `The call broke off because it needed more than the ${limitMib} MiB of memory that one call may use. Nothing was changed.`,
    { reason: 'out_of_memory' },
  )
