import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'
import { ToolError } from '../../../schemas/errors.js'

const MIB = 1024 * 1024
/** The assumed size of the objects that result from parsing a JSON text, as a multiple of the size of the text. */
const TIMES_TEXT = 8
/** The fraction of V8's own limit (`HARD_LIMIT`) up to which the heap may grow for a short time. */
const SHORT_OF_HARD = 0.9

/**
 * V8's own limit for the heap of a thread, as a multiple of the memory that a call may use. It is a last resort. It
 * must not be reached, because then not only the thread but the whole process may end (sometimes on Node.js 24, and on
 * any version if a single allocation does not fit).
 */
export const HARD_LIMIT = 4

let collector: (() => void) | undefined

/** Frees at once what this thread no longer uses. */
export function collectGarbage(): void {
  if (collector === undefined) {
    v8.setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as () => void
  }
  collector()
}

/**
 * Creates a function that checks the heap of this thread. The function must be called from time to time, and before
 * each answer of the PCE is parsed, because parsing makes the heap grow.
 *
 * @returns a function that takes the number of bytes about to be parsed. It throws `analysis_failed {reason:
 * 'out_of_memory'}` if, even after a garbage collection, more than `limitMib` is in use or the parsed objects would not
 * fit.
 */
export function createHeapGuard(limitMib: number): (bytes: number) => void {
  const limit = limitMib * MIB
  const used = () => v8.getHeapStatistics().used_heap_size
  const fits = (bytes: number) => {
    const now = used()
    return now <= limit && now + bytes * TIMES_TEXT <= limit * HARD_LIMIT * SHORT_OF_HARD
  }
  return (bytes) => {
    if (fits(bytes)) return
    collectGarbage()
    if (!fits(bytes)) throw outOfMemory(limitMib)
  }
}

/** Creates the error for a call that needs more memory than it may use. */
export const outOfMemory = (limitMib: number) =>
  new ToolError(
    'analysis_failed',
    `The call broke off because it needed more than the ${limitMib} MiB of memory that one call may use. Nothing was changed.`,
    { reason: 'out_of_memory' },
  )
